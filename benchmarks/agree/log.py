"""One log with everything in it that figures may get wrong, over the three days before now.

`zoo` is routed under limits, explores, is measured in joules, and has an outage; `other` is a
canary; `quiet` is only watched; `whole` counts conversations. Of all, labels tie, some weigh
nothing or were bought, answers come from a cache, and calls fail that no user saw.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from pathlib import Path

from litellm_messplus.records import (
    CallRecord,
    EnergyRecord,
    GradingRecord,
    LabelRecord,
    Record,
    RequestRecord,
)
from litellm_messplus.runtime.vocabulary import (
    FAILED,
    SERVING,
    CallRole,
    CallStatus,
    Failure,
    LabelKind,
    level_before,
)
from litellm_messplus.store import log, zoo_modes
from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.store.zoo_modes import ModeRow
from litellm_messplus.switching.modes import Arm, Mode
from litellm_messplus.upkeep.prune import prune
from tests.support.builders import LARGE, SMALL, label, served_call, traffic, with_columns
from tests.support.summing import eventful
from tests.support.whole_conversations import begun, turn

ZOOS = ("other", "quiet", "whole", "zoo")
LIMITS = {
    "expected": {"late": 0.2, "cost": 3.0}, "binding": "latency", "late_after": 0.3,
    "late_owed": 3.2, "late_price": 0.25, "late": {SMALL: 0.3, LARGE: 0.1},
    "budget": 500.0, "spent": 120.0, "allowed": 250.0, "strain": 1.0,
}  # fmt: skip
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
    before = midnight(now, 2) + timedelta(hours=6)
    return (await prune(str(path), before, None, ZOOS)).rows["requests"]


def _dated(count: int, now: datetime) -> Iterator[Record]:
    """Yield the requests of all zoos over the days, side by side."""
    zoos = [*_routed(count), list(_watched(count)), list(_whole(count))]
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
                case EnergyRecord():
                    yield replace(record, measured_at=at + timedelta(seconds=5))
                case LabelRecord() | GradingRecord():
                    yield replace(record, created_at=at + timedelta(seconds=20))


def _routed(count: int) -> Iterator[list[Group]]:
    groups: dict[str, Group] = {}
    for record in eventful(count, 11):
        assert isinstance(
            record, RequestRecord | CallRecord | EnergyRecord | LabelRecord | GradingRecord
        )
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
    """Yield the request first; of a failed one, only at `gold` and only the failure is labelled."""
    request = next(each for each in group if isinstance(each, RequestRecord))
    calls = [each for each in group if isinstance(each, CallRecord)]
    served = next(each for each in calls if each.role is CallRole.SERVED)
    request = with_columns(
        request,
        policy="adaptive",
        is_exploration=len(calls) > 1,
        limits=LIMITS if zoo == "zoo" else None,
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
    if failed and request.service_level == "gold":
        check = label(request.request_id, 0.0, label_id=f"{request.request_id}-failed")
        yield replace(check, kind=LabelKind.CHECK, source=FAILED)
    elif not failed and number % 10 == 3:  # equal values: which of the two counts?
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
        limits=None,
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


def _whole(count: int) -> Iterator[Group]:
    """Yield conversations of three requests; every fourth is left without a verdict."""
    for number in range(count // 3):
        first = f"whole{number}"
        for place, name in enumerate((first, f"{first}-1", f"{first}-2")):
            plain = turn(name, SMALL, first) if place else begun(first)
            chosen = LARGE if (number + place) % 5 == 0 else SMALL
            request = with_columns(
                plain, zoo="whole", policy="adaptive", turn=place + 1, is_exploration=False,
                chosen=chosen, hold="warm" if place else None,
            )  # fmt: skip
            group: Group = [request, served_call(name, candidate=chosen, cost=1.0 + place)]
            if place == 2 and number % 4:
                group.append(label(first, float(number % 3 > 0), label_id=f"{first}-verdict"))
            yield group
