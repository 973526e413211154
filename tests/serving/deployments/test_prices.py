"""The price of a deployment in its zoo's unit: dollars, joules, and electricity between them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from litellm_messplus.costs.price import Price
from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.serving.deployments.index import DeploymentIndex
from litellm_messplus.serving.deployments.prices import DeploymentPrice, deployment_price
from litellm_messplus.settings.schema import ZooSettings
from tests.support.profiles import write_profile

Info = dict[str, Any]

DOLLARS: Info = {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}
ENERGY: Info = {"joules_per_prompt_token": 0.5, "joules_per_completion_token": 3.0}
JOULES_PER_DOLLAR = 3_600_000 / 0.36
"""At 0.36 USD per kWh."""


def deployment(model: str = "hosted_vllm/mine", **info: Any) -> dict[str, Any]:
    own = {name: info.pop(name) for name in list(info) if name not in DOLLARS and name != "id"}
    return {
        "model_name": "zoo",
        "litellm_params": {"model": model},
        "model_info": {**info, "messplus": own},
    }


def zoo(unit: str, price_per_kwh: float | None = None) -> ZooSettings:
    electricity = None if price_per_kwh is None else {"price_per_kwh": price_per_kwh}
    return ZooSettings.model_validate({"alpha": 0.9, "cost_unit": unit, "electricity": electricity})


def refusal(given: dict[str, Any], settings: ZooSettings) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        deployment_price(given, settings)
    return caught.value


def test_dollars_in_a_zoo_of_dollars_are_what_litellm_charges() -> None:
    assert deployment_price(deployment(**DOLLARS), zoo("usd")) == DeploymentPrice(
        Price(1e-6, 2e-6), 1.0
    )


def test_joules_in_a_zoo_of_joules_have_nothing_to_do_with_dollars() -> None:
    found = deployment_price(deployment(**DOLLARS, **ENERGY), zoo("joule"))
    assert found == DeploymentPrice(Price(0.5, 3.0), None)


def test_a_call_may_take_energy_whatever_its_length() -> None:
    found = deployment_price(deployment(**ENERGY, joules_per_request=7.0), zoo("joule"))
    assert found.price == Price(0.5, 3.0, request=7.0)


def test_energy_becomes_dollars_at_the_stated_price_of_electricity() -> None:
    found = deployment_price(deployment(**ENERGY), zoo("usd", 0.36))
    assert found.per_dollar is None
    assert found.price.of(3_600_000, 1_200_000) == pytest.approx(0.36 * (0.5 + 1.0))


def test_dollars_become_the_energy_that_they_would_buy() -> None:
    found = deployment_price(deployment(**DOLLARS), zoo("joule", 0.36))
    assert found.per_dollar == pytest.approx(JOULES_PER_DOLLAR)
    assert found.price.prompt == pytest.approx(1e-6 * JOULES_PER_DOLLAR)
    assert found.price.completion == pytest.approx(2e-6 * JOULES_PER_DOLLAR)


def test_a_stated_price_in_dollars_goes_before_energy_in_a_zoo_of_dollars() -> None:
    found = deployment_price(deployment(**DOLLARS, **ENERGY), zoo("usd", 0.36))
    assert found == DeploymentPrice(Price(1e-6, 2e-6), 1.0)


def test_stated_energy_goes_before_the_price_map_which_has_own_models_for_nothing() -> None:
    found = deployment_price(deployment("ollama/llama3", **ENERGY), zoo("usd", 0.36))
    assert found.price == Price(0.5, 3.0).times(0.36 / 3_600_000)


def test_without_electricity_energy_is_no_price_in_dollars() -> None:
    error = refusal(deployment(**ENERGY), zoo("usd"))
    assert error.key == "model_list, zoo (hosted_vllm/mine)"
    assert error.given == "energy alone, in a zoo that counts in USD"
    assert "`electricity: {price_per_kwh: ...}`" in error.allowed
    assert "`input_cost_per_token`" in error.allowed


@pytest.mark.parametrize("given", [deployment(**DOLLARS), deployment("openai/gpt-4o")], ids=str)
def test_without_electricity_dollars_are_no_price_in_joules(given: dict[str, Any]) -> None:
    error = refusal(given, zoo("joule"))
    assert error.given == "a price in USD alone, in a zoo that counts in joules"
    assert "`electricity: {price_per_kwh: ...}`" in error.allowed
    assert "`joules_per_prompt_token`" in error.allowed


@pytest.mark.parametrize("unit", ["usd", "joule"])
def test_electricity_alone_is_no_price(unit: str) -> None:
    assert refusal(deployment(), zoo(unit, 0.36)).given == "no price"


def test_a_profile_says_what_a_call_takes(tmp_path: Path) -> None:
    given = deployment(energy_profile=write_profile(tmp_path / "mine.yaml"))
    found = deployment_price(given, zoo("joule"))
    assert found == DeploymentPrice(Price(0.5, 3.0, request=7.0), None)


@pytest.mark.parametrize(("told", "expected"), [(None, 0.0), (0.1, 0.4), ("2e-1", 0.3)], ids=str)
def test_cached_tokens_cost_as_stated_else_as_others(told: Any, expected: float) -> None:
    stated: Info = {} if told is None else {"joules_per_cached_token": told}
    found = deployment_price(deployment(**ENERGY, **stated), zoo("joule"))
    assert found.price.cached_discount == pytest.approx(expected)


@pytest.mark.parametrize(("told", "expected"), [(None, 0.45), (0.0, 0.5)], ids=str)
def test_a_profile_may_say_what_cached_tokens_take_and_the_deployment_goes_before_it(
    told: float | None, expected: float, tmp_path: Path
) -> None:
    path = tmp_path / "mine.yaml"
    write_profile(path)
    path.write_text(path.read_text() + "joules_per_cached_token: 0.05\n")
    stated: Info = {} if told is None else {"joules_per_cached_token": told}
    found = deployment_price(deployment(energy_profile=str(path), **stated), zoo("joule"))
    assert found.price.cached_discount == pytest.approx(expected)
    assert replace(found.price, cached_discount=0.0) == Price(0.5, 3.0, request=7.0)


def test_what_cached_tokens_take_alone_is_no_price() -> None:
    error = refusal(deployment(joules_per_cached_token=0.1), zoo("joule"))
    assert error.key == "model_list, zoo (hosted_vllm/mine)"
    assert error.given == "joules_per_cached_token alone"
    assert "joules_per_prompt_token" in error.allowed


def test_a_profiles_path_is_of_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_profile(tmp_path / "mine.yaml")
    monkeypatch.chdir(tmp_path)
    found = deployment_price(deployment(energy_profile="mine.yaml"), zoo("joule"))
    assert found.price.completion == 3.0


def test_a_profile_and_numbers_together_are_refused(tmp_path: Path) -> None:
    given = deployment(**ENERGY, energy_profile=write_profile(tmp_path / "mine.yaml"))
    error = refusal(given, zoo("joule"))
    assert "energy_profile and joules_per_prompt_token" in str(error.given)


@pytest.mark.parametrize(
    ("wrong", "figure"), [({"model": "other"}, "other"), ({"relative_error": 0.4}, "0.4")], ids=str
)
def test_a_profile_that_is_not_this_models_or_too_far_off_is_refused_with_the_figure(
    tmp_path: Path, wrong: dict[str, Any], figure: str
) -> None:
    given = deployment(energy_profile=write_profile(tmp_path / "mine.yaml", **wrong))
    assert figure in str(refusal(given, zoo("joule")).given)


def test_a_profile_that_is_not_there_is_refused() -> None:
    error = refusal(deployment(energy_profile="nowhere.yaml"), zoo("joule"))
    assert "nowhere.yaml" in str(error.given)


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), "much", True, False], ids=repr)
def test_energy_below_zero_or_no_number_is_refused(wrong: Any) -> None:
    error = refusal(deployment(joules_per_prompt_token=wrong), zoo("joule"))
    assert error.key == "model_list, zoo (hosted_vllm/mine)"


def test_a_deployment_that_comes_later_without_a_price_does_not_stop_routing() -> None:
    """Operators may add deployments while the proxy runs."""
    index = DeploymentIndex()
    index.see("zoo", [deployment(id="priced", **DOLLARS), deployment(id="unpriced")], zoo("usd"))
    assert set(index.candidates_of["zoo"]) == {"priced", "unpriced"}
    assert set(index.prices) == {"priced"}


def test_a_deployment_is_a_candidate_of_its_own_zoo_alone() -> None:
    """A fallback may go to another zoo, which counts in another unit."""
    index = DeploymentIndex()
    index.see("zoo", [deployment(id="own", **DOLLARS)], zoo("usd"))
    index.see("another", [deployment(id="others", **ENERGY)], zoo("joule"))
    assert index.candidates_of["zoo"] == {"own": "hosted_vllm/mine"}
    assert index.candidates_of["another"] == {"others": "hosted_vllm/mine"}
