"""What a user of the proxy sees, and what the log then says."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.patience import until
from tests.support.proxy import PAPER, Proxy, ask, deployment, history_of, patient, zoo_config
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end

SERVED = "SELECT * FROM calls WHERE role = 'served' AND request_id = ?"


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, folder: Path) -> Iterator[Proxy]:
    """Never explores after the first request, so that every test knows what is chosen."""
    config = zoo_config(upstream.url, folder, zoo={**PAPER, "c": 0.0})
    config["model_list"] += [
        deployment("other", "other", upstream.url, 1e-6),
        deployment("backup", "backup", upstream.url, 1e-6),
    ]
    config["router_settings"] = {"num_retries": 2, "fallbacks": [{"zoo": ["backup"]}]}
    running = Proxy(patient(config, folder), folder).start()
    yield running
    running.stop()


@pytest.fixture
def client(proxy: Proxy, upstream: Upstream) -> Iterator[httpx.Client]:
    upstream.script = lambda model, body: Reply(text=f"from {model}")
    upstream.requests.clear()
    with proxy.client() as connected:
        yield connected


def test_the_first_request_is_answered_by_the_largest_and_explored_on_all(
    client: httpx.Client, proxy: Proxy, upstream: Upstream
) -> None:
    answer = ask(client, "the very first")

    assert answer.json()["choices"][0]["message"]["content"] == "from huge"
    assert answer.headers["x-messplus-model"] == "openai/huge"
    assert history_of(client, answer)["is_exploration"]
    request_id = answer.headers["x-messplus-request-id"]
    calls = proxy.wait_for_rows("SELECT * FROM calls WHERE request_id = ?", 3, request_id)
    assert sorted(upstream.models_called()) == ["huge", "middle", "tiny"]
    bodies = [{**body, "model": "any"} for body in upstream.requests]
    assert bodies[0] == bodies[1] == bodies[2]
    assert {call["candidate"]: call["role"] for call in calls} == {
        "openai/huge": "served",
        "openai/middle": "exploration",
        "openai/tiny": "exploration",
    }
    # 15 tokens each at 1e-4, 1e-5 and 1e-6: the cost of every call counts.
    (outcome,) = proxy.rows("SELECT * FROM outcomes WHERE request_id = ?", request_id)
    assert outcome["cost"] == pytest.approx(15 * (1e-4 + 1e-5 + 1e-6))
    assert outcome["cost_largest"] == pytest.approx(15 * 1e-4)


def test_without_debt_the_cheapest_serves(client: httpx.Client) -> None:
    answer = ask(client)

    assert answer.headers["x-messplus-model"] == "openai/tiny"
    told = history_of(client, answer)
    assert (told["is_exploration"], told["service_level"]) == (False, "default")
    assert answer.json()["model"] == "zoo"


def test_a_stream_is_routed_and_takes_feedback_the_moment_it_ends(
    client: httpx.Client, proxy: Proxy
) -> None:
    body = {"model": "zoo", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    with client.stream("POST", "/v1/chat/completions", json=body) as stream:
        assert stream.headers["x-messplus-model"] == "openai/tiny"
        lines = [line for line in stream.iter_lines() if line.startswith("data: {")]
    response_id = httpx.Response(200, content=lines[0].removeprefix("data: ")).json()["id"]

    accepted = client.post("/messplus/feedback", json={"id": response_id, "satisfied": True})

    assert accepted.status_code == 200
    request_id = accepted.json()["request_id"]
    (served,) = proxy.wait_for_rows(SERVED, 1, request_id)
    assert (served["prompt_tokens"], served["completion_tokens"]) == (10, 5)
    assert served["cost"] == pytest.approx(15 * 1e-6)
    assert served["cost_source"] == "measured"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/completions", {"prompt": "hi"}),
        ("/v1/responses", {"input": "hi"}),
        ("/v1/messages", {"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}),
    ],
)
def test_every_surface_is_routed(
    client: httpx.Client, proxy: Proxy, path: str, body: dict[str, Any], stream: bool
) -> None:
    answer = client.post(path, json={"model": "zoo", "stream": stream, **body})

    assert answer.status_code == 200, answer.text
    assert ("text/event-stream" in answer.headers["content-type"]) is stream
    assert answer.headers["x-messplus-model"] == "openai/tiny"
    call_id = answer.headers["x-litellm-call-id"]
    (served,) = proxy.wait_for_rows(SERVED, 1, answer.headers["x-messplus-request-id"])
    assert (served["candidate"], served["status"]) == ("openai/tiny", "success")
    assert served["prompt_tokens"] == 10
    assert client.post("/messplus/feedback", json={"id": call_id, "score": 0.5}).status_code == 200


@pytest.mark.parametrize("verb", ["generateContent", "streamGenerateContent?alt=sse"])
def test_geminis_api_is_routed(client: httpx.Client, proxy: Proxy, verb: str) -> None:
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    answer = client.post(f"/v1beta/models/zoo:{verb}", json=body)

    assert answer.status_code == 200, answer.text
    assert '"candidates"' in answer.text
    request_id = answer.headers["x-messplus-request-id"]
    (served,) = proxy.wait_for_rows(SERVED, 1, request_id)
    told = answer.headers["x-messplus-model"]
    assert (served["candidate"], served["status"]) == (told, "success")
    assert not served["served_not_chosen"]
    assert (served["prompt_tokens"], served["completion_tokens"]) == (10, 5)
    for each in (request_id, answer.headers["x-litellm-call-id"]):
        given = client.post("/messplus/feedback", json={"id": each, "score": 0.5})
        assert given.status_code == 200, given.text


def test_a_response_takes_feedback_by_the_id_in_its_body(
    client: httpx.Client, proxy: Proxy
) -> None:
    """LiteLLM encrypts it, which makes it long."""
    answer = client.post("/v1/responses", json={"model": "zoo", "input": "hi"})
    verdict = {"id": answer.json()["id"], "satisfied": True}

    accepted = client.post("/messplus/feedback", json=verdict)

    assert accepted.status_code == 200, accepted.text
    assert accepted.json()["request_id"] == answer.headers["x-messplus-request-id"]
    (served,) = proxy.wait_for_rows(SERVED, 1, accepted.json()["request_id"])
    assert len(served["response_id"]) <= 255  # a column of Postgres holds no more


def test_a_streamed_response_takes_feedback_by_the_id_in_its_events(client: httpx.Client) -> None:
    """LiteLLM encrypts it, for each answer anew."""
    body = {"model": "zoo", "input": "hi", "stream": True}
    with client.stream("POST", "/v1/responses", json=body) as stream:
        request_id = stream.headers["x-messplus-request-id"]
        events = [line for line in stream.iter_lines() if '"response":' in line]
    response_id = json.loads(events[0].removeprefix("data: "))["response"]["id"]

    accepted = client.post("/messplus/feedback", json={"id": response_id, "satisfied": True})

    assert accepted.status_code == 200, accepted.text
    assert accepted.json()["request_id"] == request_id


def test_other_groups_pass_untouched(client: httpx.Client, proxy: Proxy) -> None:
    before = proxy.rows("SELECT COUNT(*) AS n FROM requests")
    body = {"model": "other", "messages": [{"role": "user", "content": "hi"}]}

    answer = client.post("/v1/chat/completions", json=body)

    assert answer.status_code == 200
    assert not [name for name in answer.headers if name.startswith("x-messplus")]
    assert proxy.rows("SELECT COUNT(*) AS n FROM requests") == before


def test_nothing_of_the_routing_reaches_the_upstream(
    client: httpx.Client, upstream: Upstream
) -> None:
    ask(client, temperature=0.5)

    (body,) = upstream.requests
    assert set(body) <= {"model", "messages", "temperature"}


def test_a_retry_goes_to_the_next_best_and_the_label_to_who_served(
    client: httpx.Client, proxy: Proxy, upstream: Upstream
) -> None:
    upstream.script = lambda model, body: Reply(status=500 if model == "tiny" else 200)

    answer = ask(client)

    assert answer.status_code == 200
    assert upstream.models_called() == ["tiny", "middle"]
    assert answer.headers["x-messplus-model"] == "openai/middle"
    request_id = answer.headers["x-messplus-request-id"]
    (served,) = proxy.wait_for_rows(SERVED, 1, request_id)
    assert served["candidate"] == "openai/middle"
    (request,) = proxy.rows("SELECT * FROM requests WHERE request_id = ?", request_id)
    assert request["chosen"] == "openai/tiny"


def test_a_fallback_outside_the_zoo_still_counts_towards_the_promise(
    client: httpx.Client, proxy: Proxy, upstream: Upstream
) -> None:
    upstream.script = lambda model, body: Reply(status=200 if model == "backup" else 500)

    answer = ask(client)

    assert answer.status_code == 200
    request_id = answer.headers["x-messplus-request-id"]
    (served,) = proxy.wait_for_rows(SERVED, 1, request_id)
    assert (served["candidate"], served["model"]) == (None, "openai/backup")
    verdict = {"id": request_id, "satisfied": False}
    assert client.post("/messplus/feedback", json=verdict).status_code == 200
    # One unsatisfied answer at alpha 0.7 adds 0.7 to the queue of the next decision.
    before = client.get(f"/messplus/requests/{request_id}").json()["queue"]
    upstream.script = lambda model, body: Reply()
    next_id = ask(client).headers["x-messplus-request-id"]
    assert client.get(f"/messplus/requests/{next_id}").json()["queue"] == pytest.approx(
        before + 0.7
    )
    client.post("/messplus/feedback", json={"id": request_id, "satisfied": True})


def test_a_request_that_fails_everywhere_fails_as_litellm_lets_it(
    client: httpx.Client, proxy: Proxy, upstream: Upstream
) -> None:
    upstream.script = lambda model, body: Reply(status=500)

    answer = ask(client)

    assert answer.status_code == 500
    assert "scripted failure" in answer.text
    failed = proxy.wait_for_rows("SELECT * FROM calls WHERE status = 'failure'", 1)
    assert failed[-1]["cost"] is None
    upstream.script = lambda model, body: Reply()
    until(lambda: ask(client).status_code == 200)
