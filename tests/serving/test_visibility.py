"""What LiteLLM's own traces show of a decision, under the plugin's own hook."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.trace import INVALID_SPAN

from litellm_messplus.serving.plugin import MessplusPlugin
from tests.support.in_process import DEPLOYMENTS, call, running

MESSAGES = [{"role": "user", "content": "What is 2 + 2?"}]


@pytest.fixture
async def plugin(tmp_path: Path) -> AsyncIterator[MessplusPlugin]:
    async with running(tmp_path) as started:
        yield started


async def traced(plugin: MessplusPlugin, arguments: dict[str, Any]) -> dict[str, Any]:
    """The attributes of LiteLLM's span of one attempt."""
    span = TracerProvider().get_tracer("litellm").start_span("request")
    arguments["metadata"]["litellm_parent_otel_span"] = span
    await plugin.async_filter_deployments("zoo", DEPLOYMENTS, MESSAGES, arguments)
    assert isinstance(span, ReadableSpan)
    return {
        name.removeprefix("messplus."): value for name, value in (span.attributes or {}).items()
    }


async def test_litellms_span_carries_decision_and_attempt(plugin: MessplusPlugin) -> None:
    arguments = call("call-1")

    found = await traced(plugin, arguments)
    arguments["metadata"]["model_info"] = {"id": "small"}
    retried = await traced(plugin, arguments)

    opened = plugin.parts.served.open_requests.of_hook(arguments, arguments)
    assert opened is not None
    record = opened.record
    for name in ("request_id", "queue", "chosen", "reason", "expected_satisfaction"):
        assert found[name] == getattr(record, name)
    assert (found["zoo"], found["alpha"], found["attempt"]) == ("zoo", 0.8, 1)
    assert found["routed"] == record.chosen
    assert found["is_exploration"] is False
    assert retried == {"routed": "openai/large", "attempt": 2}


async def test_a_span_that_records_nothing_is_left_alone(plugin: MessplusPlugin) -> None:
    arguments = call("1")
    arguments["metadata"]["litellm_parent_otel_span"] = INVALID_SPAN
    await plugin.async_filter_deployments("zoo", DEPLOYMENTS, MESSAGES, arguments)

    assert plugin.counters.as_dict() == {}


async def test_a_span_that_fails_stops_no_request(plugin: MessplusPlugin) -> None:
    class Broken:
        def is_recording(self) -> bool:
            return True

    arguments = call("1")
    arguments["metadata"]["litellm_parent_otel_span"] = Broken()
    left = await plugin.async_filter_deployments("zoo", DEPLOYMENTS, MESSAGES, arguments)

    assert left
    assert plugin.counters.as_dict() == {"visibility_failures": 1}
