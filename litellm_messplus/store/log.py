"""Appending to the log: every record gets the next position, and every request the next number of
its service level, in one transaction a batch. The sums over the log change with it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Table, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.errors import BrokenLogError, RequestGoneError
from litellm_messplus.records import LessonRecord, Record, RequestRecord
from litellm_messplus.store import database_file, notices, summaries
from litellm_messplus.store.database_file import DatabaseFile
from litellm_messplus.store.numbering import Numbering
from litellm_messplus.store.remembered import remembered
from litellm_messplus.store.rows import TABLE_OF, Row, row
from litellm_messplus.store.tables import log_head, requests

SYNCHRONOUS = "synchronous"
"""Where a connection keeps what was set: a new one knows nothing."""


@dataclass(frozen=True, slots=True)
class Appended:
    """The positions that a batch took: after ``before``, up to ``last``; and where the log starts
    since it was pruned."""

    before: int
    last: int
    start: int = 0


@dataclass(frozen=True, slots=True)
class Ends:
    """Requests and lessons up to ``start`` are pruned; ``head`` is the newest record's position."""

    start: int
    head: int


async def append(
    engine: AsyncEngine,
    records: Sequence[Record],
    *,
    is_durable: bool = False,
    numbering: Numbering | None = None,
) -> Appended:
    """Write the records in the order given. Those that are not durable survive the process, and
    may be lost with the machine's power until a durable batch follows.

    The head of the log is one row, locked from here to the commit: writers in any number of
    processes take turns, so a reader never sees a position before a lower one. ``numbering`` is of
    a writer that appends again and again.

    Raises sqlalchemy.exc.SQLAlchemyError where the database refuses, and RequestGoneError for a
    record of a pruned request; then nothing is written. And DatabaseFileGoneError where SQLite
    would write, or has written, into a deleted file.
    """
    numbering = numbering or Numbering()
    try:
        return await _append(engine, records, is_durable, numbering)
    except BaseException:
        numbering.forget()
        raise


async def _append(
    engine: AsyncEngine, records: Sequence[Record], is_durable: bool, numbering: Numbering
) -> Appended:
    async with engine.begin() as connection:
        file = _file(connection)
        if connection.dialect.name == "sqlite":
            await _synchronize(connection, is_durable)
        ends = await _advance(connection, len(records))
        before = ends.head - len(records)
        is_pruned = ends.start > 0
        if is_pruned:
            await _refuse_pruned(connection, records, ends.start)
        rows_of = _by_table(records, before)
        highest = await numbering.number(
            connection, rows_of.get(requests, ()), before, is_pruned=is_pruned
        )
        recent = remembered(engine.sync_engine)
        changed, known = await summaries.difference(connection, rows_of, recent.take(before))
        for table, rows in rows_of.items():
            await connection.execute(insert(table), rows)
        await summaries.add(connection, changed)
        if file is not None:
            file.check()
    recent.keep(known, ends.head)
    if file is not None and is_durable:
        file.check()  # for it is acknowledged
    numbering.committed(ends.head, highest)
    return Appended(before, ends.head, ends.start)


async def _refuse_pruned(
    connection: AsyncConnection, records: Sequence[Record], start: int
) -> None:
    """What is said of a pruned request would be in no fold. Pruning moves the start under the same
    lock as the head, so a record is refused or kept, and never lost."""
    new = {record.request_id for record in records if isinstance(record, RequestRecord)}
    told = {record.request_id for record in records if not isinstance(record, LessonRecord)} - new
    if not told:
        return
    query = select(requests.c.request_id).where(
        requests.c.request_id.in_(told), requests.c.position > start
    )
    gone = told.difference((await connection.execute(query)).scalars())
    if gone:
        raise RequestGoneError(min(gone))


async def _advance(connection: AsyncConnection, count: int) -> Ends:
    """Move the head of the log and lock it; others are told of it with the commit."""
    told = [notices.notice()] if connection.dialect.name == "postgresql" else []
    found = await connection.execute(
        update(log_head)
        .values(position=log_head.c.position + count)
        .returning(log_head.c.start, log_head.c.position, *told)
    )
    return _known(found.one_or_none())


def _file(connection: AsyncConnection) -> DatabaseFile | None:
    """What a connection to SQLite writes to."""
    file: DatabaseFile | None = connection.info.get(database_file.KEY)
    return file


async def _synchronize(connection: AsyncConnection, is_durable: bool) -> None:
    """Whether the commit waits for the disk: in WAL mode that syncs all that was written before.

    Waiting for every commit cost the proxy some 8 % of its throughput on a slow disk. A
    connection keeps the level, and is told where it changes: a statement goes to its thread and
    back several times.
    """
    level = "FULL" if is_durable else "NORMAL"
    if connection.info.get(SYNCHRONOUS) != level:
        await connection.exec_driver_sql(f"PRAGMA synchronous = {level}")
        connection.info[SYNCHRONOUS] = level


async def lock(connection: AsyncConnection) -> Ends:
    """Keep writers out of the log until the transaction ends. The first statement of it: SQLite
    would not let a transaction write that read before."""
    found = await connection.execute(
        update(log_head)
        .values(position=log_head.c.position)
        .returning(log_head.c.start, log_head.c.position)
    )
    return _known(found.one_or_none())


async def head(engine: AsyncEngine) -> int:
    """Position of the newest record; 0 for an empty log.

    Raises BrokenLogError where there is none, and DatabaseFileGoneError.
    """
    return (await ends(engine)).head


async def ends(engine: AsyncEngine) -> Ends:
    """Both ends of the log. Raises as ``head`` does."""
    async with engine.connect() as connection:
        file = _file(connection)
        if file is not None:
            file.check()
        query = select(log_head.c.start, log_head.c.position)
        return _known((await connection.execute(query)).one_or_none())


def _known(found: Any) -> Ends:
    if found is None:
        raise BrokenLogError(
            "the table log_head is empty, which says where the log ends: restore the database from "
            "a backup, or move it away to begin anew"
        )
    return Ends(found.start, found.position)


def _by_table(records: Sequence[Record], before: int) -> dict[Table, list[Row]]:
    grouped: dict[Table, list[Row]] = defaultdict(list)
    for position, record in enumerate(records, start=before + 1):
        grouped[TABLE_OF[type(record)]].append(row(record, position))
    return grouped
