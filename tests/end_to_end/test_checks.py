"""Checks through a real proxy: every surface's answers become labels, and none can do harm."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.keys import CUSTOM_AUTH
from tests.support.patience import until
from tests.support.proxy import PAPER, Proxy, ask, zoo_config
from tests.support.upstream import Reply, Upstream

pytestmark = [pytest.mark.end_to_end, pytest.mark.counts("check_failures", "checks_timed_out")]
"""Two of the checks fail at every request: nothing else may come of it."""

FUNCTIONS = """
import asyncio
import time


def broken(call):
    raise RuntimeError("no such column")


def slow(call):
    time.sleep(1.0)
    return False


async def scored(call):
    await asyncio.sleep(0)
    return 0.25 if "score me" in call.request.conversation.last else None
"""
LABELS = "SELECT * FROM labels WHERE request_id = ? ORDER BY source, call_id"
ANSWER = "The answer is 42."
MESSAGES = [{"role": "user", "content": "What is 6 * 7?"}]
SURFACES: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/v1/chat/completions", {"messages": MESSAGES}),
    "text": ("/v1/completions", {"prompt": "What is 6 * 7?"}),
    "Anthropic": ("/v1/messages", {"messages": MESSAGES, "max_tokens": 9}),
    "responses": ("/v1/responses", {"input": "What is 6 * 7?"}),
}


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, folder: Path) -> Iterator[Proxy]:
    """The first request of a service level explores, and no other."""
    checks = {
        "complete": True,
        "json_schema": True,
        "reference": True,
        "callables": {
            "broken": {"callable": "own_checks:broken"},
            "slow": {"callable": "own_checks:slow", "timeout_seconds": 0.05},
            "scored": {"callable": "own_checks:scored"},
        },
    }
    levels = {"gold": {"alpha": 0.9}}
    zoo = {**PAPER, "c": 0.0, "labels": {"checks": checks}, "service_levels": levels}
    config = zoo_config(upstream.url, folder, zoo=zoo, flush_seconds=0.05)
    config["general_settings"]["custom_auth"] = "keys.authenticate"
    config["router_settings"] = {"num_retries": 0, "disable_cooldowns": True}
    (folder / "keys.py").write_text(CUSTOM_AUTH)
    (folder / "own_checks.py").write_text(FUNCTIONS)
    running = Proxy(config, folder).start()
    with running.client("sk-alice") as first:
        ask(first)
    yield running
    running.stop()


@pytest.fixture
def alice(proxy: Proxy, upstream: Upstream) -> Iterator[httpx.Client]:
    upstream.script = lambda model, body: Reply(text=ANSWER)
    upstream.requests.clear()
    with proxy.client("sk-alice") as client:
        yield client


def labels_of(proxy: Proxy, answer: httpx.Response, count: int = 1) -> list[dict[str, Any]]:
    return proxy.wait_for_rows(LABELS, count, answer.headers["x-messplus-request-id"])


def queue(client: httpx.Client) -> float:
    """The virtual queue that the next request of the client is decided at."""
    request_id = ask(client).headers["x-messplus-request-id"]
    return float(client.get(f"/messplus/requests/{request_id}").json()["queue"])


@pytest.mark.parametrize("place", ["metadata", "litellm_metadata"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("surface", SURFACES)
def test_a_reference_is_compared_with_the_answer_of_every_surface(
    alice: httpx.Client, proxy: Proxy, upstream: Upstream, surface: str, stream: bool, place: str
) -> None:
    path, body = SURFACES[surface]
    numeric = {"match": "numeric", "value": 41.9, "tolerance": 0.1}
    for reference, value in ((ANSWER.upper(), 1.0), ("It is 42", 0.0), (numeric, 1.0)):
        metadata = {"messplus_reference": reference}
        answer = alice.post(path, json={"model": "zoo", "stream": stream, place: metadata, **body})

        assert answer.status_code == 200, answer.text
        (label,) = labels_of(proxy, answer)
        assert (label["kind"], label["source"]) == ("check", "check:reference")
        assert label["value"] == value
    if place == "litellm_metadata":
        assert "messplus_reference" not in json.dumps(upstream.requests)


def test_a_label_of_a_check_moves_the_queue(alice: httpx.Client, proxy: Proxy) -> None:
    for _ in range(2):  # a debt, so that the queue cannot hide a change at zero
        ruined = {"id": ask(alice).headers["x-messplus-request-id"], "satisfied": False}
        assert alice.post("/messplus/feedback", json=ruined).status_code == 200
    before = queue(alice)
    wrong = ask(alice, metadata={"messplus_reference": "41"})
    labels_of(proxy, wrong)
    until(lambda: queue(alice) == pytest.approx(before + 0.7))

    verdict = {"id": wrong.headers["x-messplus-request-id"], "satisfied": True}
    assert alice.post("/messplus/feedback", json=verdict).status_code == 200
    assert queue(alice) == pytest.approx(before + 0.7 - 1.0)  # the user knows better


def test_every_call_of_an_exploration_is_labelled(
    alice: httpx.Client, proxy: Proxy, upstream: Upstream
) -> None:
    upstream.script = lambda model, body: Reply(text="41" if model == "tiny" else "42")
    with proxy.client("sk-gold") as gold:
        answer = ask(gold, metadata={"messplus_reference": "42"})

    values = {label["call_id"]: label["value"] for label in labels_of(proxy, answer, 3)}
    calls = proxy.rows(
        "SELECT * FROM calls WHERE request_id = ?", answer.headers["x-messplus-request-id"]
    )
    assert {call["candidate"]: values[call["call_id"]] for call in calls} == {
        "openai/tiny": 0.0,
        "openai/middle": 1.0,
        "openai/huge": 1.0,
    }


def test_an_error_that_the_user_saw_is_no_verdict_on_a_model(
    alice: httpx.Client, proxy: Proxy, upstream: Upstream
) -> None:
    upstream.script = lambda model, body: Reply(status=500)
    failed = ask(alice, metadata={"messplus_reference": "42"})
    assert failed.status_code == 500
    upstream.script = lambda model, body: Reply(text=ANSWER)

    labels_of(proxy, ask(alice, metadata={"messplus_reference": "42"}))  # the next one was checked

    assert proxy.rows(LABELS, failed.headers["x-messplus-request-id"]) == []


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("surface", ["chat", "responses"])
def test_an_answer_that_is_no_json_is_unsatisfactory(
    alice: httpx.Client, proxy: Proxy, surface: str, stream: bool
) -> None:
    demands: dict[str, dict[str, Any]] = {
        "chat": {"response_format": {"type": "json_object"}},
        "responses": {"text": {"format": {"type": "json_object"}}},
    }
    path, body = SURFACES[surface]

    answer = alice.post(path, json={"model": "zoo", "stream": stream, **body, **demands[surface]})

    (label,) = labels_of(proxy, answer)
    assert (label["source"], label["value"]) == ("check:json_schema", 0.0)
    assert label["comment"] == "the answer cannot be read as JSON"


def test_a_function_of_the_operators_labels_with_its_score(
    alice: httpx.Client, proxy: Proxy
) -> None:
    (label,) = labels_of(proxy, ask(alice, "please score me"))

    assert (label["source"], label["value"], label["comment"]) == ("check:scored", 0.25, None)


@pytest.mark.counts("references_malformed")
def test_functions_that_raise_or_take_too_long_and_patterns_that_never_end_change_nothing(
    alice: httpx.Client, proxy: Proxy, upstream: Upstream
) -> None:
    upstream.script = lambda model, body: Reply(text="a" * 60 + "!")
    never_ends = {"match": "regex", "value": "^(a+)+$"}
    malformed = {"match": "regex", "value": "(secret"}

    def counts() -> dict[str, int]:
        with proxy.client("sk-operator") as operator:
            found: dict[str, int] = operator.get("/messplus/health").json()
            return found

    before = counts()
    answers = [
        ask(alice, metadata={"messplus_reference": reference})
        for reference in (None, never_ends, malformed)
    ]

    assert [answer.status_code for answer in answers] == [200] * 3
    until(lambda: counts().get("references_malformed", 0) == 1)
    until(lambda: counts()["check_failures"] >= before["check_failures"] + 3)
    until(lambda: counts()["checks_timed_out"] >= before["checks_timed_out"] + 4)
    for answer in answers:
        request_id = answer.headers["x-messplus-request-id"]
        assert proxy.rows("SELECT * FROM labels WHERE request_id = ?", request_id) == []
    assert "no such column" in proxy.log
    assert "secret" not in proxy.log
