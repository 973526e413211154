"""What a call is expected to cost in USD is what LiteLLM charges for it."""

from typing import Any
from uuid import uuid4

import litellm
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litellm_messplus.costs.price import Price, Usage
from litellm_messplus.serving.deployments.prices import is_free, public_dollars, stated_dollars
from litellm_messplus.serving.surfaces.answers import read_usage

# LiteLLM's own typed dictionaries make pydantic warn when its router is built.
pytestmark = pytest.mark.filterwarnings("ignore:Item:UserWarning")

PROVIDERS = ("openai", "azure", "anthropic", "bedrock", "gemini", "vertex_ai", "groq", "mistral")
OTHER_PROVIDERS = ("together_ai", "deepinfra", "xai", "cohere_chat", "dashscope")
USAGES = (
    Usage(1_000, 200, cached_tokens=400, reasoning_tokens=50),
    Usage(1_000, 200, cached_tokens=400, reasoning_tokens=50, written_tokens=150, hour_tokens=50),
    Usage(128_000, 10, written_tokens=5),
    Usage(200_000, 10, cached_tokens=50),
    Usage(200_001, 10, cached_tokens=50, written_tokens=100_000),
    Usage(300_000, 200, cached_tokens=100_000, written_tokens=7_003, hour_tokens=3),
    Usage(600_000, 200, cached_tokens=100, reasoning_tokens=5, written_tokens=10, hour_tokens=3),
)
"""Short prompts and long ones, below, at and above the limits of the price map's tiers."""


def litellms(used: Usage) -> litellm.Usage:
    """As LiteLLM reports it, of any provider."""
    written: dict[str, Any] = {"cache_creation_tokens": used.written_tokens}
    if used.hour_tokens:
        written["cache_creation_token_details"] = {
            "ephemeral_5m_input_tokens": used.written_tokens - used.hour_tokens,
            "ephemeral_1h_input_tokens": used.hour_tokens,
        }
    return litellm.Usage(
        prompt_tokens=used.prompt_tokens,
        completion_tokens=used.completion_tokens,
        total_tokens=used.prompt_tokens + used.completion_tokens,
        prompt_tokens_details={"cached_tokens": used.cached_tokens, **written},
        completion_tokens_details={"reasoning_tokens": used.reasoning_tokens},
    )


def charged(model: str, provider: str, used: Usage, **given: Any) -> float:
    prompt, completion = litellm.cost_per_token(
        model=model,
        custom_llm_provider=provider,
        usage_object=litellms(used),
        prompt_tokens=used.prompt_tokens,
        completion_tokens=used.completion_tokens,
        response_time_ms=2000.0,
        call_type="acompletion",
        **given,
    )
    return float(prompt + completion)


def chat_models(provider: str) -> list[tuple[str, list[float]]]:
    """Those of the price map for which LiteLLM charges anything, with what it charges for each of
    the usages.

    Left out: prices that change with the time of day.
    """
    found = []
    for name, entry in list(litellm.model_cost.items()):
        is_chat = entry.get("mode") in ("chat", "completion", "responses")
        if entry.get("litellm_provider") != provider or not is_chat or "off_peak_pricing" in entry:
            continue
        try:
            model, resolved, _, _ = litellm.get_llm_provider(name)
            costs = [charged(model, resolved, used) for used in USAGES]
        except Exception:  # LiteLLM's own, bare, for a model that it cannot price alone
            continue
        if all(costs):
            found.append((name, costs))
    return found


@pytest.mark.parametrize("provider", PROVIDERS + OTHER_PROVIDERS)
def test_every_chat_model_of_the_price_map_costs_what_litellm_charges(provider: str) -> None:
    models = chat_models(provider)
    differing = [
        (model, costs, price)
        for model, costs in models
        if (price := public_dollars({"litellm_params": {"model": model}})) is None
        or [price.of_usage(used, 2.0) for used in USAGES] != pytest.approx(costs, rel=1e-12)
    ]
    assert models
    assert differing == []


