"""Appending to the log, one transaction per batch: every record gets the next position, every
request the next number of its service level, and the derived tables are updated."""

from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Engine, Table, func, insert, select, union_all, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.learning.projections import projecting
from litellm_messplus.records import (
    CallRecord,
    CandidateRecord,
    GradingRecord,
    LabelRecord,
    Record,
    RequestRecord,
)
from litellm_messplus.runtime.errors import BrokenLogError, RequestGoneError
from litellm_messplus.runtime.vocabulary import CallStatus, Change
from litellm_messplus.store import database, tables
from litellm_messplus.store.database import DatabaseFile
from litellm_messplus.store.rows import Row, row_of
from litellm_messplus.store.tables import candidate_events, log_head, requests

TABLE_OF = {
    RequestRecord: tables.requests,
    CallRecord: tables.calls,
    LabelRecord: tables.labels,
    GradingRecord: tables.gradings,
    CandidateRecord: candidate_events,
}

SYNCHRONOUS = "synchronous"
"""The key in a connection's ``info`` that holds the level set; a new connection has none."""


@dataclass(frozen=True, slots=True)
class Appended:
    """The positions that a batch took, in (``before``, ``last``]."""

    before: int
    last: int


@dataclass(frozen=True, slots=True)
class Ends:
    """Requests up to ``start`` may be pruned, those up to ``summed`` are in the sums of
    `store/hours.py`; ``head`` is the newest record's position."""

    start: int
    summed: int
    head: int


Numbers = dict[tuple[str, str], int]
"""The highest number of a request, by zoo and service level."""
_NUMBERS: WeakKeyDictionary[Engine, tuple[int, Numbers]] = WeakKeyDictionary()
"""The numbers as this process has written them, and the end of the log then, by open database.
Queried with every commit, they would add half a millisecond to it."""

_ENDS = (log_head.c.start, log_head.c.summed, log_head.c.position)


async def append(
    engine: AsyncEngine,
    records: Sequence[Record],
    *,
    is_durable: bool = False,
    also: Callable[[AsyncConnection], Awaitable[None]] | None = None,
) -> Appended:
    """Write the records in the order given. Records that are not durable survive the process, but a
    power failure may lose them until a durable batch follows. ``also`` takes part in the
    transaction; what it raises undoes all of it.

    The head of the log is one row, locked from here to the commit: writers in all processes take
    turns, so a reader never sees a position before a lower one.

    Raises sqlalchemy.exc.SQLAlchemyError if the database refuses, and RequestGoneError for a record
    of a pruned request; then nothing is written. Raises DatabaseFileGoneError if SQLite would
    write, or has written, into a deleted file.
    """
    async with writing(engine, is_durable=is_durable) as connection:
        ends = await advance(connection, len(records))
        before = ends.head - len(records)
        if ends.start > 0:
            await _refuse_pruned(connection, records)
        rows_of = _by_table(records, before)
        known_at, numbers = _NUMBERS.pop(engine.sync_engine, (before, {}))
        if known_at != before:  # another process wrote since
            numbers = {}
        await _number(connection, rows_of.get(requests, ()), numbers, is_pruned=ends.start > 0)
        async with projecting(connection, *_touched(records), ends.summed):
            for table, rows in rows_of.items():
                await connection.execute(insert(table), rows)
        if also is not None:
            await also(connection)
    _NUMBERS[engine.sync_engine] = ends.head, numbers
    return Appended(before, ends.head)


def _touched(records: Sequence[Record]) -> tuple[list[str], list[str]]:
    """Return the ids of the requests of a batch, and of those whose labels may count or no
    longer: labelled ones, and those with a failed call."""
    about = [each for each in records if not isinstance(each, CandidateRecord)]
    judged = (
        each.request_id
        for each in about
        if isinstance(each, LabelRecord)
        or (isinstance(each, CallRecord) and each.status != CallStatus.SUCCESS)
    )
    return sorted({each.request_id for each in about}), sorted({*judged})


async def _number(
    connection: AsyncConnection, decided: Sequence[Row], numbers: Numbers, *, is_pruned: bool
) -> None:
    """Give requests the next numbers of their levels, and update the highest ``numbers``.

    The head of the log is locked, so no other writer numbers meanwhile. If the log ``is_pruned``
    and has no request of a level left, numbers continue from the expected one."""
    for row in decided:
        level = row["zoo"], row["service_level"]
        if level not in numbers:
            known = await _highest_t(connection, *level)
            numbers[level] = row["expected_t"] - 1 if is_pruned and known == 0 else known
        row["t"] = numbers[level] = numbers[level] + 1


async def _highest_t(connection: AsyncConnection, zoo: str, service_level: str) -> int:
    """Read the highest number from an index: a separate counter could differ from the rows."""
    query = select(func.max(requests.c.t)).where(
        requests.c.zoo == zoo, requests.c.service_level == service_level
    )
    return (await connection.execute(query)).scalar_one() or 0


async def _refuse_pruned(connection: AsyncConnection, records: Sequence[Record]) -> None:
    """Refuse records about pruned requests, which are deleted under the same lock."""
    new = {record.request_id for record in records if isinstance(record, RequestRecord)}
    named = {each.request_id for each in records if not isinstance(each, CandidateRecord)} - new
    if not named:
        return
    query = select(requests.c.request_id).where(requests.c.request_id.in_(named))
    gone = named.difference((await connection.execute(query)).scalars())
    if gone:
        raise RequestGoneError(min(gone))


