"""LiteLLM's `model_list` as zoos: who is a replica of whom, and what everyone costs."""

from typing import Any

import pytest

from litellm_messplus.costs.price import Price
from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.serving.deployments.deployment import candidate_of
from litellm_messplus.serving.deployments.index import build_zoos, configured_zoos
from litellm_messplus.settings.load import load_settings
from litellm_messplus.settings.zoo import Zoo

SMALL, LARGE = "openai/own-small", "openai/own-large"


def deployment(
    model: str = SMALL,
    group: str = "llama",
    prices: tuple[float | None, float | None] | None = (1.0, 2.0),
    params: dict[str, Any] | None = None,
    **info: Any,
) -> dict[str, Any]:
    """One of `model_list`; a price of None is left out."""
    keys = ("input_cost_per_token", "output_cost_per_token")
    stated = zip(keys, prices or (None, None), strict=True)
    return {
        "model_name": group,
        "litellm_params": {"model": model, **(params or {})},
        "model_info": {**{key: price for key, price in stated if price is not None}, **info},
    }


def build(*deployments: dict[str, Any], **zoo: Any) -> Zoo:
    settings = load_settings({"messplus": {"zoos": {"llama": {"alpha": 0.9, **zoo}}}})
    return build_zoos(settings, deployments)["llama"]


def refusal(*deployments: dict[str, Any], **zoo: Any) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        build(*deployments, **zoo)
    return caught.value


def test_deployments_of_one_model_are_one_candidate_at_their_mean_price() -> None:
    zoo = build(
        deployment(SMALL, prices=(1.0, 2.0)),
        deployment(LARGE, prices=(10.0, 20.0)),
        deployment(SMALL, prices=(3.0, 6.0)),
    )
    assert zoo.candidates == (SMALL, LARGE)
    assert zoo.prices == {SMALL: Price(2.0, 4.0), LARGE: Price(10.0, 20.0)}


@pytest.mark.parametrize(
    "other",
    [
        deployment(LARGE, id="one"),
        deployment(LARGE, group="backup", id="one"),
        deployment(SMALL, messplus={"candidate": "another"}),
    ],
)
def test_an_id_that_is_anothers_too_is_refused(other: dict[str, Any]) -> None:
    own = deployment(SMALL) if "candidate" in str(other) else deployment(SMALL, id="one")
    config: dict[str, Any] = {"messplus": {"zoos": {"llama": {"alpha": 0.9}}}}
    config["model_list"] = [own, other, *[deployment(LARGE, prices=(2.0, 2.0))] * 2]
    with pytest.raises(ConfigurationError, match=r"llama \(openai/own-small\): model_info.id"):
        configured_zoos(load_settings(config), config)
    config["model_list"].remove(other)
    assert configured_zoos(load_settings(config), config)["llama"].candidates == (SMALL, LARGE)


EFFORTS = [deployment(SMALL, params={"reasoning_effort": each}) for each in ("high", "low")]


def test_deployments_that_set_other_parameters_are_arms_and_the_others_replicas() -> None:
    zoo = build(*EFFORTS, deployment(SMALL, params={"reasoning_effort": "low", "timeout": 9}))
    assert zoo.candidates == (f"{SMALL}, high effort", f"{SMALL}, low effort")


def test_of_arms_at_one_price_the_one_of_most_effort_is_the_largest() -> None:
    assert build(*reversed(EFFORTS)).largest == f"{SMALL}, high effort"
    assert build(*EFFORTS, deployment(LARGE, prices=(5.0, 5.0))).largest == LARGE
    assert build(*EFFORTS, largest=f"{SMALL}, low effort").largest == f"{SMALL}, low effort"


def test_arms_of_different_models_are_not_compared_by_effort() -> None:
    other = deployment(LARGE, params={"reasoning_effort": "low"})
    assert refusal(EFFORTS[0], other).key == "messplus.zoos.llama.largest"


def test_arms_of_equal_effort_must_name_the_largest() -> None:
    samples = [deployment(SMALL, params={"extra_body": {"samples": each}}) for each in (1, 5)]
    assert refusal(*samples).key == "messplus.zoos.llama.largest"


