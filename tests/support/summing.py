"""Logs in which everything happens that sums may get wrong, and the sums held to the log."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.learning import projections as learned
from litellm_messplus.learning.logged import logged_requests
from litellm_messplus.learning.projections import Change, projection, rules_of
from litellm_messplus.learning.sums import SUMS, add_change, of_grading
from litellm_messplus.records import CallRecord, GradingRecord, LabelRecord, Record, RequestRecord
from litellm_messplus.runtime.vocabulary import (
    PRECEDENCE,
    CallStatus,
    Failure,
    GradingStatus,
    LabelKind,
)
from litellm_messplus.store import log
from litellm_messplus.store.tables import gradings, outcomes, requests, verdicts
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
    """What is derived is what follows from the log, worked out anew: a row that is not there, and a
    sum of nothing, are 0."""
    async with database.connect() as connection:
        written = await _derived(connection)
        await rewrite_projections(connection)
        follows = await _derived(connection)
        await connection.rollback()
    for key in written.keys() | follows.keys():
        one, other = written.get(key, {}), follows.get(key, {})
        for name in one.keys() | other.keys():
            found, expected = one.get(name), other.get(name)
            if key[0] in SUM_NAMES:
                found, expected = found or 0, expected or 0
            if isinstance(found, float) or isinstance(expected, float):
                expected = pytest.approx(expected, rel=1e-6, abs=1e-9)
            assert found == expected, (key, name)


SUM_NAMES = frozenset(table.name for table in SUMS)


async def _derived(connection: AsyncConnection) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Every derived row, by its table and key."""
    found = {}
    for table in (outcomes, verdicts, *SUMS):
        keys = [each.name for each in table.primary_key.columns]
        for row in (await connection.execute(select(table))).mappings():
            found[table.name, *(row[key] for key in keys)] = dict(row)
    return found


async def rewrite_projections(connection: AsyncConnection) -> None:
    """Write down what follows from the log as it is, as if it had never been written."""
    for table in (outcomes, verdicts, *SUMS):
        await connection.execute(delete(table))
    rules = await rules_of(connection)
    ids = (await connection.execute(select(requests.c.request_id))).scalars().all()
    change = Change()
    for logged in (await logged_requests(connection, ids)).values():
        rule = rules.get(logged.request["zoo"], PRECEDENCE)
        change.add(None, projection(logged, rule))
    of_request = requests.c.request_id == gradings.c.request_id
    query = select(gradings, requests.c.zoo).join(requests, of_request)
    for row in (await connection.execute(query)).mappings():
        add_change(change.sums, {}, of_grading(row, row["zoo"]))
    await learned.write(connection, change)


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
