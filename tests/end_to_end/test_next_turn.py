"""The next request tells of the answer before it: in words of its own, or by what it asks."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from openai import OpenAI

from tests.support.keys import CUSTOM_AUTH
from tests.support.patience import until
from tests.support.proxy import Proxy, ask, zoo_config
from tests.support.upstream import Upstream

pytestmark = pytest.mark.end_to_end

QUESTION, AGAIN = "What is the capital of France?", "what is the capital of France?!"
IMPLICIT = "SELECT * FROM labels WHERE kind = 'implicit' AND request_id = ?"
FEEDBACK = "SELECT * FROM labels WHERE kind = 'feedback' AND request_id = ?"


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, folder: Path) -> Iterator[Proxy]:
    zoo = {"alpha": 0.7, "labels": {"implicit": {"within_seconds": 60}}}
    config = zoo_config(upstream.url, folder, zoo=zoo)
    (folder / "keys.py").write_text(CUSTOM_AUTH)
    config["general_settings"]["custom_auth"] = "keys.authenticate"
    running = Proxy(config, folder).start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def alice(proxy: Proxy) -> Iterator[httpx.Client]:
    with proxy.client("sk-alice") as client:
        yield client


def request_of(answer: httpx.Response) -> str:
    assert answer.status_code == 200, answer.text
    return answer.headers["x-messplus-request-id"]


def converse(client: httpx.Client, *texts: str, **body: Any) -> str:
    """One chat completion of a whole conversation, user and assistant in turn."""
    roles = ("user", "assistant")
    messages = [{"role": roles[place % 2], "content": text} for place, text in enumerate(texts)]
    answer = client.post(
        "/v1/chat/completions", json={"model": "zoo", "messages": messages, **body}
    )
    return request_of(answer)


def ended(proxy: Proxy, request_id: str) -> None:
    proxy.wait_for_rows("SELECT * FROM calls WHERE call_id = ?", 1, f"{request_id}.0")


@pytest.mark.parametrize("stream", [False, True])
def test_asking_again_is_a_weak_bad_label(proxy: Proxy, alice: httpx.Client, stream: bool) -> None:
    question = f"{QUESTION} ({stream})"
    first = converse(alice, question, stream=stream)
    ended(proxy, first)
    converse(alice, question, "fine", f"{question}!", stream=stream)

    (label,) = proxy.wait_for_rows(IMPLICIT, 1, first)

    assert (label["call_id"], label["value"], label["weight"]) == (f"{first}.0", 0.0, 0.3)
    assert label["comment"] == "asked again"


def test_going_on_is_a_weak_good_label(proxy: Proxy, alice: httpx.Client) -> None:
    first = converse(alice, "Who wrote Faust?")
    ended(proxy, first)
    converse(alice, "Who wrote Faust?", "fine", "In which year was it finished?")

    (label,) = proxy.wait_for_rows(IMPLICIT, 1, first)

    assert (label["value"], label["weight"], label["comment"]) == (1.0, 0.3, "went on")


def test_what_the_user_says_counts_before_what_was_read_from_behaviour(
    proxy: Proxy, alice: httpx.Client
) -> None:
    first = converse(alice, "How high is Mont Blanc?")
    ended(proxy, first)
    converse(alice, "How high is Mont Blanc?", "fine", "How high is Mont Blanc??")
    proxy.wait_for_rows(IMPLICIT, 1, first)

    alice.post("/messplus/feedback", json={"id": first, "satisfied": True}).raise_for_status()

    outcome = alice.get(f"/messplus/requests/{first}").json()["outcome"]
    assert (outcome["satisfaction"], outcome["satisfaction_kind"]) == (1.0, "feedback")
    assert len(proxy.rows(IMPLICIT, first)) == 1


def test_feedback_comes_with_the_next_request(proxy: Proxy) -> None:
    with OpenAI(base_url=f"{proxy.url}/v1", api_key="sk-alice") as client:
        first = client.chat.completions.create(
            model="zoo", messages=[{"role": "user", "content": "Tell me a joke"}]
        )
        verdict = {"id": first.id, "satisfied": False, "comment": "not funny"}
        client.chat.completions.create(
            model="zoo",
            messages=[{"role": "user", "content": "Tell me a better joke"}],
            extra_body={"metadata": {"messplus_feedback": verdict}},
        )

    (call,) = proxy.wait_for_rows("SELECT * FROM calls WHERE response_id = ?", 1, first.id)
    (label,) = proxy.wait_for_rows(FEEDBACK, 1, call["request_id"])
    assert (label["value"], label["weight"], label["comment"]) == (0.0, 1.0, "not funny")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/responses", {"input": "hello"}),
        ("/v1/messages", {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 9}),
        ("/v1/completions", {"prompt": "hello"}),
    ],
)
def test_on_every_surface(
    proxy: Proxy, alice: httpx.Client, path: str, body: dict[str, Any]
) -> None:
    first = request_of(ask(alice))
    brought = {"messplus_feedback": {"id": first, "score": 0.3}}

    request_of(alice.post(path, json={"model": "zoo", **body, "metadata": brought}))

    (label,) = proxy.wait_for_rows(FEEDBACK, 1, first)
    assert label["value"] == 0.3


@pytest.mark.parametrize(
    "brought",
    [
        "satisfied",
        {"id": "nobody", "satisfied": True},
        {"id": "{own}", "satisfied": "very", "comment": "a secret"},
        {"id": "{own}", "satisfied": True, "stars": 5},
        {"id": "{others}", "satisfied": True},
    ],
    ids=["no object", "an unknown request", "no verdict", "an unknown key", "another key's"],
)
@pytest.mark.counts("feedback_refused")
def test_feedback_that_cannot_be_taken_is_counted_and_the_request_served(
    proxy: Proxy, alice: httpx.Client, brought: Any
) -> None:
    with proxy.client("sk-bob") as bob:
        ids = {"{own}": request_of(ask(alice)), "{others}": request_of(ask(bob))}
    if isinstance(brought, dict):
        brought = {**brought, "id": ids.get(brought["id"], brought["id"])}
    labels = len(proxy.rows("SELECT * FROM labels"))
    refused = counters(proxy).get("feedback_refused", 0)

    request_of(ask(alice, metadata={"messplus_feedback": brought}))

    until(lambda: counters(proxy).get("feedback_refused", 0) == refused + 1)
    assert len(proxy.rows("SELECT * FROM labels")) == labels
    assert "a secret" not in proxy.log


def counters(proxy: Proxy) -> dict[str, int]:
    with proxy.client("sk-operator") as administrator:
        found: dict[str, int] = administrator.get("/messplus/health").json()
    return found
