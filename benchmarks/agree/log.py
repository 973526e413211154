"""One log with everything in it that figures may get wrong, over the three days before now.

`zoo` is routed, explores, and has an outage; `other` is a
canary; `quiet` is only watched. Of all, labels tie, some weigh
nothing or were bought, answers come from a cache, and calls fail that no user saw.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from pathlib import Path

from litellm_messplus.records import (
    CallRecord,
    GradingRecord,
    LabelRecord,
    Record,
    RequestRecord,
)
from litellm_messplus.runtime.vocabulary import (
    SERVING,
    CallRole,
    CallStatus,
    Failure,
    LabelKind,
    level_before,
)
from litellm_messplus.store import log, snapshots, zoo_modes
from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.store.snapshots import Snapshot
from litellm_messplus.store.zoo_modes import ModeRow
from litellm_messplus.switching.modes import Arm, Mode
from litellm_messplus.upkeep.prune import prune
from tests.support.builders import LARGE, SMALL, label, traffic, with_columns
from tests.support.summing import eventful

ZOOS = ("other", "quiet", "zoo")
OUTAGE = (0.8, 0.9)
"""Between which shares of its requests nothing answers in `zoo`."""
FORECAST = {
    "requests": 300,
    "called": 150,
    "satisfaction": {"estimate": 0.6, "low": 0.5, "high": 0.7},
    "cost": {"estimate": 3.0, "low": 2.0, "high": 4.0},
}
Group = list[Record]
"""A request, with what happened to it."""


def midnight(now: datetime, days: int = 0) -> datetime:
    """Return the beginning of the day so many days before."""
    return datetime.combine(now.date(), time.min, UTC) - timedelta(days=days)


async def write(path: Path, count: int, now: datetime) -> None:
    """Write the log of some 3.5 times ``count`` requests to a new database, and what became of the
    zoos' modes a day ago."""
    engine = create_engine(f"sqlite+aiosqlite:///{path}")
    try:
        await migrate(engine)
        records = list(_dated(count, now))
        for start in range(0, len(records), 50):
            await log.append(engine, records[start : start + 50])
        for zoo, mode in (("zoo", Mode.ON), ("other", Mode.CANARY), ("quiet", Mode.WATCH)):
            forecast = None if mode is Mode.WATCH else FORECAST
            await zoo_modes.append(
                engine,
                ModeRow(zoo, 1, mode, 0.33, "litellm", "key", "", midnight(now, 1), "", forecast),
            )
    finally:
        await engine.dispose()


async def prune_half(path: Path, now: datetime) -> int:
    """Prune the first day, and a quarter of the second; returns how many requests went."""
    engine = create_engine(f"sqlite+aiosqlite:///{path}")
    position = await log.head(engine)
    for zoo in ZOOS:  # which only bound what is pruned
        await snapshots.save(engine, Snapshot(zoo, position, "", b""))
    before = midnight(now, 2) + timedelta(hours=6)
    pruned = await prune(str(path), before)
    async with engine.begin() as connection:
        await connection.exec_driver_sql("DELETE FROM snapshots")
    await engine.dispose()
    return pruned.requests


def _dated(count: int, now: datetime) -> Iterator[Record]:
    """Yield the requests of all zoos over the days, side by side."""
    zoos = [*_routed(count), list(_watched(count))]
    placed = [
        (number / len(zoo), place, group)
        for place, zoo in enumerate(zoos)
        for number, group in enumerate(zoo)
    ]
    groups = [group for *_, group in sorted(placed, key=lambda each: each[:2])]
    begin = midnight(now, 3)
    step = (now - timedelta(minutes=1) - begin) / len(groups)
    for number, group in enumerate(groups):
        at = begin + number * step
        for record in group:
            match record:
                case RequestRecord():
                    yield replace(record, created_at=at)
                case CallRecord():
                    yield replace(record, ended_at=at + timedelta(seconds=2))
                case LabelRecord() | GradingRecord():
                    yield replace(record, created_at=at + timedelta(seconds=20))


def _routed(count: int) -> Iterator[list[Group]]:
    groups: dict[str, Group] = {}
    for record in eventful(count, 11):
        assert isinstance(record, RequestRecord | CallRecord | LabelRecord | GradingRecord)
        groups.setdefault(record.request_id, []).append(record)
    for zoo in ("zoo", "other"):
        own = [group for name, group in groups.items() if name.startswith(zoo)]
        begin, end = (int(share * len(own)) for share in OUTAGE)
        for number in range(begin, end) if zoo == "zoo" else ():
            own[number] = list(_failing(own[number], number))
        yield [list(_varied(group, zoo, number)) for number, group in enumerate(own)]


def _failing(group: Group, number: int) -> Iterator[Record]:
    """Let the served call fail."""
    who: tuple[Failure, ...] = (*SERVING, Failure.CLIENT_GONE)
    for record in group:
        if isinstance(record, CallRecord) and record.role is CallRole.SERVED:
            record = replace(
                record,
                status=CallStatus.FAILURE,
                failure=who[number % len(who)],
                is_cache_hit=False,
                cost=None,
            )
        yield record


def _varied(group: Group, zoo: str, number: int) -> Iterator[Record]:
    """Yield the request first; a failed one has no label."""
    request = next(each for each in group if isinstance(each, RequestRecord))
    calls = [each for each in group if isinstance(each, CallRecord)]
    served = next(each for each in calls if each.role is CallRole.SERVED)
    request = with_columns(
        request,
        policy="adaptive",
        is_exploration=len(calls) > 1,
        key_hash=("0aa", "1bb", "2cc")[number % 3],
        queue=number % 9 - 3.0,
        price=1.0 + number % 4,
        largest=LARGE,
        prompt="Why is the sky blue?",
    )
    yield _before(request, number) if zoo == "other" and number % 3 else request
    failed = served.status is CallStatus.FAILURE
    for record in group:
        is_label = isinstance(record, LabelRecord) and record.call_id == served.call_id
        if not isinstance(record, RequestRecord) and not (failed and is_label):
            yield record
    if not failed and number % 10 == 3:  # equal values: which of the two counts?
        for place, (source, weight) in enumerate((("a", 1.0), ("b", 0.3), ("a", 0.5))):
            check = label(request.request_id, 0.0, label_id=f"{request.request_id}-tie{place}")
            yield replace(check, kind=LabelKind.CHECK, source=f"check:{source}", weight=weight)


def _before(request: RequestRecord, number: int) -> RequestRecord:
    """Have it served as before, decided in parallel."""
    return with_columns(
        request,
        arm=Arm.BEFORE,
        service_level=level_before(request.service_level),
        would_choose=SMALL,
        would_cost=1.5 + number % 2,
        sample_probability=0.5 if request.is_exploration else None,
    )


def _watched(count: int) -> Iterator[Group]:
    group: Group = []
    for record in traffic(count // 2, 5, prefix="quiet", zoo="quiet"):
        if isinstance(record, RequestRecord) and group:
            yield list(_seen(group))
            group = []
        group.append(record)
    yield list(_seen(group))


def _seen(group: Group) -> Iterator[Record]:
    for number, record in enumerate(_varied(group, "quiet", len(group))):
        yield _before(record, number) if isinstance(record, RequestRecord) else record
