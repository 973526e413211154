"""A decision in LiteLLM's own logs and traces, on a real proxy: its standard logging object as a
callback gets it, its own figure of savings, and the attributes of its spans."""

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
SURFACES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hello"}]},
    "/v1/completions": {"prompt": "hello"},
    "/v1/messages": {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 9},
    "/v1/responses": {"input": "hello"},
}


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, folder: Path) -> Iterator[Proxy]:
    (folder / "watcher.py").write_text(WATCHER)
    config = zoo_config(upstream.url, folder, zoo={**PAPER, "c": 0.0})
    config["litellm_settings"]["callbacks"] += ["watcher.instance", "otel"]
    config["general_settings"]["plugins"] = [
        {"name": "messplus", "display_name": "Messplus", "url": "http://127.0.0.1/messplus/ui"}
    ]
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


def event_of(proxy: Proxy, call_id: str) -> dict[str, Any]:
    """The standard logging object of a user's call."""

    def found() -> list[dict[str, Any]]:
        return [each for each in lines(proxy, "events.jsonl") if each["litellm_call_id"] == call_id]

    until(lambda: bool(found()), lambda: proxy.log[-4000:])
    return found()[0]


@pytest.mark.parametrize("route", SURFACES)
def test_the_log_entry_of_every_surface_shows_the_decision(
    proxy: Proxy, client: httpx.Client, route: str
) -> None:
    answer = client.post(route, json={"model": "zoo", **SURFACES[route]})
    event = event_of(proxy, answer.headers["x-litellm-call-id"])

    card = event["metadata"]["routing_decision"]
    assert card["router_type"] == "messplus"
    assert card["router_model_name"] == "zoo"
    assert card["routed_model"] == answer.headers["x-messplus-model"]
    assert card["savings_baseline_model"] == "openai/huge"


def test_litellm_counts_the_savings_itself(proxy: Proxy, client: httpx.Client) -> None:
    ask(client)  # the first calls all of them
    answer = ask(client)
    event = event_of(proxy, answer.headers["x-litellm-call-id"])

    assert answer.headers["x-messplus-model"] == "openai/tiny"
    tokens = event["prompt_tokens"] + event["completion_tokens"]
    assert event["autorouter_savings"] == pytest.approx(tokens * (1e-4 - 1e-6))


def test_an_exploration_call_has_no_card_and_is_no_turn_of_a_user(
    proxy: Proxy, client: httpx.Client
) -> None:
    proxy.wait_for_rows("SELECT call_id FROM calls WHERE role = 'exploration'", 2)

    def unseen() -> list[dict[str, Any]]:
        events = lines(proxy, "events.jsonl")
        return [each for each in events if each["origin"] == "messplus_exploration"]

    until(lambda: len(unseen()) >= 2)
    for each in unseen():
        assert each["metadata"].get("routing_decision") is None
        assert each["autorouter_savings"] is None


def test_what_a_client_writes_there_is_not_believed(proxy: Proxy, client: httpx.Client) -> None:
    forged = {"router_type": "complexity", "router_model_name": "mine", "cause": "forged"}
    answer = ask(client, metadata={"routing_decision": forged})
    event = event_of(proxy, answer.headers["x-litellm-call-id"])

    assert event["metadata"]["routing_decision"]["router_type"] == "messplus"


def test_litellms_span_has_the_decision(proxy: Proxy, client: httpx.Client) -> None:
    request_id = ask(client).headers["x-messplus-request-id"]

    def of_request() -> list[dict[str, Any]]:
        spans = (span["attributes"] for span in lines(proxy, "spans.jsonl"))
        return [each for each in spans if each.get("messplus.request_id") == request_id]

    until(lambda: bool(of_request()), lambda: proxy.log[-4000:])
    for each in of_request():
        assert each["messplus.zoo"] == "zoo"
        assert each["messplus.routed"] == "openai/tiny"


def test_the_log_names_the_end_user_and_the_tags(proxy: Proxy, client: httpx.Client) -> None:
    ask(client, user="customer-7", metadata={"tags": ["search"]})
    query = "SELECT end_user, tags FROM requests WHERE end_user IS NOT NULL"
    [row] = proxy.wait_for_rows(query, 1)

    assert row["end_user"] == "customer-7"
    assert row["tags"] in ('["search"]', ["search"])


def test_litellms_menu_lists_the_page(client: httpx.Client) -> None:
    answer = client.get("/api/plugins")

    assert answer.status_code == 200
    assert "Messplus" in answer.text
