"""What LiteLLM's own logs and traces show of a decision, under the plugin's own hook."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import litellm
import pytest
from litellm.proxy.hooks.cache_control_check import _PROXY_CacheControlCheck
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.trace import INVALID_SPAN

from litellm_messplus.serving.plugin import MessplusPlugin
from litellm_messplus.serving.visibility import REMEMBERED
from tests.support.in_process import DEPLOYMENTS, call, deployment, running

MESSAGES = [{"role": "user", "content": "What is 2 + 2?"}]


@pytest.fixture(autouse=True)
def reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a callback that the operator named, as a reader of LiteLLM's logs."""
    monkeypatch.setattr(litellm, "callbacks", [*litellm.callbacks, "datadog"])


@pytest.fixture
async def plugin(tmp_path: Path) -> AsyncIterator[MessplusPlugin]:
    async with running(tmp_path) as started:
        yield started


async def attempt(
    plugin: MessplusPlugin, arguments: dict[str, Any], healthy: list[Any] = DEPLOYMENTS
) -> Any:
    """One attempt of a request; the card that LiteLLM then has."""
    await plugin.async_filter_deployments("zoo", healthy, MESSAGES, arguments)
    return arguments["metadata"].get("routing_decision")


async def test_the_card_says_what_was_decided_and_why(plugin: MessplusPlugin) -> None:
    card = await attempt(plugin, call("call-1"))

    assert card["router_model_name"] == "zoo"
    assert card["router_type"] == "messplus"
    assert card["tier"] == "default"
    assert card["cause"] == "behind alpha"
    assert card["routed_model"] == "openai/small"
    assert set(card["classifier_probabilities"]) == {"openai/small", "openai/large"}
    assert card["score"] == card["classifier_probabilities"]["openai/small"]
    assert card["signals"][0] == "alpha 0.8"
    assert any(signal.startswith("queue ") for signal in card["signals"])
    assert card["savings_baseline_model"] == "openai/large"
    assert card["savings_baseline_deployment_id"] == "large"
    assert "2 + 2" not in str(card)  # nothing quotes the prompt


@pytest.mark.parametrize("has_database", [False, True])
async def test_there_is_a_card_where_somebody_reads_litellms_logs(
    plugin: MessplusPlugin, monkeypatch: pytest.MonkeyPatch, has_database: bool
) -> None:
    hooks = [each for each in litellm.callbacks if each != "datadog"]
    monkeypatch.setattr(litellm, "callbacks", [*hooks, _PROXY_CacheControlCheck(), plugin])
    proxy = SimpleNamespace(prisma_client=object() if has_database else None)
    monkeypatch.setitem(sys.modules, "litellm.proxy.proxy_server", proxy)

    assert (await attempt(plugin, call("call-1")) is not None) == has_database


async def test_a_retry_is_shown_as_one_and_names_who_is_tried_now(plugin: MessplusPlugin) -> None:
    arguments = call("call-1")
    first = await attempt(plugin, arguments)
    del arguments["metadata"]["routing_decision"]  # as LiteLLM does before each attempt
    arguments["metadata"]["model_info"] = {"id": "small"}

    second = await attempt(plugin, arguments)

    assert first["routed_model"] == "openai/small"
    assert second["routed_model"] == "openai/large"
    assert second["cause"].startswith("attempt 2 after a failure; at first: ")
    assert second["score"] == second["classifier_probabilities"]["openai/large"]


async def test_the_card_of_a_router_of_litellms_own_stays(plugin: MessplusPlugin) -> None:
    own = {"router_model_name": "smart", "router_type": "complexity"}
    arguments = call("call-1")
    arguments["metadata"]["routing_decision"] = own

    assert await attempt(plugin, arguments) is own


async def test_an_unhealthy_largest_is_still_what_savings_compare_with(
    plugin: MessplusPlugin,
) -> None:
    await attempt(plugin, call("call-1"))

    card = await attempt(plugin, call("call-2"), DEPLOYMENTS[:1])  # the small one

    assert card["routed_model"] == "openai/small"
    assert card["savings_baseline_deployment_id"] == "large"


async def test_a_group_without_a_zoo_has_no_card(plugin: MessplusPlugin) -> None:
    arguments = call("call-1")

    await plugin.async_filter_deployments("other", DEPLOYMENTS, MESSAGES, arguments)

    assert "routing_decision" not in arguments["metadata"]


async def test_a_card_that_cannot_be_made_stops_no_request(plugin: MessplusPlugin) -> None:
    unreadable = [{**each, "litellm_params": {}} for each in DEPLOYMENTS]
    arguments = call("call-1")
    await attempt(plugin, arguments)

    plugin.parts.visibility.attempt(unreadable, arguments, None)

    assert plugin.counters.as_dict() == {"visibility_failures": 1}


async def test_so_many_baselines_are_remembered_and_no_more(plugin: MessplusPlugin) -> None:
    visibility = plugin.parts.visibility
    for number in range(REMEMBERED + 1):
        healthy = [deployment(f"model-{number}", 1.0)]
        assert visibility._baseline("zoo", f"openai/model-{number}", healthy) is not None

    assert len(visibility._baselines) == 1


async def traced(plugin: MessplusPlugin, arguments: dict[str, Any]) -> dict[str, Any]:
    """The attributes of LiteLLM's span of one attempt."""
    span = TracerProvider().get_tracer("litellm").start_span("request")
    await plugin.async_filter_deployments("zoo", DEPLOYMENTS, MESSAGES, arguments, span)
    assert isinstance(span, ReadableSpan)
    return {
        name.removeprefix("messplus."): value for name, value in (span.attributes or {}).items()
    }


async def test_litellms_span_carries_the_decision_and_that_of_a_retry_its_attempt(
    plugin: MessplusPlugin,
) -> None:
    arguments = call("call-1")

    found = await traced(plugin, arguments)
    arguments["metadata"]["model_info"] = {"id": "small"}
    retried = await traced(plugin, arguments)

    record = next(plugin.parts.served.open_requests.find("call-1")).record
    for name in ("request_id", "queue", "chosen", "reason", "expected_satisfaction"):
        assert found[name] == getattr(record, name)
    assert (found["zoo"], found["alpha"], found["attempt"]) == ("zoo", 0.8, 1)
    assert found["routed"] == record.chosen
    assert found["is_exploration"] is False
    assert retried == {"routed": "openai/large", "attempt": 2}


async def test_a_span_that_records_nothing_is_left_alone(plugin: MessplusPlugin) -> None:
    await plugin.async_filter_deployments("zoo", DEPLOYMENTS, MESSAGES, call("1"), INVALID_SPAN)

    assert plugin.counters.as_dict() == {}
