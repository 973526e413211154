"""The decision in a trace: what an exporter in memory gets, under the plugin's own hook."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from litellm_messplus.proxy.plugin import MessplusPlugin
from tests.support.in_process import DEPLOYMENTS, call, running

MESSAGES = [{"role": "user", "content": "What is 2 + 2?"}]


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """A tracer provider as LiteLLM sets one for the whole process."""
    memory, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    yield memory
    provider.shutdown()


async def traced(plugin: MessplusPlugin, arguments: dict[str, Any], name: str) -> None:
    """One attempt below a span of LiteLLM's."""
    tracer = trace.get_tracer("litellm")
    with tracer.start_as_current_span(name) as span:
        await plugin.async_filter_deployments("zoo", DEPLOYMENTS, MESSAGES, arguments, span)


def by_name(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in exporter.get_finished_spans()}


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


async def test_litellms_span_carries_the_decision(
    tmp_path: Path, exporter: InMemorySpanExporter
) -> None:
    async with running(tmp_path) as plugin:
        await traced(plugin, call("call-1"), "request")
        record = next(plugin.parts.served._open.find("call-1")).record

    told = attributes(by_name(exporter)["request"])
    assert told["messplus.request_id"] == record.request_id
    assert told["messplus.zoo"] == "zoo"
    assert told["messplus.alpha"] == 0.8
    assert told["messplus.queue"] == record.queue
    assert told["messplus.chosen"] == told["messplus.routed"] == record.chosen
    assert told["messplus.reason"] == record.reason
    assert told["messplus.expected_satisfaction"] == record.expected_satisfaction
    assert told["messplus.is_exploration"] is False
    assert told["messplus.attempt"] == 1


async def test_encoding_and_deciding_are_spans_as_long_as_they_took(
    tmp_path: Path, exporter: InMemorySpanExporter
) -> None:
    async with running(tmp_path) as plugin:
        await traced(plugin, call("call-1"), "request")
        record = next(plugin.parts.served._open.find("call-1")).record

    spans = by_name(exporter)
    request, decide, encode = (
        spans[name] for name in ("request", "messplus.decide", "messplus.encode")
    )
    assert decide.parent is not None
    assert request.context is not None
    assert decide.parent.span_id == request.context.span_id
    assert encode.parent is not None
    assert decide.context is not None
    assert encode.parent.span_id == decide.context.span_id
    assert seconds(decide) == pytest.approx(record.decision_seconds, abs=2e-6)
    assert record.encode_seconds is not None
    assert seconds(encode) == pytest.approx(record.encode_seconds, abs=2e-6)
    assert attributes(encode)["messplus.encoder"] == record.encoder


def seconds(span: ReadableSpan) -> float:
    assert span.start_time is not None
    assert span.end_time is not None
    return (span.end_time - span.start_time) / 1e9


async def test_a_retry_is_an_attribute_and_draws_no_second_decision(
    tmp_path: Path, exporter: InMemorySpanExporter
) -> None:
    arguments = call("call-1")
    async with running(tmp_path) as plugin:
        await traced(plugin, arguments, "first")
        arguments["metadata"]["model_info"] = {"id": "small"}
        await traced(plugin, arguments, "second")

    names = [span.name for span in exporter.get_finished_spans()]
    assert names.count("messplus.decide") == 1
    told = attributes(by_name(exporter)["second"])
    assert told == {"messplus.routed": "openai/large", "messplus.attempt": 2}


async def test_nothing_is_drawn_where_nobody_traces(
    tmp_path: Path, exporter: InMemorySpanExporter
) -> None:
    arguments = call("call-1")
    async with running(tmp_path) as plugin:
        await plugin.async_filter_deployments("zoo", DEPLOYMENTS, MESSAGES, arguments)
        await plugin.async_filter_deployments(
            "zoo", DEPLOYMENTS, MESSAGES, call("call-2"), trace.INVALID_SPAN
        )
        counted = plugin.counters.as_dict()

    assert exporter.get_finished_spans() == ()
    assert counted == {}