def test_a_candidate_may_be_named_to_join_or_part_replicas() -> None:
    zoo = build(
        deployment("hosted_vllm/a", messplus={"candidate": "mine"}),
        deployment("openai/b", messplus={"candidate": "mine"}),
        deployment("openai/b", prices=(5.0, 5.0)),
    )
    assert zoo.candidates == ("mine", "openai/b")


def test_other_model_names_are_not_part_of_the_zoo() -> None:
    other = deployment("openai/x", group="other")
    zoo = build(deployment(SMALL), deployment(LARGE, prices=(5.0, 5.0)), other)
    assert zoo.candidates == (SMALL, LARGE)


def test_the_dearest_is_the_largest_unless_another_is_named() -> None:
    own = (deployment(LARGE, prices=(5.0, 5.0)), deployment(SMALL, prices=(1.0, 1.0)))
    assert build(*own).largest == LARGE
    assert build(*own, largest=SMALL).largest == SMALL


def test_a_largest_that_is_no_candidate_is_refused_with_those_that_are() -> None:
    error = refusal(deployment(SMALL), deployment(LARGE), largest="llama-70b")
    assert error.key == "messplus.zoos.llama.largest"
    assert error.given == "llama-70b"
    assert error.allowed == f"{SMALL} or {LARGE}"


def test_an_explicit_zero_is_a_price_even_where_litellm_knows_another() -> None:
    zoo = build(deployment("openai/gpt-4o", prices=(0.0, 0.0)), deployment(LARGE))
    assert zoo.prices["openai/gpt-4o"] == Price(0.0, 0.0)


def test_one_stated_part_leaves_the_other_at_zero() -> None:
    zoo = build(deployment(SMALL, prices=(None, 2.0)), deployment(LARGE))
    assert zoo.prices[SMALL] == Price(0.0, 2.0)


def test_a_deployment_without_a_price_is_refused_with_what_to_add() -> None:
    error = refusal(deployment(SMALL, prices=None), deployment(LARGE))
    assert error.key == f"model_list, llama ({SMALL})"
    assert error.given == "no price"
    assert "`input_cost_per_token`" in error.allowed
    assert "`output_cost_per_token`" in error.allowed
    assert "`model_info`" in error.allowed


@pytest.mark.parametrize("prices", [(-1.0, 2.0), (1.0, -2.0)])
def test_a_negative_price_is_refused(prices: tuple[float, float]) -> None:
    error = refusal(deployment(SMALL), deployment(LARGE, prices=prices))
    assert error.key == f"model_list, llama ({LARGE})"
    assert error.allowed == "prices of at least 0"


@pytest.mark.parametrize("price", ["free", float("nan"), True], ids=repr)
def test_a_price_that_is_no_number_is_refused(price: Any) -> None:
    error = refusal(deployment(SMALL), deployment(LARGE, prices=(price, 2.0)))
    assert error.key == f"model_list, llama ({LARGE})"


def test_a_zoo_of_one_candidate_is_refused_however_many_replicas_it_has() -> None:
    error = refusal(deployment(SMALL), deployment(SMALL))
    assert error.key == "messplus.zoos.llama"
    assert SMALL in str(error.given)
    assert "at least two different models behind the name, or arms of one" in error.allowed
    assert "reasoning_effort" in error.allowed


def test_a_zoo_without_deployments_names_the_groups_there_are() -> None:
    error = refusal(deployment(group="qwen"), deployment(group="phi"), deployment(group="qwen"))
    assert error.key == "messplus.zoos.llama"
    assert error.given == "llama"
    assert error.allowed == "a `model_name` of `model_list` (there: phi, qwen)"


def test_an_empty_model_list_has_no_groups() -> None:
    assert "(there: none)" in refusal().allowed


def test_a_candidate_is_its_model_where_nothing_is_named() -> None:
    assert candidate_of({"litellm_params": {"model": "openai/x"}, "model_info": None}) == "openai/x"


def test_a_zoo_without_a_dearest_must_name_its_largest() -> None:
    free = (deployment(SMALL, prices=(0.0, 0.0)), deployment(LARGE, prices=(0.0, 0.0)))
    error = refusal(*free)
    assert error.key == "messplus.zoos.llama.largest"
    assert SMALL in error.allowed
    assert build(*free, largest=LARGE).largest == LARGE
