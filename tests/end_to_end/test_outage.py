"""Half a minute in which hardly anything is answered: it is told of, and not paid for later."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from litellm_messplus.runtime.vocabulary import FAILED, SERVING
from litellm_messplus.state.account import REPAID
from tests.support.patience import until
from tests.support.proxy import Proxy, ask, zoo_config
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end

ALPHA = 0.7
ZOO = {"alpha": ALPHA, "labels": {"checks": {"complete": True, "reference": True}}}
ZOOS = ("zoo", "strict")
BEFORE, ANSWERED, FAILED_REQUESTS, AFTER = 40, 10, 110, 30
REFERENCE = {"messplus_reference": {"match": "exact", "value": "fine"}}


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
    """One zoo that leaves failures apart, and one that counts them."""
    config = zoo_config(upstream.url, folder, zoo=ZOO)
    config["model_list"] += [{**each, "model_name": "strict"} for each in config["model_list"]]
    config["messplus"]["zoos"]["strict"] = {**ZOO, "failures": "count"}
    config["router_settings"] = {"num_retries": 0, "cooldown_time": 1}
    running = Proxy(config, folder).start()
    yield running
    running.stop()


@pytest.fixture
def client(proxy: Proxy) -> Iterator[httpx.Client]:
    with proxy.client() as connected:
        yield connected


def served(client: httpx.Client, zoo: str, count: int) -> list[httpx.Response]:
    return [
        ask(client, f"question {number}", model=zoo, litellm_metadata=REFERENCE)
        for number in range(count)
    ]


def queue(client: httpx.Client, zoo: str) -> float:
    levels = client.get("/messplus/status").raise_for_status().json()["levels"]
    return next(float(each["queue"]) for each in levels if each["zoo"] == zoo)


def alerts(client: httpx.Client) -> dict[str, str]:
    """Of the kind `failing`, by zoo."""
    found = client.get("/messplus/status").raise_for_status().json()["alerts"]
    return {each["zoo"]: each["message"] for each in found if each["kind"] == "failing"}


def settle(client: httpx.Client, proxy: Proxy, zoo: str, requests: int) -> None:
    """Wait until so many requests are in the log with their ends, each with the label it gets, and
    the queue has them: what the log has, the proxy may yet have to fold in."""
    until(lambda: is_settled(proxy, zoo, requests))
    (newest,) = proxy.rows(
        "SELECT request_id FROM requests WHERE zoo = ? ORDER BY position DESC LIMIT 1", zoo
    )
    # A request is shown once all that was handed over for the log is written and folded in.
    client.get(f"/messplus/requests/{newest['request_id']}").raise_for_status()


def is_settled(proxy: Proxy, zoo: str, requests: int) -> bool:
    """Whether each answer has the label of its reference, and each failure that counts its own.

    The check for completeness speaks first: the reference is compared in a process of its own.
    """
    (found,) = proxy.rows(
        "SELECT COUNT(*) AS ended, COALESCE(SUM(c.status = 'failure'), 0) AS failed, "
        "COUNT(l.call_id) AS labelled FROM requests r "
        "JOIN calls c ON c.call_id = r.request_id || '.0' "
        "LEFT JOIN (SELECT DISTINCT call_id FROM labels WHERE source IN (?, ?)) l "
        "ON l.call_id = c.call_id WHERE r.zoo = ?",
        "check:reference",
        FAILED,
        zoo,
    )
    without = found["failed"] if zoo == "zoo" else 0
    return bool(found["ended"] >= requests and found["labelled"] >= found["ended"] - without)


@pytest.mark.counts("exploration_failures")
def test_an_outage_is_told_of_and_leaves_nothing_to_pay(
    client: httpx.Client, proxy: Proxy, script: Scripted
) -> None:
    owed = {}
    for zoo in ZOOS:
        assert {each.status_code for each in served(client, zoo, BEFORE)} == {200}
        settle(client, proxy, zoo, BEFORE)
        owed[zoo] = queue(client, zoo)
    assert alerts(client) == {}

    for zoo in ZOOS:
        assert {each.status_code for each in served(client, zoo, ANSWERED)} == {200}
    script.is_down = True
    for zoo in ZOOS:
        assert 200 not in {each.status_code for each in served(client, zoo, FAILED_REQUESTS)}
    for zoo in ZOOS:
        settle(client, proxy, zoo, BEFORE + ANSWERED + FAILED_REQUESTS)
        rows = proxy.rows(
            "SELECT c.failure, l.source FROM calls c "
            "JOIN requests r ON r.request_id = c.request_id "
            "LEFT JOIN labels l ON l.call_id = c.call_id "
            "WHERE r.zoo = ? AND c.role = 'served' AND c.status = 'failure'",
            zoo,
        )
        assert len(rows) == FAILED_REQUESTS
        assert {row["failure"] for row in rows} <= set(SERVING)
        assert {row["source"] for row in rows} == ({None} if zoo == "zoo" else {FAILED})
    assert set(alerts(client)) == set(ZOOS)
    assert alerts(client)["zoo"].startswith(f"{FAILED_REQUESTS} of the ")

    # Ten answers that all miss are owed 7 at most; and the failures that count what the bound says.
    missed = ANSWERED * ALPHA
    assert queue(client, "zoo") <= owed["zoo"] + missed
    assert queue(client, "strict") <= owed["strict"] + missed + REPAID * (1.0 - ALPHA) + 1.0

    script.is_down = False
    until(lambda: ask(client).status_code == 200)
    assert {each.status_code for each in served(client, "zoo", AFTER)} == {200}
