"""`docs/settings.md` describes what a deployment and a key may say, and the environment; its tables
of settings are printed from them."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from litellm_messplus.brain.messages import NAME_KEY
from litellm_messplus.cli import options
from litellm_messplus.serving.deployments.deployment import candidate_of
from litellm_messplus.serving.deployments.prices import (
    energy_price,
    stated_dollars,
)
from tests.support.markdown import ROOT, Document, code_of

SETTINGS = Document(ROOT / "docs" / "settings.md")
DEPLOYMENT_SETTINGS = "model_info.messplus."


class Noted(dict[str, object]):
    """What a deployment says of its own, which notes the keys that it is asked for."""

    def __init__(self, **given: object) -> None:
        super().__init__(given)
        self.asked: set[str] = set()

    def get(self, key: str, default: object = None) -> Any:
        self.asked.add(key)
        return super().get(key, default)


def test_what_a_deployment_and_a_key_may_say_is_described() -> None:
    own = Noted(candidate="llama")
    deployment = {
        "model_name": "zoo",
        "litellm_params": {"model": "openai/llama"},
        "model_info": {"messplus": own, "input_cost_per_token": 1e-6},
    }
    candidate_of(deployment)
    energy_price(deployment)
    stated_dollars(deployment)

    rows = [code_of(row.cells["Setting"]) or "" for row in SETTINGS.rows if "Setting" in row.cells]
    described = {key for key in rows if key.startswith(DEPLOYMENT_SETTINGS)}
    assert described == {DEPLOYMENT_SETTINGS + name for name in own.asked}
    assert NAME_KEY in SETTINGS.text


@pytest.mark.parametrize("name", [options.VARIABLE, "MESSPLUS_DATABASE"])
def test_environment_variables_are_described(name: str) -> None:
    assert f"`{name}`" in SETTINGS.text


def test_the_variable_of_the_alembic_command_names_its_database(tmp_path: Path) -> None:
    url = f"sqlite+aiosqlite:///{tmp_path / 'named.db'}"
    command = [sys.executable, "-m", "alembic", "--config", "migrations/alembic.ini"]
    command += ["upgrade", "head"]
    environment = {**os.environ, "MESSPLUS_DATABASE": url}
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)

    assert (tmp_path / "named.db").stat().st_size > 0
