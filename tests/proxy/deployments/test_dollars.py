"""What a call is expected to cost in USD is what LiteLLM charges for it."""

from typing import Any
from uuid import uuid4

import litellm
import pytest

from litellm_messplus.costs.price import Price
from litellm_messplus.proxy.deployments.prices import is_free, public_dollars, stated_dollars

# LiteLLM's own typed dictionaries make pydantic warn when its router is built.
pytestmark = pytest.mark.filterwarnings("ignore:Item:UserWarning")

PROVIDERS = ("openai", "azure", "anthropic", "bedrock", "gemini", "vertex_ai", "groq", "mistral")
OTHER_PROVIDERS = ("together_ai", "deepinfra", "xai", "cohere_chat", "dashscope")
PROMPT, COMPLETION, CACHED, REASONING = 1000, 200, 400, 50


def usage() -> litellm.Usage:
    return litellm.Usage(
        prompt_tokens=PROMPT,
        completion_tokens=COMPLETION,
        total_tokens=PROMPT + COMPLETION,
        prompt_tokens_details={"cached_tokens": CACHED},
        completion_tokens_details={"reasoning_tokens": REASONING},
    )


def ours(price: Price) -> float:
    return price.of(
        PROMPT, COMPLETION, cached_tokens=CACHED, reasoning_tokens=REASONING, seconds=2.0
    )


def charged(model: str, provider: str) -> float:
    prompt, completion = litellm.cost_per_token(
        model=model,
        custom_llm_provider=provider,
        usage_object=usage(),
        prompt_tokens=PROMPT,
        completion_tokens=COMPLETION,
        response_time_ms=2000.0,
        call_type="acompletion",
    )
    return float(prompt + completion)


def chat_models(provider: str) -> list[tuple[str, float]]:
    """Those of the price map for which LiteLLM charges anything, with what it charges.

    Left out: prices that change with the time of day.
    """
    found = []
    for name, entry in list(litellm.model_cost.items()):
        is_chat = entry.get("mode") in ("chat", "completion", "responses")
        if entry.get("litellm_provider") != provider or not is_chat or "off_peak_pricing" in entry:
            continue
        try:
            model, resolved, _, _ = litellm.get_llm_provider(name)
            cost = charged(model, resolved)
        except Exception:  # LiteLLM's own, bare, for a model that it cannot price alone
            continue
        if cost > 0:
            found.append((name, cost))
    return found


@pytest.mark.parametrize("provider", PROVIDERS + OTHER_PROVIDERS)
def test_every_chat_model_of_the_price_map_costs_what_litellm_charges(provider: str) -> None:
    models = chat_models(provider)
    differing = [
        (model, cost, price)
        for model, cost in models
        if (price := public_dollars({"litellm_params": {"model": model}})) is None
        or ours(price) != pytest.approx(cost)
    ]
    assert models
    assert differing == []


@pytest.mark.parametrize(
    ("params", "info"),
    [
        ({"model": "gpt-4o-mini"}, {}),
        ({"model": "openai/gpt-4o-mini"}, {}),
        ({"model": "gpt-4o", "custom_llm_provider": "azure"}, {}),
        ({"model": "azure/my-deployment"}, {"base_model": "azure/gpt-4o-mini"}),
        ({"model": "azure/my-deployment", "base_model": "gpt-4o"}, {}),
        ({"model": "azure/mine", "base_model": "gpt-4o"}, {"base_model": "gpt-4o-mini"}),
        ({"model": "groq/openai/gpt-oss-20b"}, {}),
        ({"model": "openai/mine"}, {"input_cost_per_token": 2e-6, "output_cost_per_token": 8e-6}),
        ({"model": "openai/mine", "input_cost_per_token": 2e-6}, {"output_cost_per_token": 8e-6}),
        ({"model": "openai/mine", "input_cost_per_token": 5e-6}, {"input_cost_per_token": 2e-6}),
        ({"model": "openai/gpt-4o"}, {"input_cost_per_token": 2e-6}),
        ({"model": "openai/gpt-4o"}, {"output_cost_per_token": 2e-6}),
        ({"model": "openai/gpt-4o"}, {"input_cost_per_token": 0.0, "output_cost_per_token": 0.0}),
        ({"model": "openai/gpt-4o"}, {"cache_read_input_token_cost": 1e-7}),
        (
            {"model": "openai/mine"},
            {"input_cost_per_token": 2e-6, "output_cost_per_reasoning_token": 9e-6},
        ),
        ({"model": "hosted_vllm/mine"}, {"input_cost_per_token": "3e-7"}),
    ],
    ids=str,
)
def test_a_deployment_costs_what_litellms_router_charges(
    params: dict[str, Any], info: dict[str, Any]
) -> None:
    """Base models, and prices of the operator's own, wherever they stand."""
    deployment = {
        "model_name": "zoo",
        "litellm_params": {**params, "api_key": "none"},
        "model_info": {"id": uuid4().hex, **info},
    }
    answer = litellm.Router(model_list=[deployment]).completion(
        model="zoo", messages=[{"role": "user", "content": "Say it."}], mock_response="Said. " * 20
    )
    used = answer.usage
    price = stated_dollars(deployment) or public_dollars(deployment)
    assert price is not None
    assert price.of(used.prompt_tokens, used.completion_tokens) == pytest.approx(
        answer._hidden_params["response_cost"]
    )


def test_cached_tokens_of_a_deployment_with_its_own_price_have_the_public_one() -> None:
    found = stated_dollars(
        {
            "litellm_params": {"model": "openai/gpt-4o"},
            "model_info": {"input_cost_per_token": 1e-5, "output_cost_per_token": 1e-5},
        }
    )
    public = litellm.model_cost["gpt-4o"]["cache_read_input_token_cost"]
    assert found == Price(1e-5, 1e-5, cached_discount=1e-5 - public)


def test_a_model_that_nobody_knows_has_no_price() -> None:
    deployment = {"litellm_params": {"model": "hosted_vllm/mine"}, "model_info": {}}
    assert stated_dollars(deployment) is None
    assert public_dollars(deployment) is None


def test_that_litellms_router_serves_a_model_gives_it_no_price() -> None:
    """The router gives it an entry in the price map, whose missing prices LiteLLM shows as 0."""
    deployment = {"model_name": "zoo", "litellm_params": {"model": "hosted_vllm/served"}}
    litellm.Router(model_list=[deployment])
    assert litellm.get_model_info("hosted_vllm/served")["input_cost_per_token"] == 0.0
    assert public_dollars(deployment) is None


def test_a_base_model_of_another_provider_lends_no_price() -> None:
    """LiteLLM charges nothing for it."""
    deployment = {
        "litellm_params": {"model": "hosted_vllm/mine"},
        "model_info": {"base_model": "openai/gpt-4o"},
    }
    assert public_dollars(deployment) is None


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ({}, Price(request=0.01)),
        ({"input_cost_per_token": 1.0}, Price(1.0, 0.0, request=0.01)),
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
    assert found is not None
    assert public is not None
    assert found.of(10, 10) == pytest.approx(public.of(10, 10) + 0.01)


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