async def advance(connection: AsyncConnection, count: int) -> Ends:
    """Move the head of the log and lock it."""
    moved = update(log_head).values(position=log_head.c.position + count)
    found = await connection.execute(moved.returning(*_ENDS))
    return _known(found.one_or_none())


@asynccontextmanager
async def writing(engine: AsyncEngine, *, is_durable: bool) -> AsyncIterator[AsyncConnection]:
    """Open a transaction; if it ``is_durable``, its commit waits for the disk.

    Raises DatabaseFileGoneError if SQLite would write, or has written, into a deleted file.
    """
    async with engine.begin() as connection:
        file = _file(connection)
        if connection.dialect.name == "sqlite":
            await _synchronize(connection, is_durable)
        yield connection
        if file is not None:
            file.check()
    if file is not None and is_durable:
        file.check()  # because the caller acknowledges it


def _file(connection: AsyncConnection) -> DatabaseFile | None:
    """Return the file that a connection to SQLite writes to."""
    file: DatabaseFile | None = connection.info.get(database.KEY)
    return file


async def _synchronize(connection: AsyncConnection, is_durable: bool) -> None:
    """Set whether the commit waits for the disk: in WAL mode that syncs all earlier writes too.

    Waiting for every commit cost the proxy some 8 % of its throughput on a slow disk. A connection
    keeps the level, so it is set only on a change: a statement goes to the connection's thread and
    back several times.
    """
    level = "FULL" if is_durable else "NORMAL"
    if connection.info.get(SYNCHRONOUS) != level:
        await connection.exec_driver_sql(f"PRAGMA synchronous = {level}")
        connection.info[SYNCHRONOUS] = level


async def lock(connection: AsyncConnection) -> Ends:
    """Lock the log against writers until the transaction ends. Must be its first statement: SQLite
    does not let a transaction write that has read before."""
    return await advance(connection, 0)


async def append_change(
    engine: AsyncEngine, record: CandidateRecord, after: int | None
) -> int | None:
    """Append a change of a candidate with the next number, and return its position. None if another
    worker was first: the log has more changes of the candidate than the ``after`` known to this one
    or, if it knows none, the candidate is there.

    The head of the log is locked from the check to the commit, so that no change is written twice.
    Raises SQLAlchemyError and DatabaseFileGoneError.
    """
    async with engine.begin() as connection:
        await lock(connection)
        newest = await _newest_change(connection, record.zoo, record.candidate)
        number = 0 if newest is None else newest.number
        if after is None and newest is not None and newest.change != Change.GONE:
            return None
        if after is not None and number != after:
            return None
        head = (await advance(connection, 1)).head
        row = row_of(replace(record, number=number + 1), head)
        await connection.execute(insert(candidate_events), [row])
        return head


async def _newest_change(connection: AsyncConnection, zoo: str, candidate: str) -> Any:
    """Read the newest change of a candidate."""
    query = (
        select(candidate_events.c.number, candidate_events.c.change)
        .where(candidate_events.c.zoo == zoo, candidate_events.c.candidate == candidate)
        .order_by(candidate_events.c.number.desc())
        .limit(1)
    )
    return (await connection.execute(query)).one_or_none()


async def is_logged(engine: AsyncEngine, record: Record) -> bool:
    """Tell whether the log holds a record, by its id."""
    (key,) = TABLE_OF[type(record)].primary_key.columns
    async with engine.connect() as connection:
        found = await connection.execute(select(key).where(key == getattr(record, key.name)))
        return found.first() is not None


async def mend_head(engine: AsyncEngine) -> int | None:
    """Move the head of the log up to its newest record if it is behind that, so that no position is
    given out twice; returns where it was, None if it was right. No row of the log changes, so the
    fold includes all of them."""
    newest = union_all(
        *(select(func.max(each.c.position).label("at")) for each in TABLE_OF.values())
    )
    async with engine.begin() as connection:
        ends = await lock(connection)
        last = max(at or 0 for at in (await connection.execute(newest)).scalars())
        if last <= ends.head:
            return None
        await connection.execute(update(log_head).values(position=last))
    return ends.head


async def head(engine: AsyncEngine) -> int:
    """Return the position of the newest record; 0 for an empty log.

    Raises BrokenLogError if the head's row is missing, and DatabaseFileGoneError.
    """
    return (await ends(engine)).head


async def ends(engine: AsyncEngine) -> Ends:
    """Return both ends of the log. Raises the errors of ``head``."""
    async with engine.connect() as connection:
        file = _file(connection)
        if file is not None:
            file.check()
        return _known((await connection.execute(select(*_ENDS))).one_or_none())


def _known(found: Any) -> Ends:
    if found is None:
        raise BrokenLogError(
            "the table log_head is empty, which says where the log ends: restore the database from "
            "a backup, or move it away to begin anew"
        )
    return Ends(*found)


def _by_table(records: Sequence[Record], before: int) -> dict[Table, list[Row]]:
    grouped: dict[Table, list[Row]] = defaultdict(list)
    for position, record in enumerate(records, start=before + 1):
        grouped[TABLE_OF[type(record)]].append(row_of(record, position))
    return grouped
