"""A decision in LiteLLM's own traces, on a real proxy, and what its callbacks get of our calls."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.patience import until
from tests.support.proxy import PAPER, Proxy, ask, zoo_config
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end

WATCHER = '''
"""Writes down what LiteLLM tells every callback, and every span that ends."""

import json
from pathlib import Path

from litellm.integrations.custom_logger import CustomLogger
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

HERE = Path(__file__).parent


def append(name, line):
    with (HERE / name).open("a") as file:
        file.write(json.dumps(line, default=str) + "\\n")


class Lines(SpanExporter):
    def export(self, spans):
        for span in spans:
            append("spans.jsonl", {
                "attributes": dict(span.attributes or {}),
            })
        return SpanExportResult.SUCCESS


provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(Lines()))
trace.set_tracer_provider(provider)


class Watcher(CustomLogger):
    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        given = kwargs["litellm_params"]
        metadata = {**(given.get("metadata") or {}), **(given.get("litellm_metadata") or {})}
        origin = metadata.get("internal_call_origin")
        append("events.jsonl", {**kwargs["standard_logging_object"], "origin": origin})


instance = Watcher()
'''


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, folder: Path) -> Iterator[Proxy]:
    (folder / "watcher.py").write_text(WATCHER)
    config = zoo_config(upstream.url, folder, zoo={**PAPER, "c": 0.0})
    config["litellm_settings"]["callbacks"] += ["watcher.instance", "otel"]
    config["router_settings"] = {"num_retries": 1, "retry_after": 0}
    running = Proxy(config, folder).start()
    yield running
    running.stop()


@pytest.fixture
def client(proxy: Proxy, upstream: Upstream) -> Iterator[httpx.Client]:
    upstream.script = lambda model, body: Reply()
    with proxy.client() as connected:
        yield connected


def lines(proxy: Proxy, name: str) -> list[dict[str, Any]]:
    path = proxy.folder / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_an_exploration_call_is_no_turn_of_a_user(proxy: Proxy, client: httpx.Client) -> None:
    ask(client)  # the first calls all of them
    proxy.wait_for_rows("SELECT call_id FROM calls WHERE role = 'exploration'", 2)

    def unseen() -> list[dict[str, Any]]:
        events = lines(proxy, "events.jsonl")
        return [each for each in events if each["origin"] == "messplus_exploration"]

    until(lambda: len(unseen()) >= 2)


def test_litellms_span_has_the_decision(proxy: Proxy, client: httpx.Client) -> None:
    request_id = ask(client).headers["x-messplus-request-id"]

    def of_request() -> list[dict[str, Any]]:
        spans = (span["attributes"] for span in lines(proxy, "spans.jsonl"))
        return [each for each in spans if each.get("messplus.request_id") == request_id]

    until(lambda: bool(of_request()), lambda: proxy.log[-4000:])
    for each in of_request():
        assert each["messplus.zoo"] == "zoo"
        assert each["messplus.routed"] == "openai/tiny"
