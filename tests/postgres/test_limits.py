"""Limits besides alpha on Postgres: what is logged is folded and counted as on SQLite."""

from datetime import UTC, datetime

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.records import Record
from litellm_messplus.routing.limits import Lateness, Limits
from litellm_messplus.state.entries import LimitedUse
from litellm_messplus.state.limits import logged
from litellm_messplus.status.build import read_status
from litellm_messplus.store import log
from tests.support.builders import LARGE, request, served_call
from tests.support.folding import fold_all

LIMITS = logged(
    Limits(1.0, 2.0, 0.5, {LARGE: Lateness(0.25, 0.25)}, budget=50.0, allowed=9.0),
    LimitedUse(0.25, 4.0),
)


async def test_limits_are_folded_and_counted(database: AsyncEngine) -> None:
    now = datetime.now(UTC)
    for number, seconds in enumerate((0.5, 2.5, 0.5, 0.5)):
        name = f"r{number}"
        records: list[Record] = [
            request(name, created_at=now, limits=LIMITS),
            served_call(name, seconds=seconds, cost=3.0, is_cache_hit=number == 3),
        ]
        await log.append(database, records)
    account = (await fold_all(database)).state.limits.account("default")
    assert account.spent(account.day) == 12.0
    assert 0.7 < account.late_owed < 0.9
    found = (await read_status(database)).levels[0].limits
    assert found is not None
    assert found.latency is not None
    assert found.budget is not None
    assert (found.latency.late, found.latency.ended, found.budget.spent) == (1, 4, 12.0)
    assert found.binding == "latency"
