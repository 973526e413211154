"""Feedback: whose it may be, what is refused and why, and that it counts once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.keys import CUSTOM_AUTH
from tests.support.patience import PATIENT
from tests.support.proxy import PAPER, Proxy, ask, zoo_config
from tests.support.upstream import Upstream

pytestmark = pytest.mark.end_to_end


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, folder: Path) -> Iterator[Proxy]:
    zoo = {**PAPER, "c": 0.0, "service_levels": {"gold": {"alpha": 0.9}}}
    config = zoo_config(upstream.url, folder, zoo=zoo, store_text=True)
    (folder / "keys.py").write_text(CUSTOM_AUTH)
    config["general_settings"]["custom_auth"] = "keys.authenticate"
    running = Proxy(config, folder).start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def alice(proxy: Proxy) -> Iterator[httpx.Client]:
    with proxy.client("sk-alice") as client:
        yield client


@pytest.fixture(scope="module")
def bob(proxy: Proxy) -> Iterator[httpx.Client]:
    with proxy.client("sk-bob") as client:
        yield client


def queue(client: httpx.Client) -> float:
    """The virtual queue that the next request of the client is decided at."""
    request_id = ask(client).headers["x-messplus-request-id"]
    return float(client.get(f"/messplus/requests/{request_id}").json()["queue"])


def test_by_call_id_and_by_response_id(alice: httpx.Client) -> None:
    answer = ask(alice)
    by_call = {"id": answer.headers["x-litellm-call-id"], "satisfied": True}
    by_response = {"id": answer.json()["id"], "satisfied": True, "comment": "well done 😀"}

    first = alice.post("/messplus/feedback", json=by_call)
    second = alice.post("/messplus/feedback", json=by_response)

    assert first.status_code == second.status_code == 200
    assert first.json()["request_id"] == second.json()["request_id"]


def test_a_second_verdict_replaces_the_first(alice: httpx.Client) -> None:
    for _ in range(3):  # a debt, so that the queue cannot hide a change at zero
        ruined = ask(alice).headers["x-litellm-call-id"]
        alice.post("/messplus/feedback", json={"id": ruined, "satisfied": False})
    before = queue(alice)
    answer = ask(alice).headers["x-litellm-call-id"]

    alice.post("/messplus/feedback", json={"id": answer, "satisfied": False})
    assert queue(alice) == pytest.approx(before + 0.7)
    alice.post("/messplus/feedback", json={"id": answer, "satisfied": True})
    assert queue(alice) == pytest.approx(before + 0.7 - 1.0)
    alice.post("/messplus/feedback", json={"id": answer, "satisfied": True})
    assert queue(alice) == pytest.approx(before + 0.7 - 1.0)


def test_another_keys_request_is_neither_labelled_nor_shown(
    alice: httpx.Client, bob: httpx.Client, proxy: Proxy
) -> None:
    """And nobody is told that it is there: it is answered as an unknown one, and as late."""
    call_id = ask(alice).headers["x-litellm-call-id"]
    labels = proxy.rows("SELECT COUNT(*) AS n FROM labels")

    for given in (call_id, "nobody"):
        refused = bob.post("/messplus/feedback", json={"id": given, "satisfied": False})
        shown = bob.get(f"/messplus/requests/{given}")
        for answer in (refused, shown):
            assert answer.status_code == 404
            assert answer.json() == {"detail": f"no request of this key is known as {given}"}
            assert answer.elapsed.total_seconds() >= 1.0
    assert alice.get(f"/messplus/requests/{call_id}").status_code == 200
    assert proxy.rows("SELECT COUNT(*) AS n FROM labels") == labels


def test_an_invalid_key_is_refused(proxy: Proxy) -> None:
    verdict = {"id": "x", "satisfied": True}
    with proxy.client("sk-nobody") as stranger:
        refused = stranger.post("/messplus/feedback", json=verdict)

    assert refused.status_code == 401
    keyless = httpx.post(f"{proxy.url}/messplus/feedback", json=verdict, timeout=PATIENT)
    assert keyless.status_code == 401


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"satisfied": True}, "id"),
        ({"id": "x"}, "exactly one"),
        ({"id": "x", "satisfied": True, "score": 1.0}, "exactly one"),
        ({"id": "x", "satisfied": "perhaps"}, "satisfied"),
        ({"id": "x", "score": 1.5}, "less than or equal to 1"),
        ({"id": "x", "score": "high"}, "score"),
        ({"id": "x", "satisfied": True, "stars": 5}, "stars"),
        ({"id": "", "satisfied": True}, "at least 1 character"),
        ([], "body"),
    ],
)
def test_malformed_feedback_gets_the_reason(
    alice: httpx.Client, proxy: Proxy, body: Any, reason: str
) -> None:
    labels = proxy.rows("SELECT COUNT(*) AS n FROM labels")

    refused = alice.post("/messplus/feedback", json=body)

    assert refused.status_code == 422
    assert reason in refused.text
    assert proxy.rows("SELECT COUNT(*) AS n FROM labels") == labels


def test_each_call_of_an_exploration_can_be_labelled(proxy: Proxy) -> None:
    with proxy.client("sk-gold") as gold:  # the first request of its level explores
        answer = ask(gold, "explored")
        request_id = answer.headers["x-messplus-request-id"]
        proxy.wait_for_rows("SELECT 1 FROM calls WHERE request_id = ?", 3, request_id)
        calls = gold.get(f"/messplus/requests/{request_id}").json()["calls"]
        for call in calls:
            verdict = {"id": request_id, "call_id": call["call_id"], "score": 0.25}
            assert gold.post("/messplus/feedback", json=verdict).status_code == 200
        labels = gold.get(f"/messplus/requests/{request_id}").json()["labels"]
        unknown = {"id": request_id, "call_id": f"{request_id}.9", "satisfied": True}
        refused = gold.post("/messplus/feedback", json=unknown)

    assert {label["call_id"] for label in labels} == {call["call_id"] for call in calls}
    assert [call["answer"] for call in calls] == ["fine", "fine", "fine"]
    assert refused.status_code == 404


@pytest.mark.parametrize("path", ["status", "metrics", "health"])
def test_what_is_of_all_is_for_operators_only(proxy: Proxy, alice: httpx.Client, path: str) -> None:
    with proxy.client("sk-operator") as operator:
        assert operator.get(f"/messplus/{path}").status_code == 200
    assert alice.get(f"/messplus/{path}").status_code == 403
