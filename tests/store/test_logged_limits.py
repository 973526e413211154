"""Requests of a level with limits, written and read back: the fold is what was decided by."""

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.records import CallStatus, Record, RequestRecord
from litellm_messplus.routing.limits import LATE_SHARE, Lateness, Limits
from litellm_messplus.state.entries import Decided, LimitedUse, Settled
from litellm_messplus.state.limits import logged
from litellm_messplus.store import log
from litellm_messplus.store.entries import read_entries
from tests.support.builders import (
    LARGE,
    NOW,
    exploration_call,
    request,
    served_call,
)
from tests.support.folding import fold_all

LIMITS = logged(
    Limits(1.0, 0.5, 0.2, {LARGE: Lateness(0.25, 0.3)}, budget=50.0, spent=1.0, allowed=9.0),
    LimitedUse(0.25, 4.0),
)


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
