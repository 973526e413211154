"""Half a minute in which hardly anything is answered: it is told of, and not paid for later."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from litellm_messplus.runtime.vocabulary import SERVING
from tests.support.patience import until
from tests.support.proxy import Proxy, ask, zoo_config
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end

ALPHA = 0.7
ZOO = {
    "alpha": ALPHA,
    "labels": {"checks": {"complete": True, "callables": {"fine": "own_checks:fine"}}},
}
BEFORE, ANSWERED, FAILED_REQUESTS, AFTER = 40, 10, 110, 30
OWN = "def fine(call):\n    return call.answer.text == 'fine' if call.answer else None\n"


class Scripted:
    """Answers that satisfy always of the largest, and every other time of the others."""

    def __init__(self) -> None:
        self.is_down = False
        self._answers = 0

    def __call__(self, model: str, body: dict[str, Any]) -> Reply:
        if self.is_down:
            return Reply(status=500)
        self._answers += 1
        is_right = model == "huge" or self._answers % 2 == 0
        return Reply(text="fine" if is_right else "wrong")


@pytest.fixture(scope="module")
def script(upstream: Upstream) -> Scripted:
    found = Scripted()
    upstream.script = found
    return found


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, folder: Path, script: Scripted) -> Iterator[Proxy]:
    config = zoo_config(upstream.url, folder, zoo=ZOO)
    (folder / "own_checks.py").write_text(OWN)
    config["router_settings"] = {"num_retries": 0, "cooldown_time": 1}
    running = Proxy(config, folder).start()
    yield running
    running.stop()


def served(client: httpx.Client, count: int) -> set[int]:
    """The status codes of so many requests."""
    return {ask(client, f"question {number}").status_code for number in range(count)}


def queue(client: httpx.Client) -> float:
    (level,) = client.get("/messplus/status").raise_for_status().json()["levels"]
    return float(level["queue"])


def alerts(client: httpx.Client) -> list[str]:
    """Of the kind `failing`."""
    found = client.get("/messplus/status").raise_for_status().json()["alerts"]
    return [each["message"] for each in found if each["kind"] == "failing"]


def settle(client: httpx.Client, proxy: Proxy, requests: int) -> None:
    """Wait until so many requests are in the log with their ends, each answer with its label, and
    the queue has them: what the log has, the proxy may yet have to fold in."""
    until(lambda: is_settled(proxy, requests))
    (newest,) = proxy.rows("SELECT request_id FROM requests ORDER BY position DESC LIMIT 1")
    # A request is shown once all that was handed over for the log is written and folded in.
    client.get(f"/messplus/requests/{newest['request_id']}").raise_for_status()


def is_settled(proxy: Proxy, requests: int) -> bool:
    """Whether each answer has the label of the check of one's own."""
    (found,) = proxy.rows(
        "SELECT COUNT(*) AS ended, COALESCE(SUM(c.status = 'success'), 0) AS answered, "
        "COUNT(l.call_id) AS labelled FROM requests r "
        "JOIN calls c ON c.call_id = r.request_id || '.0' "
        "LEFT JOIN labels l ON l.call_id = c.call_id AND l.source = 'check:fine'"
    )
    return bool(found["ended"] >= requests and found["labelled"] >= found["answered"])


@pytest.mark.counts("exploration_failures")
def test_an_outage_is_told_of_and_leaves_nothing_to_pay(
    client: httpx.Client, proxy: Proxy, script: Scripted
) -> None:
    assert served(client, BEFORE) == {200}
    settle(client, proxy, BEFORE)
    owed = queue(client)
    assert alerts(client) == []

    assert served(client, ANSWERED) == {200}
    script.is_down = True
    assert 200 not in served(client, FAILED_REQUESTS)
    settle(client, proxy, BEFORE + ANSWERED + FAILED_REQUESTS)
    rows = proxy.rows(
        "SELECT c.failure, l.source FROM calls c LEFT JOIN labels l ON l.call_id = c.call_id "
        "WHERE c.role = 'served' AND c.status = 'failure'"
    )
    assert len(rows) == FAILED_REQUESTS
    assert {row["failure"] for row in rows} <= set(SERVING)
    assert {row["source"] for row in rows} == {None}
    alert, *of_endpoints = alerts(client)
    assert alert.startswith(f"{FAILED_REQUESTS} of the ")
    assert all(" fails: its endpoint " in each for each in of_endpoints)

    # Ten answers that all miss are owed 7 at most.
    assert queue(client) <= owed + ANSWERED * ALPHA

    script.is_down = False
    until(lambda: ask(client).status_code == 200)
    assert served(client, AFTER) == {200}
