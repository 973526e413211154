"""A thousand sessions of agents while models fail and connections are made anew: no loop changes
its model for nothing, and no request is refused."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support.agent_sessions import LOOP, Endpoint, run, turns_of, two_workers
from tests.support.proxy import Proxy
from tests.support.upstream import Upstream

pytestmark = pytest.mark.faults

SESSIONS = 1_000
ANEW = 0.3
"""Of the steps: each second one of these reaches the other worker."""
FAILING = 0.02


@pytest.fixture
def proxy(upstream: Upstream, tmp_path: Path) -> Iterator[Proxy]:
    running = two_workers(upstream, tmp_path, cooldown_time=1, num_retries=3).start()
    yield running
    running.stop()


def is_explained(row: dict[str, Any]) -> bool:
    """Whether the model was gone, or LiteLLM went to another after it had failed this request."""
    return bool(row["hold"] == "lost" or row["served"] != row["chosen"])


def test_a_thousand_sessions(proxy: Proxy, upstream: Upstream) -> None:
    """Models fail by 429, 500 and 503, and LiteLLM leaves each out for a second."""
    upstream.script = Endpoint(failing=FAILING).answer
    answers = run(proxy, range(SESSIONS), anew=ANEW)

    assert {each.status_code for one in answers for each in one} == {200}
    sessions = turns_of(proxy, answers)
    switches = [
        now
        for one in sessions
        for before, now in pairwise(one)
        if before["served"] != now["served"]
    ]
    holds = Counter(row["hold"] for one in sessions for row in one)
    print(f"{SESSIONS * LOOP} requests: {len(switches)} switches, held {dict(holds)}")
    assert [row for row in switches if not is_explained(row)] == []
    assert holds["unknown"] == 0
    assert {len({row["conversation"] for row in one}) for one in sessions} == {1}
    assert len({row["conversation"] for one in sessions for row in one}) == SESSIONS