TIERED = (
    *("anthropic/claude-sonnet-4-5", "openai/gpt-5.4", "gemini/gemini-2.5-pro"),
    *(
        "vertex_ai/claude-sonnet-4-5",
        "xai/grok-4.3",
        "dashscope/qwen-plus-latest",
    ),
)


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    """Any split of a prompt and an answer into what was read, written, and thought."""
    prompt = draw(st.integers(1, 400_000))
    cached = draw(st.integers(0, prompt))
    written = draw(st.integers(0, prompt - cached))
    completion = draw(st.integers(1, 20_000))
    return Usage(
        prompt,
        completion,
        cached_tokens=cached,
        reasoning_tokens=draw(st.integers(0, completion)),
        written_tokens=written,
        hour_tokens=draw(st.integers(0, written)),
    )


@pytest.mark.parametrize("model", TIERED)
@given(used=usages())
@settings(max_examples=60, deadline=None)
def test_any_usage_costs_to_the_digit_what_litellm_says_of_the_answer(
    model: str, used: Usage
) -> None:
    price = public_dollars({"litellm_params": {"model": model}})
    assert price is not None
    answer = litellm.ModelResponse(model=model, usage=litellms(used))
    said = litellm.completion_cost(completion_response=answer, model=model)
    assert read_usage(answer.usage) == used
    assert price.of_usage(used) == pytest.approx(said, rel=1e-12)


@pytest.mark.parametrize("tier", ["flex", "priority"])
def test_a_call_at_a_service_tier_costs_what_litellm_charges_for_it(tier: str) -> None:
    models = [
        name
        for name, entry in litellm.model_cost.items()
        if entry.get("litellm_provider") == "openai" and entry.get("mode") == "chat"
        if entry.get(f"input_cost_per_token_{tier}")
    ]
    assert "gpt-5-mini" in models
    for model in models:
        price = public_dollars({"litellm_params": {"model": model, "service_tier": tier}})
        assert price is not None
        for used in USAGES[:2]:
            said = charged(model, "openai", used, service_tier=tier)
            assert price.of_usage(used) == pytest.approx(said, rel=1e-12), model


def test_a_tier_begins_above_its_limit_except_at_xai() -> None:
    """As LiteLLM has it."""
    ends = {"vertex_ai/claude-sonnet-4-5": 200_001, "xai/grok-4.3": 200_000}
    for model, first in ends.items():
        price = public_dollars({"litellm_params": {"model": model}})
        assert price is not None
        assert price.within(first - 1).prompt < price.within(first).prompt, model


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


@pytest.mark.parametrize(
    ("params", "info"),
    [
        ({"model": "vertex_ai/claude-sonnet-4-5"}, {"input_cost_per_token": 2e-6}),
        (
            {"model": "anthropic/claude-sonnet-4-5", "input_cost_per_token": 2e-6},
            {"output_cost_per_token": 1e-6, "cache_creation_input_token_cost": 9e-6},
        ),
        (
            {"model": "openai/mine"},
            {
                "input_cost_per_token": 2e-6,
                "input_cost_per_token_above_200k_tokens": 4e-6,
                "cache_creation_input_token_cost": 3e-6,
            },
        ),
        ({"model": "openai/mine", "input_cost_per_token": 2e-6}, {}),
    ],
    ids=str,
)
@pytest.mark.parametrize("used", USAGES, ids=str)
def test_writes_and_long_prompts_of_a_deployment_with_its_own_price_cost_the_same(
    params: dict[str, Any], info: dict[str, Any], used: Usage
) -> None:
    identity = uuid4().hex
    deployment = {
        "model_name": "zoo",
        "litellm_params": {**params, "api_key": "none"},
        "model_info": {"id": identity, **info},
    }
    litellm.Router(model_list=[deployment])
    said = litellm.completion_cost(
        completion_response=litellm.ModelResponse(model=params["model"], usage=litellms(used)),
        model=params["model"],
        custom_pricing=True,
        router_model_id=identity,
    )
    price = stated_dollars(deployment)
    assert price is not None
    assert price.of_usage(used) == pytest.approx(said, rel=1e-12)


def test_how_long_a_prompt_must_be_to_be_cached_is_the_models_own_or_stated() -> None:
    model = "anthropic/claude-haiku-4-5"
    public = public_dollars({"litellm_params": {"model": model}})
    own = {"input_cost_per_token": 1e-6}
    inherited = stated_dollars({"litellm_params": {"model": model}, "model_info": own})
    stated = stated_dollars(
        {
            "litellm_params": {"model": model},
            "model_info": {**own, "prompt_cache_min_tokens": 512},
        }
    )
    found = [price.cached_from for price in (public, inherited, stated) if price is not None]
    assert found == [4096.0, 4096.0, 512.0]


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
