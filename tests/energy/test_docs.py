"""docs/energy.md names every option with its default, every key, and every limit."""

import inspect
import re
from typing import Any

import pytest
import typer

from litellm_messplus.cli.before import profile as command
from litellm_messplus.energy import meter, profile
from litellm_messplus.energy.measure import Grid
from litellm_messplus.energy.profile import EnergyProfile
from tests.support.markdown import ROOT, Document, code_of

PAGE = Document(ROOT / "docs" / "energy.md")


def options() -> dict[str, Any]:
    """Defaults by option."""
    app = typer.Typer(add_completion=False)
    app.command()(command)
    parameters: Any = typer.main.get_command(app).params
    return {max(each.opts, key=len): each for each in parameters if each.name != "help"}


DESCRIBED = {code_of(row.cells["Option"]): row.cells for row in PAGE.under("Options")}


def test_every_option_is_described_and_no_other() -> None:
    assert set(DESCRIBED) == set(options())


@pytest.mark.parametrize("option", options())
def test_the_default_of_an_option_is_the_one_described(option: str) -> None:
    parameter, cell = options()[option], DESCRIBED[option]["Default"]

    if parameter.required:
        assert cell == "required"
    elif parameter.default is None:
        assert code_of(cell) is None
    elif parameter.default is False:
        assert cell == "off"
    else:
        assert cell == f"`{parameter.default}`"


def test_options_named_anywhere_on_the_page_exist() -> None:
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE.text)) <= set(options())


def test_the_defaults_of_the_command_are_those_of_a_grid() -> None:
    grid = Grid()
    listed = ("prompt_tokens", "completion_tokens", "concurrency")
    for name, parameter in inspect.signature(command).parameters.items():
        if hasattr(grid, name):
            value = getattr(grid, name)
            expected = ",".join(map(str, value)) if name in listed else value
            assert parameter.default == expected


def test_every_key_of_the_file_is_described_and_no_other() -> None:
    described = {code_of(row.cells["Key"]) for row in PAGE.under("What is in the file")}

    assert described == set(EnergyProfile.model_fields)


@pytest.mark.parametrize(
    "sentence",
    [
        f"relative error is above {profile.MAX_RELATIVE_ERROR:g}",
        f"more than {meter.PLAUSIBLE_WATTS:,.0f} W a sensor",
    ],
)
def test_the_limits_are_those_of_the_code(sentence: str) -> None:
    assert sentence in " ".join(PAGE.text.split())


def test_the_limits_in_words_are_those_of_the_code() -> None:
    assert profile.NOISE_DEVIATIONS == 3.0
    assert "three standard deviations" in " ".join(PAGE.text.split())


def test_the_meter_of_the_page_measures() -> None:
    (example,) = [block.code for block in PAGE.blocks if block.language == "python"]
    found: dict[str, Any] = {}
    exec(compile(example, "docs/energy.md", "exec"), found)

    reading = found["OutletMeter"]().begin().end()

    assert reading.joules == pytest.approx(60.0 * reading.seconds, rel=0.5, abs=0.01)
