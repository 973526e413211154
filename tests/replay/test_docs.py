"""docs/replay.md names every option and every key."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from litellm_messplus.cli.before import replay
from litellm_messplus.replay.experiment import Experiment
from litellm_messplus.replay.plan import Plan
from tests.support.recordings import ENCODER, synthetic

PAGE = (Path(__file__).parents[2] / "docs" / "replay.md").read_text()


def options(command: Callable[..., None]) -> list[str]:
    app = typer.Typer()
    app.command()(command)
    parameters: Any = typer.main.get_command(app).params
    return sorted(
        max(parameter.secondary_opts or parameter.opts, key=len)
        for parameter in parameters
        if parameter.param_type_name == "option" and parameter.name not in ("help",)
    )


@pytest.mark.parametrize("option", [name for name in options(replay) if "completion" not in name])
def test_every_option_is_on_the_page(option: str) -> None:
    assert f"`{option}" in PAGE


def test_every_key_is_on_the_page() -> None:
    plan = Plan(seeds=1, window=20, confidence=0.9)
    found = Experiment([synthetic(130)], 0.7, plan, ENCODER).go().as_dict()

    for key in found:
        assert f"`{key}`" in PAGE
    for name in found["baselines"]:
        assert f"`{name}`" in PAGE
