"""Logs in which everything happens that sums may get wrong, and the sums held to the log."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

from sqlalchemy import delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.learning.projections import projecting
from litellm_messplus.records import CallRecord, GradingRecord, LabelRecord, Record, RequestRecord
from litellm_messplus.runtime.vocabulary import CallStatus, Failure, GradingStatus, LabelKind
from litellm_messplus.store import log
from litellm_messplus.store.hours import CALLS, LABELS, REQUESTS
from litellm_messplus.store.tables import (
    call_hours,
    hours,
    label_days,
    labels,
    log_head,
    outcomes,
    requests,
)
from tests.support.builders import LARGE, NOW, exploration_call, label, traffic

SOURCES = {
    "feedback": LabelKind.FEEDBACK,
    "check:json": LabelKind.CHECK,
    "check:length": LabelKind.CHECK,
    "judge": LabelKind.JUDGE,
}
JUDGES = ("gpt-judge", "other-judge")


def eventful(count: int, seed: int) -> list[Record]:
    """Traffic of two zoos over three days, at several alphas; costs that nobody knows; labels of
    every kind, some that weigh nothing; gradings."""
    random = Random(seed)
    records: list[Record] = []
    for zoo in ("zoo", "other"):
        for record in traffic(count, seed, prefix=zoo, zoo=zoo):
            records += _varied(record, random)
    return records


def batches(records: list[Record], random: Random) -> Iterator[list[Record]]:
    """The records in their order, in parts of 1 to 12."""
    while records:
        size = random.randint(1, 12)
        yield records[:size]
        records = records[size:]


async def write(writers: Sequence[AsyncEngine], records: list[Record], random: Random) -> None:
    """Append the records in batches, by any of the writers to one database."""
    for batch in batches(records, random):
        await log.append(random.choice(writers), batch)


async def assert_projections_are_the_logs(database: AsyncEngine) -> None:
    """What is derived is what follows from the log, worked out anew, without any sums."""
    async with database.connect() as connection:
        written = await derived(connection)
        for table in (outcomes, hours, call_hours, label_days):
            await connection.execute(delete(table))
        await connection.execute(update(labels).values(counts=False))
        await connection.execute(update(log_head).values(summed=0))
        ids = (await connection.execute(select(requests.c.request_id))).scalars().all()
        async with projecting(connection, ids, ids, 0):
            pass
        follows = await derived(connection)
        await connection.rollback()
    assert written == follows


async def derived(connection: AsyncConnection) -> dict[tuple[Any, ...], Any]:
    """Every outcome, the labels that count, and every sum that is not 0, but for rounding."""
    rows = (await connection.execute(select(outcomes))).all()
    found: dict[tuple[Any, ...], Any] = {("outcome", row.request_id): tuple(row) for row in rows}
    counting = select(labels.c.label_id).where(labels.c.counts)
    found[("counting",)] = sorted((await connection.execute(counting)).scalars())
    return found | await sums(connection)


async def sums(connection: AsyncConnection) -> dict[tuple[Any, ...], Any]:
    """Every sum that is not 0, but for rounding, by its table and key."""
    found = {}
    for table, every in ((hours, REQUESTS), (call_hours, CALLS), (label_days, LABELS)):
        keys = [every.c[each.name] for each in table.primary_key.columns]
        names = [each.name for each in table.columns if not each.primary_key]
        query = select(*keys, *(func.sum(every.c[name]) for name in names)).group_by(*keys)
        for row in await connection.execute(query):
            figures = [round(float(each), 7) + 0.0 for each in row[len(keys) :]]
            if any(figures):
                found[table.name, *row[: len(keys)]] = figures
    return found


def _varied(record: Record, random: Random) -> Iterator[Record]:
    if isinstance(record, RequestRecord):
        yield replace(
            record,
            created_at=NOW + timedelta(hours=random.randrange(72)),
            alpha=random.choice((0.6, 0.6, 0.75)),
            encode_seconds=random.choice((None, 0.0001, 0.002)),
            decision_seconds=random.choice((0.003, 0.004)),
            estimated_cost=random.choice(({LARGE: 5.5}, {"small": 1.0})),
        )
    elif isinstance(record, CallRecord):
        yield from _call(record, random)
    else:
        yield record


def _call(call: CallRecord, random: Random) -> Iterator[Record]:
    failure = random.choice((None, *Failure)) if random.random() < 0.1 else None
    call = replace(
        call,
        status=CallStatus.SUCCESS if failure is None else CallStatus.FAILURE,
        failure=failure,
        is_cache_hit=random.random() < 0.05,
        cost=random.choice((None, 0.0, 1.25, 3.1)),
        seconds=random.choice((None, 0.2, 0.35)),
        prompt_tokens=random.choice((None, 12)),
        model=random.choice((None, call.model)),
    )
    events: list[Record] = [call]
    if call.role == "served" and random.random() < 0.3:
        number = random.choice((2, 3))
        candidate = random.choice((LARGE, "small"))
        events.append(exploration_call(call.request_id, number, candidate=candidate, cost=4.4))
    if random.random() < 0.3:
        events.append(_grading(call, random))
    for place in range(random.choice((0, 1, 1, 3))):
        events.append(_label(call, place, random))
    random.shuffle(events)
    yield from events


def _grading(call: CallRecord, random: Random) -> GradingRecord:
    return GradingRecord(
        grading_id=f"{call.call_id}-grading",
        request_id=call.request_id,
        created_at=NOW + timedelta(hours=random.randrange(72)),
        judge=random.choice(JUDGES),
        status=random.choice(list(GradingStatus)),
        answers=2,
        cost=(cost := random.choice((None, 0.0005))),
        zoo_cost=cost and 1000.0 * cost,
    )


def _label(call: CallRecord, place: int, random: Random) -> LabelRecord:
    source = random.choice(list(SOURCES))
    return label(
        call.request_id,
        random.choice((0.0, 0.4, 1.0)),
        label_id=f"{call.call_id}-more-{place}",
        call_id=call.call_id,
        kind=SOURCES[source],
        source=source,
        weight=random.choice((0.0, 0.3, 1.0)),
        probability=random.choice((None, 0.05, 0.5)),
    )


def rounded(found: Any, digits: int) -> Any:
    """Figures without their last digits: sums in another order differ in these."""
    if isinstance(found, float):
        return round(found, digits)
    if isinstance(found, list):
        return [rounded(each, digits) for each in found]
    if isinstance(found, dict):
        return {name: rounded(each, digits) for name, each in found.items()}
    return found
