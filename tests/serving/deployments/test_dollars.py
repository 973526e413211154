"""What a call is expected to cost in USD is what LiteLLM charges for it."""

from copy import deepcopy
from dataclasses import astuple, replace
from typing import Any
from uuid import uuid4

import litellm
import pytest

from litellm_messplus.costs.price import Price, Tier
from litellm_messplus.serving.deployments.prices import is_free, public_dollars, stated_dollars

# LiteLLM's own typed dictionaries make pydantic warn when its router is built.
pytestmark = pytest.mark.filterwarnings("ignore:Item:UserWarning")


@pytest.fixture(autouse=True)
def price_map(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a router adds to the price map is gone with the test."""
    monkeypatch.setattr(litellm, "model_cost", deepcopy(litellm.model_cost))


OWN = {"input_cost_per_token": 2e-6, "output_cost_per_token": 8e-6}
FREE = {"input_cost_per_token": 0.0, "output_cost_per_token": 0.0}
MINI = Price(1.5e-7, 6e-7, cached_discount=7.5e-8)
GPT_4O = Price(2.5e-6, 1e-5, cached_discount=1.25e-6)
CLAUDE = Price(1e-6, 5e-6, 9e-7, written_surcharge=2.5e-7, cached_from=4096)
GEMINI = Price(
    1.25e-6,
    1e-5,
    cached_discount=1.125e-6,
    cached_from=2048,
    tiers=(Tier(200_000, Price(2.5e-6, 1.5e-5, cached_discount=2.25e-6)),),
)
CASES: list[tuple[dict[str, Any], dict[str, Any], Price | None]] = [
    # of the price map, also by a base model
    ({"model": "gpt-4o-mini"}, {}, MINI),
    ({"model": "openai/gpt-4o-mini"}, {}, MINI),
    ({"model": "gpt-4o", "custom_llm_provider": "azure"}, {}, GPT_4O),
    ({"model": "azure/mine"}, {"base_model": "azure/gpt-4o"}, GPT_4O),
    ({"model": "azure/mine", "base_model": "gpt-4o"}, {"base_model": "gpt-4o-mini"}, GPT_4O),
    ({"model": "anthropic/claude-haiku-4-5"}, {}, CLAUDE),
    ({"model": "gemini/gemini-2.5-pro"}, {}, GEMINI),
    ({"model": "openai/gpt-4o"}, {"cache_read_input_token_cost": 1e-7}, GPT_4O),
    # of the operator, wherever it stands; cached tokens have the public price
    ({"model": "openai/mine"}, OWN, Price(2e-6, 8e-6)),
    ({"model": "openai/mine", **OWN}, {"input_cost_per_token": 5e-6}, Price(2e-6, 8e-6)),
    ({"model": "hosted_vllm/mine"}, {"input_cost_per_token": "3e-7"}, Price(3e-7)),
    ({"model": "openai/gpt-4o"}, {"output_cost_per_token": 2e-6}, Price(0.0, 2e-6)),
    ({"model": "openai/gpt-4o"}, OWN, Price(2e-6, 8e-6, cached_discount=7.5e-7)),
    (
        {"model": "anthropic/claude-haiku-4-5"},
        {**OWN, "cache_creation_input_token_cost": 9e-6, "prompt_cache_min_tokens": 512},
        Price(2e-6, 8e-6, 1.9e-6, written_surcharge=7e-6, cached_from=512),
    ),
    (
        {"model": "openai/mine"},
        {**OWN, "input_cost_per_token_above_200k_tokens": 4e-6},
        Price(2e-6, 8e-6, tiers=(Tier(200_000, Price(4e-6, 8e-6)),)),
    ),
    ({"model": "openai/mine"}, {"input_cost_per_second": 0.5}, Price(second=0.5)),
    # free
    ({"model": "hosted_vllm/mine"}, FREE, Price()),
    # nobody knows its price
    ({"model": "hosted_vllm/mine"}, {}, None),
    ({"model": "hosted_vllm/mine"}, {"base_model": "openai/gpt-4o"}, None),
]
PARTS = ("prompt", "cached_tokens", "cache_creation_tokens")
USAGES = (
    {"prompt": 1_000},
    {"prompt": 1_000, "cached_tokens": 400},
    {"prompt": 1_000, "cache_creation_tokens": 150},
    {"prompt": 200_000},
    {"prompt": 200_001, "cached_tokens": 50_000},
)


def charged(deployment: dict[str, Any], prompt: int, **part: int) -> float:
    """What LiteLLM says of an answer of 200 tokens that its deployment gave."""
    model, identity = deployment["litellm_params"]["model"], deployment["model_info"]["id"]
    usage = litellm.Usage(
        prompt_tokens=prompt,
        completion_tokens=200,
        total_tokens=prompt + 200,
        prompt_tokens_details=part or None,
    )
    is_own = stated_dollars(deployment) is not None
    base = deployment["litellm_params"].get("base_model") or deployment["model_info"].get(
        "base_model"
    )
    cost = litellm.completion_cost(
        litellm.ModelResponse(model=model, usage=usage),
        model=model,
        base_model=base,
        custom_llm_provider=deployment["litellm_params"].get("custom_llm_provider"),
        custom_pricing=is_own,
        router_model_id=identity if is_own else None,
    )
    return float(cost)


@pytest.mark.parametrize(("params", "info", "expected"), CASES, ids=str)
def test_a_deployment_costs_what_litellm_charges(
    params: dict[str, Any], info: dict[str, Any], expected: Price | None
) -> None:
    deployment = {
        "model_name": "zoo",
        "litellm_params": {**params, "api_key": "none"},
        "model_info": {"id": uuid4().hex, **info},
    }
    known = set(litellm.model_cost)

    price = stated_dollars(deployment) or public_dollars(deployment)

    assert set(litellm.model_cost) == known  # nothing stays of what was asked
    assert (price is None) is (expected is None)
    if price is None or expected is None:
        return
    assert price.cached_from == expected.cached_from
    assert [tier.above for tier in price.tiers] == [tier.above for tier in expected.tiers]
    for length in (1, 200_000, 200_001, 400_000):
        found, wanted = astuple(price.within(length))[:-1], astuple(expected.within(length))[:-1]
        assert found == pytest.approx(wanted, rel=1e-12, abs=1e-18)
    litellm.Router(model_list=[deployment])
    for usage in USAGES if not price.second else ():
        prompt, cached, written = (usage.get(name, 0) for name in PARTS)
        cost = price.of(prompt, 200, cached_tokens=cached, written_tokens=written)
        assert cost == pytest.approx(charged(deployment, **usage), rel=1e-12), usage


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ({}, Price(request=0.01)),
        ({"input_cost_per_token": 1.0}, Price(1.0, request=0.01)),
        ({"base_model": "openai/gpt-4o"}, Price(request=0.01)),
    ],
    ids=str,
)
def test_a_price_for_each_request_is_added(info: dict[str, Any], expected: Price) -> None:
    deployment = {
        "litellm_params": {"model": "hosted_vllm/mine"},
        "model_info": {**info, "messplus": {"cost_per_request": 0.01}},
    }
    assert stated_dollars(deployment) == expected


def test_a_price_for_each_request_does_not_hide_the_public_one() -> None:
    deployment = {
        "litellm_params": {"model": "openai/gpt-4o"},
        "model_info": {"messplus": {"cost_per_request": 0.01}},
    }
    found, public = stated_dollars(deployment), public_dollars(deployment)
    assert public is not None
    assert found == replace(public, request=0.01)


@pytest.mark.parametrize("tier", ["flex", "priority"])
def test_a_service_tier_has_its_own_price(tier: str) -> None:
    params = {"model": "gpt-5-mini"}
    usual = public_dollars({"litellm_params": params})
    found = public_dollars({"litellm_params": {**params, "service_tier": tier}})
    assert usual is not None
    assert found is not None
    assert (found.prompt < usual.prompt) is (tier == "flex")
    assert found.prompt == litellm.model_cost["gpt-5-mini"][f"input_cost_per_token_{tier}"]


def test_that_litellms_router_serves_a_model_gives_it_no_price() -> None:
    """The router gives it an entry in the price map, whose missing prices LiteLLM shows as 0."""
    deployment = {"model_name": "zoo", "litellm_params": {"model": "hosted_vllm/served"}}
    litellm.Router(model_list=[deployment])
    assert litellm.get_model_info("hosted_vllm/served")["input_cost_per_token"] == 0.0
    assert public_dollars(deployment) is None


@pytest.mark.parametrize(("price", "expected"), [(0.0, True), (1e-6, False), (None, False)])
def test_free_is_what_the_operator_says_is_free(price: float | None, expected: bool) -> None:
    identity = uuid4().hex
    info = {} if price is None else {"input_cost_per_token": price, "output_cost_per_token": price}
    deployment = {
        "model_name": "zoo",
        "litellm_params": {"model": "hosted_vllm/own"},
        "model_info": {"id": identity, **info},
    }
    litellm.Router(model_list=[deployment])
    assert is_free(identity) is expected


def test_a_deployment_that_litellm_never_saw_is_not_free() -> None:
    assert not is_free("never seen")


@pytest.mark.parametrize("wrong", ["free", True, False], ids=str)
def test_what_is_no_number_is_refused(wrong: Any) -> None:
    info = {"input_cost_per_token": wrong}
    with pytest.raises((TypeError, ValueError)):
        stated_dollars({"litellm_params": {"model": "hosted_vllm/mine"}, "model_info": info})
