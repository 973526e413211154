"""Requests of a level with limits, written and read back: the fold is what was decided by."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.records import Record, RequestRecord
from litellm_messplus.routing.limits import LATE_SHARE, Lateness, Limits
from litellm_messplus.runtime.vocabulary import CallStatus
from litellm_messplus.state.entries import Decided, LimitedUse, Settled
from litellm_messplus.state.limits import logged
from litellm_messplus.status.build import read_status
from litellm_messplus.store import log
from litellm_messplus.store.entries import read_entries
from tests.support.builders import LARGE, NOW, exploration_call, request, served_call
from tests.support.folding import fold_all

LIMITS = logged(
    Limits(1.0, 0.5, 0.2, {LARGE: Lateness(0.25, 0.3)}, budget=50.0, spent=1.0, allowed=9.0),
    LimitedUse(0.25, 4.0),
)
BINDING = LIMITS | {"binding": "latency", "late_after": 2.0, "late_owed": 3.0}


def limited(request_id: str = "r1") -> RequestRecord:
    return request(request_id, limits=LIMITS)


async def test_the_log_keeps_the_limits_and_what_came_of_each_call(database: AsyncEngine) -> None:
    records: list[Record] = [
        limited(),
        served_call(seconds=2.5, cost=3.0),
        exploration_call(seconds=9.0, cost=1.0),
        limited("r2"),
        served_call("r2", seconds=None, cost=None, status=CallStatus.FAILURE),
        request("r3"),
        served_call("r3"),
    ]
    appended = await log.append(database, records)
    entries = [each async for each in read_entries(database, 0, appended.last)]
    uses = [each.expected_use for each in entries if isinstance(each, Decided)]
    ended = [each.limited for each in entries if isinstance(each, Settled)]
    assert uses == [LimitedUse(0.25, 4.0), LimitedUse(0.25, 4.0), None]
    assert [each and each[1:] for each in ended] == [
        ("r1", NOW.timestamp(), True, True, 3.0),
        ("r1", NOW.timestamp(), False, True, 1.0),
        ("r2", NOW.timestamp(), True, None, None),
        None,
    ]
    state = (await fold_all(database)).state
    account = state.limits.account("default")
    day = int(NOW.timestamp() // 86_400)
    assert account.late_owed == pytest.approx(1.0 - LATE_SHARE)
    assert account.spent(day) == pytest.approx(3.0 + 1.0 + 4.0)


async def test_the_log_tells_how_late_and_how_expensive_the_newest_were(
    database: AsyncEngine,
) -> None:
    now = datetime.now(UTC)
    records: list[Record] = []
    ends: tuple[dict[str, Any], ...] = (
        {"seconds": 3.0},
        {"seconds": 2.0},
        {"seconds": 9.0, "is_cache_hit": True},
        {"seconds": 0.1, "status": CallStatus.FAILURE},
        {"seconds": 9.0, "status": CallStatus.FAILURE},
        {"seconds": None},
    )
    for number, end in enumerate(ends):
        records += [
            request(f"r{number}", created_at=now, limits=BINDING, expected_t=number + 1),
            served_call(f"r{number}", cost=1.0, **end),
        ]
    records.append(exploration_call("r0", seconds=9.0, cost=0.5))
    yesterday = now - timedelta(days=1)
    records += [request("old", created_at=yesterday, limits=BINDING), served_call("old", cost=7.0)]
    records.append(request("newest", created_at=now, limits=BINDING))
    await log.append(database, records)
    found = (await read_status(database)).levels[0].limits
    assert found is not None
    assert found.latency is not None
    assert found.budget is not None
    assert found.binding == "latency"
    assert (found.latency.late, found.latency.ended) == (1, 4)
    assert found.latency.late_owed == 3.0
    assert found.budget.spent == pytest.approx(6.5)


async def test_where_the_newest_request_had_no_limits_there_are_none(database: AsyncEngine) -> None:
    await log.append(database, [request("r1", limits=BINDING), request("r2")])
    assert (await read_status(database)).levels[0].limits is None
