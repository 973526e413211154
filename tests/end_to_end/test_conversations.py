"""Sessions of agents through real proxies: no loop changes its model, and no request is refused."""

import json
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.support.agent_sessions import LOOP, Endpoint, run, turns_of, two_workers
from tests.support.proxy import Proxy
from tests.support.upstream import Upstream

pytestmark = pytest.mark.end_to_end

SESSIONS = 100


@pytest.fixture(scope="module")
def endpoint(upstream: Upstream) -> Endpoint:
    found = Endpoint()
    upstream.script = found.answer
    return found


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, folder: Path, endpoint: Endpoint) -> Iterator[Proxy]:
    running = two_workers(
        upstream, folder, cooldown_time=3, num_retries=2, flush_seconds=0.05
    ).start()
    yield running
    running.stop()


def expected(row: dict[str, Any]) -> dict[str, float]:
    """SQLite gives JSON as text."""
    found = row["estimated_cost"]
    costs: dict[str, float] = json.loads(found) if isinstance(found, str) else found
    return costs


def counters(proxy: Proxy) -> dict[str, Any]:
    with proxy.client() as client:
        found: dict[str, Any] = client.get("/messplus/health").json()
    return found


def test_no_loop_changes_its_model(proxy: Proxy, endpoint: Endpoint) -> None:
    answers = run(proxy, range(SESSIONS))

    assert {each.status_code for one in answers for each in one} == {200}
    wrong = ("identity_failures", "holds_unknown", "holds_broken", "routing_failures")
    assert [name for name in wrong if name in counters(proxy)] == [], proxy.log[-4000:]
    sessions = turns_of(proxy, answers)
    assert {len({row["deployment_id"] for row in one}) for one in sessions} == {1}
    assert len({row["served"] for one in sessions for row in one}) > 1, "all by one model"
    conversations = [{row["conversation"] for row in one} for one in sessions]
    assert {len(each) for each in conversations} == {1}, "a session in two conversations"
    assert len(set.union(*conversations)) == SESSIONS, "two sessions in one conversation"
    for one in sessions:
        assert [row["turn"] for row in one] == list(range(1, LOOP + 1))
        assert [row["hold"] for row in one] == [None, *["tool_loop"] * (LOOP - 1)]
        assert {row["reason"] for row in one[1:]} == {"held"}


def test_what_a_warm_turn_costs_was_expected(proxy: Proxy, endpoint: Endpoint) -> None:
    """Estimated over charged, in the median: 6.2 before caches were known."""
    answers = run(proxy, range(SESSIONS, SESSIONS + 30))

    warm = [row for one in turns_of(proxy, answers) for row in one[2:]]
    ratios = [expected(row)[row["chosen"]] / row["cost"] for row in warm]
    print(f"estimated over charged: {median(ratios):.3f} of {len(ratios)}")
    assert 0.9 <= median(ratios) <= 1.1


def test_loops_leave_a_model_that_refuses_and_nobody_is_refused(
    proxy: Proxy, endpoint: Endpoint
) -> None:
    """A deployment in cooldown is lost to its loops; LiteLLM's retries find another."""
    endpoint.refusing = "tiny"
    try:
        answers = run(proxy, range(200, 200 + SESSIONS // 4))
    finally:
        endpoint.refusing = None

    assert {each.status_code for one in answers for each in one} == {200}
    for one in turns_of(proxy, answers):
        for before, now in pairwise(one):
            if before["served"] != now["served"]:
                assert now["hold"] == "lost" or now["served"] != now["chosen"]


def test_the_view_says_what_conversations_cost(proxy: Proxy) -> None:
    answers = run(proxy, range(300, 303))
    rows = defaultdict(list)
    for one in turns_of(proxy, answers):
        for row in one:
            rows[row["conversation"]].append(row)
    for name, turns in rows.items():
        (found,) = proxy.rows("SELECT * FROM conversations WHERE conversation = ?", name)
        assert (found["turns"], found["lines"]) == (LOOP, 1)
        assert (found["held"], found["switches"]) == (LOOP - 1, 0)
        assert found["cost"] >= sum(row["cost"] for row in turns) * (1 - 1e-9)
