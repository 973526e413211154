"""Logs in which everything happens that sums may get wrong, and the sums held to their views."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from sqlalchemy import Table, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.records import CallRecord, GradingRecord, LabelRecord, Record, RequestRecord
from litellm_messplus.store import log
from litellm_messplus.store.summaries import SUMS
from litellm_messplus.vocabulary import GradingStatus, LabelKind
from tests.support.builders import LARGE, NOW, energy, exploration_call, label, traffic

SOURCES = {
    "feedback": LabelKind.FEEDBACK,
    "check:json": LabelKind.CHECK,
    "check:length": LabelKind.CHECK,
    "judge": LabelKind.JUDGE,
    "implicit": LabelKind.IMPLICIT,
}
JUDGES = ("gpt-judge", "other-judge")


def eventful(count: int, seed: int) -> list[Record]:
    """Traffic of two zoos over three days, at several alphas; costs that nobody knows; labels of
    every kind, some that weigh nothing; measured energy, before its call too; gradings."""
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


async def rows(connection: AsyncConnection, table: Table, name: str) -> dict[Any, dict[str, Any]]:
    """Of a table of sums, or of a view with its columns, by the key; rows of nothing left out."""
    key = [column.name for column in table.primary_key.columns]
    found = {}
    for row in (await connection.execute(text(f"SELECT * FROM {name}"))).mappings():
        figures = {column: value for column, value in row.items() if column not in key}
        if any(figures.values()):
            found[tuple(row[column] for column in key)] = figures
    return found


async def assert_sums_are_the_logs(database: AsyncEngine) -> None:
    """Counts to the unit, other sums but for rounding, and NULL where the log says NULL."""
    async with database.connect() as connection:
        for table in SUMS:
            kept = await rows(connection, table, table.name)
            logged = await rows(connection, table, f"logged_{table.name}")
            assert kept.keys() == logged.keys(), table.name
            for key, figures in logged.items():
                expected = {name: _expected(value) for name, value in figures.items()}
                assert kept[key] == expected, (table.name, key)


def _expected(value: Any) -> Any:
    return pytest.approx(value, rel=1e-9, abs=1e-9) if isinstance(value, float) else value


def _varied(record: Record, random: Random) -> Iterator[Record]:
    if isinstance(record, RequestRecord):
        yield replace(
            record,
            created_at=NOW + timedelta(hours=random.randrange(72)),
            alpha=random.choice((0.6, 0.6, 0.75)),
            encode_seconds=random.choice((None, 0.0001, 0.002)),
            encode_joules=random.choice((None, 0.25)),
            decision_seconds=0.003,
            estimated_cost=random.choice(({LARGE: 5.5}, {"small": 1.0})),
        )
    elif isinstance(record, CallRecord):
        yield from _call(record, random)
    else:
        yield record


def _call(call: CallRecord, random: Random) -> Iterator[Record]:
    call = replace(
        call,
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
        measured = energy(call, 7.5, random.choice((None, 0.9)))
        events.insert(random.choice((0, 1)), measured)
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
        cost=random.choice((None, 0.0005)),
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
