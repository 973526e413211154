"""An answer that looks bad is replaced by another model's: the client gets one answer, and the log
has what both cost. Whatever goes wrong with the second, the client gets the first."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.proxy import Config, Proxy, ask, history_of, zoo_config
from tests.support.readings import with_forced_reading
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end

SORRY, RIGHT = "Sorry, however, maybe not.", "It is 4."
CALLS = "SELECT * FROM calls WHERE request_id = ? ORDER BY position"
CHAT = {"messages": [{"role": "user", "content": "hi"}]}


def config(upstream: Upstream, folder: Path) -> Config:
    made = zoo_config(upstream.url, folder, zoo={"alpha": 0.8, "second_answer": "auto"})
    made["router_settings"] = {"num_retries": 0}
    made["general_settings"]["cancel_on_disconnect"] = True
    first, then = "openai/huge", "openai/middle"
    return with_forced_reading(made, folder, first=first, sign="hedges", then=then)


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, folder: Path) -> Iterator[Proxy]:
    running = Proxy(config(upstream, folder), folder).start()
    yield running
    running.stop()


@pytest.fixture
def client(proxy: Proxy, upstream: Upstream) -> Iterator[httpx.Client]:
    upstream.script = script()
    upstream.requests.clear()
    with proxy.client() as connected:
        yield connected


def script(**middle: Any) -> Any:
    """What the models say: `huge` hedges, and `middle` replies as given."""
    return lambda model, body: (
        Reply(SORRY) if model == "huge" else Reply(**{"text": RIGHT, **middle})
    )


def models(answer: httpx.Response) -> tuple[str, str | None]:
    """Who answered, and whose answer that replaced."""
    headers = answer.headers
    return headers["x-messplus-model"], headers.get("x-messplus-first-model")


def rows(proxy: Proxy, answer: httpx.Response, count: int) -> list[dict[str, Any]]:
    return proxy.wait_for_rows(CALLS, count, answer.headers["x-messplus-request-id"])


def test_an_answer_that_looks_good_is_kept(
    client: httpx.Client, proxy: Proxy, upstream: Upstream
) -> None:
    upstream.script = lambda model, body: Reply(RIGHT)
    answer = ask(client)

    assert models(answer) == ("openai/huge", None)
    (served,) = rows(proxy, answer, 1)
    assert (served["role"], served["prompt_said"], served["answer_said"]) == ("served", 0.74, 0.9)
    assert upstream.models_called() == ["huge"]


def test_one_that_looks_bad_is_replaced_and_both_are_paid(
    client: httpx.Client, proxy: Proxy, upstream: Upstream
) -> None:
    upstream.script = script(prompt_tokens=20, completion_tokens=10)
    answer = ask(client)

    assert answer.json()["choices"][0]["message"]["content"] == RIGHT
    assert answer.json()["usage"]["total_tokens"] == 30
    assert answer.json()["model"] == "zoo"
    assert models(answer) == ("openai/middle", "openai/huge")
    assert upstream.models_called() == ["huge", "middle"]
    first, second = rows(proxy, answer, 2)
    request_id = answer.headers["x-messplus-request-id"]
    assert (first["call_id"], second["call_id"]) == (f"{request_id}.first", f"{request_id}.0")
    assert (first["role"], first["candidate"]) == ("replaced", "openai/huge")
    assert (second["role"], second["candidate"]) == ("served", "openai/middle")
    assert (first["prompt_said"], first["answer_said"]) == (0.74, 0.31)
    (outcome,) = proxy.rows("SELECT * FROM outcomes WHERE request_id = ?", request_id)
    assert outcome["served"] == "openai/middle"
    assert outcome["cost"] == pytest.approx(15 * 1e-4 + 30 * 1e-5)
    assert len(proxy.rows("SELECT * FROM requests WHERE request_id = ?", request_id)) == 1


def test_a_verdict_is_on_the_answer_that_the_client_got(client: httpx.Client, proxy: Proxy) -> None:
    answer = ask(client)
    verdict = {"id": answer.json()["id"], "satisfied": True}

    assert client.post("/messplus/feedback", json=verdict).status_code == 200
    request_id = answer.headers["x-messplus-request-id"]
    (label,) = proxy.wait_for_rows("SELECT * FROM labels WHERE request_id = ?", 1, request_id)
    assert label["call_id"] == f"{request_id}.0"
    assert history_of(client, answer)["outcome"]["served"] == "openai/middle"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/completions", {"prompt": "hi"}),
        ("/v1/messages", {"max_tokens": 9, **CHAT}),
    ],
)
def test_on_other_surfaces_too(
    client: httpx.Client, proxy: Proxy, path: str, body: dict[str, Any]
) -> None:
    answer = client.post(path, json={"model": "zoo", **body})

    assert RIGHT in answer.text, answer.text
    assert SORRY not in answer.text
    assert models(answer) == ("openai/middle", "openai/huge")
    assert [row["role"] for row in rows(proxy, answer, 2)] == ["replaced", "served"]


@pytest.mark.counts("second_answers_failed")
def test_a_client_with_a_timeout_gets_the_first_within_it(
    client: httpx.Client, proxy: Proxy, upstream: Upstream
) -> None:
    upstream.script = script(delay_seconds=20.0)
    started = time.monotonic()
    answer = ask(client, timeout=2)

    assert answer.json()["choices"][0]["message"]["content"] == SORRY
    assert time.monotonic() - started < 15.0
    (served,) = rows(proxy, answer, 1)
    assert served["role"] == "served"


def leave(client: httpx.Client) -> None:
    """Ask, and go before anything is answered."""
    with pytest.raises(httpx.ReadTimeout):
        client.post("/v1/chat/completions", json={"model": "zoo", **CHAT}, timeout=1.0)


def test_a_client_that_leaves_before_the_second_answer_pays_for_both(
    client: httpx.Client, proxy: Proxy, upstream: Upstream
) -> None:
    """LiteLLM cancels the first call of such a client, and no hook after it."""
    upstream.script = script(delay_seconds=2.0)
    known = proxy.rows("SELECT request_id FROM requests")
    leave(client)

    newest = proxy.wait_for_rows("SELECT request_id FROM requests", len(known) + 1)
    (request_id,) = (row["request_id"] for row in newest if row not in known)
    found = proxy.wait_for_rows(CALLS, 2, request_id)
    assert [row["role"] for row in found] == ["replaced", "served"]
    assert {row["status"] for row in found} == {"success"}
    (outcome,) = proxy.rows("SELECT * FROM outcomes WHERE request_id = ?", request_id)
    assert outcome["cost"] == pytest.approx(15 * 1e-4 + 15 * 1e-5)


def test_for_one_that_leaves_before_the_first_answer_no_other_model_is_called(
    client: httpx.Client, proxy: Proxy, upstream: Upstream
) -> None:
    upstream.script = lambda model, body: Reply(SORRY, delay_seconds=2.0)
    leave(client)

    (row,) = proxy.wait_for_rows("SELECT * FROM calls WHERE failure = 'client_gone'", 1)
    assert (row["role"], row["status"], row["candidate"]) == ("served", "failure", "openai/huge")
    assert upstream.models_called() == ["huge"]
