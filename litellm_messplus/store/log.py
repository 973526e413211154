"""Appending to the log: every record gets the next position, in one transaction a batch, and the
sums over the log change with it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Table, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.errors import BrokenLogError
from litellm_messplus.records import Record
from litellm_messplus.store import database_file, summaries
from litellm_messplus.store.database_file import DatabaseFile
from litellm_messplus.store.remembered import remembered
from litellm_messplus.store.rows import TABLE_OF, row
from litellm_messplus.store.tables import log_head

SYNCHRONOUS = "synchronous"
"""Where a connection keeps what was set: a new one knows nothing."""


@dataclass(frozen=True, slots=True)
class Appended:
    """The positions that a batch took: after ``before``, up to ``last``."""

    before: int
    last: int


async def append(
    engine: AsyncEngine, records: Sequence[Record], *, is_durable: bool = False
) -> Appended:
    """Write the records in the order given. Those that are not durable survive the process, and
    may be lost with the machine's power until a durable batch follows.

    The head of the log is one row, locked from here to the commit: writers in any number of
    processes take turns, so a reader never sees a position before a lower one.

    Raises sqlalchemy.exc.SQLAlchemyError where the database refuses; then nothing is written. And
    DatabaseFileGoneError where SQLite would write, or has written, into a deleted file.
    """
    async with engine.begin() as connection:
        file = _file(connection)
        if connection.dialect.name == "sqlite":
            await _synchronize(connection, is_durable)
        found = await connection.execute(
            update(log_head)
            .values(position=log_head.c.position + len(records))
            .returning(log_head.c.position)
        )
        last = _known(found.scalar_one_or_none())
        before = last - len(records)
        batch = _by_table(records, before)
        recent = remembered(engine.sync_engine)
        changed, known = await summaries.difference(connection, batch, recent.take(before))
        for table, rows in batch.items():
            await connection.execute(insert(table), rows)
        await summaries.add(connection, changed)
        if file is not None:
            file.check()
    recent.keep(known, last)
    if file is not None and is_durable:
        file.check()  # for it is acknowledged
    return Appended(before, last)


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


async def head(engine: AsyncEngine) -> int:
    """Position of the newest record; 0 for an empty log.

    Raises BrokenLogError where there is none, and DatabaseFileGoneError.
    """
    async with engine.connect() as connection:
        file = _file(connection)
        if file is not None:
            file.check()
        position = (await connection.execute(select(log_head.c.position))).scalar_one_or_none()
    return _known(position)


def _known(position: int | None) -> int:
    if position is None:
        raise BrokenLogError(
            "the table log_head is empty, which says where the log ends: restore the database from "
            "a backup, or move it away to begin anew"
        )
    return position


def _by_table(records: Sequence[Record], before: int) -> dict[Table, list[dict[str, Any]]]:
    grouped: dict[Table, list[dict[str, Any]]] = defaultdict(list)
    for position, record in enumerate(records, start=before + 1):
        grouped[TABLE_OF[type(record)]].append(row(record, position))
    return grouped
