"""On `docs/vllm.md`, configuration and commands fit each other, and the code."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from litellm_messplus.cli.main import app
from litellm_messplus.energy.profile import Costs, EnergyProfile, GridOfProfile
from litellm_messplus.serving.deployments.index import build_zoos
from litellm_messplus.settings.load import load_settings
from tests.support.markdown import ROOT, Document
from tests.support.shell import commands, option

PAGE = Document(ROOT / "docs" / "vllm.md")
IN_DOLLARS, JOULES, COUNTING = (
    yaml.safe_load(block.code) for block in PAGE.blocks if block.language == "yaml"
)
IN_JOULES = {**IN_DOLLARS, **JOULES, **COUNTING}
PROVIDER = "hosted_vllm/"


def served() -> dict[str, str]:
    """The port of each model, by the name under which the page's commands serve it."""
    found: dict[str, str] = {}
    for arguments in commands(PAGE, "vllm", "serve"):
        named = "--served-model-name" in arguments
        name = option(arguments, "--served-model-name") if named else arguments[0]
        port = option(arguments, "--port")
        assert found.setdefault(name, port) == port
    return found


@pytest.mark.parametrize("config", [IN_DOLLARS, IN_JOULES], ids=["dollars", "joules"])
def test_the_proxy_asks_for_what_the_commands_serve(config: dict[str, Any]) -> None:
    asked = {
        deployment["litellm_params"]["model"].removeprefix(PROVIDER): deployment["litellm_params"][
            "api_base"
        ]
        for deployment in config["model_list"]
    }

    assert asked == {name: f"http://gpu-1:{port}/v1" for name, port in served().items()}


def test_the_configuration_is_the_operators_own_but_for_the_replica_and_the_hosts() -> None:
    operators = yaml.safe_load((ROOT / "proxy_config.yaml").read_text(encoding="utf-8"))
    urls = {
        deployment["litellm_params"]["model"]: deployment["litellm_params"]["api_base"]
        for deployment in IN_DOLLARS["model_list"]
    }
    first_of_each = {
        deployment["litellm_params"]["model"]: deployment
        for deployment in reversed(operators["model_list"])
    }
    for model, deployment in first_of_each.items():
        deployment["litellm_params"]["api_base"] = urls[model]

    expected = {**operators, "model_list": list(reversed(first_of_each.values()))}
    assert expected == IN_DOLLARS


def test_every_model_is_profiled_where_it_is_served_into_the_file_that_the_proxy_reads() -> None:
    profiled = {
        PROVIDER + option(arguments, "--model"): (
            option(arguments, "--url"),
            option(arguments, "--out"),
        )
        for arguments in commands(PAGE, "messplus", "profile")
    }

    assert profiled == {
        deployment["litellm_params"]["model"]: (
            deployment["litellm_params"]["api_base"],
            deployment["model_info"]["messplus"]["energy_profile"],
        )
        for deployment in IN_JOULES["model_list"]
    }


@pytest.mark.parametrize("arguments", commands(PAGE, "messplus"), ids=" ".join)
def test_every_messplus_command_has_the_options_that_it_is_given(arguments: list[str]) -> None:
    name, *rest = arguments
    known: dict[str, Any] = vars(typer.main.get_command(app))["commands"]

    assert known[name].make_context(name, rest)


def test_joules_are_honoured_with_profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, deployment in enumerate(IN_JOULES["model_list"], start=1):
        name = deployment["litellm_params"]["model"].removeprefix(PROVIDER)
        file = deployment["model_info"]["messplus"]["energy_profile"]
        made_up_profile(name, joules=float(place)).write(tmp_path / file)
    monkeypatch.chdir(tmp_path)

    zoos = build_zoos(load_settings(IN_JOULES), IN_JOULES["model_list"])

    prices = zoos["llama"].prices
    assert [prices[PROVIDER + name].completion for name in served()] == [1.0, 2.0, 3.0]


def made_up_profile(model: str, joules: float) -> EnergyProfile:
    costs = dict.fromkeys(Costs.model_fields, joules)
    return EnergyProfile(
        model=model,
        endpoint="http://gpu-1:8000/v1",
        meter="made up",
        sensors=("gpu 0",),
        measured_at=datetime(2026, 3, 1, tzinfo=UTC),
        idle_watts=50.0,
        idle_noise_watts=0.5,
        dropped={},
        grid=GridOfProfile(
            prompt_tokens=(1,), completion_tokens=(1,), concurrency=(1,), repeats=1, seconds=1.0
        ),
        concurrency=1,
        relative_error=0.01,
        standard_errors=Costs(**costs),
        windows=6,
        **costs,
    )
