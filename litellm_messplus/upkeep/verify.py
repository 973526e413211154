"""Whether a database is sound: its file, the order of its log, and what its records belong to."""

import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Table, func, literal, make_url, select, union_all
from sqlalchemy.exc import ArgumentError, DatabaseError
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.store.log import TABLE_OF
from litellm_messplus.store.reading import one_moment, reading
from litellm_messplus.store.tables import (
    calls,
    gradings,
    labels,
    log_head,
    outcomes,
    requests,
    served_call,
)

SHOWN = 3
"""The most records that a line names."""
OF_REQUESTS = (calls, labels, gradings, outcomes)
"""Tables whose rows belong to a request."""
RESTORE = "restore the database from a backup"


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The faults of a database, a line each; it is shown without its password."""

    database: str
    faults: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "database": self.database,
            "is_sound": not self.faults,
            "faults": list(self.faults),
        }


async def verify(database: str) -> VerifyReport:
    """Check the database at an SQLAlchemy URL, or the SQLite one at a path; it is only read.

    Raises UnreadableDatabaseError if nothing can be read.
    """
    try:
        shown = make_url(database).render_as_string()
    except ArgumentError:
        shown = database  # a path
    async with (
        reading(database) as engine,
        engine.connect() as connection,
        one_moment(connection, longest_seconds=None),
    ):
        faults = [each async for each in _of_file(connection)]
        if not faults:  # else what is read from it may be anything
            faults = [each async for each in _of_order(connection)]
            faults += [each async for each in _of_references(connection)]
    return VerifyReport(shown, tuple(faults))


async def _of_file(connection: AsyncConnection) -> AsyncIterator[str]:
    """Yield what `PRAGMA integrity_check` finds. Postgres has no such check in SQL."""
    if connection.dialect.name != "sqlite":
        return
    try:
        found = await connection.exec_driver_sql(f"PRAGMA integrity_check({SHOWN})")
        lines = [" ".join(str(line).split()) for line in found.scalars()]
    except DatabaseError as error:
        if "malformed" not in str(error.orig):
            raise
        lines = [str(error.orig)]
    if lines != ["ok"]:
        yield f"the file is damaged: {'; '.join(lines)}: {RESTORE}, or move it away to begin anew"


async def _of_order(connection: AsyncConnection) -> AsyncIterator[str]:
    """Yield where the positions of the log, which all of its tables share, are not 1, 2, 3, up to
    that of its head."""
    taken = union_all(
        *(select(each.c.position, literal(each.name).label("name")) for each in TABLE_OF.values())
    ).subquery("taken")
    count, first, last = (
        await connection.execute(
            select(
                func.count(taken.c.position.distinct()),
                func.coalesce(func.min(taken.c.position), 1),
                func.coalesce(func.max(taken.c.position), 0),
            )
        )
    ).one()
    head = (await connection.execute(select(log_head.c.position, log_head.c.start))).one_or_none()
    if head is None:
        yield (
            "the table log_head is empty, which holds the end of the log: stop the proxy, then: "
            "INSERT INTO log_head (id, position, conversation_key) "
            f"VALUES (1, {last}, '{os.urandom(32).hex()}')"
        )
    elif last > head.position:
        yield (
            f"log_head states that the log ends at {head.position}, and there is a record at "
            f"{last}: stop the proxy, then: UPDATE log_head SET position = {last}"
        )
    elif head.start == 0 and count < head.position and first > 0:
        yield f"{head.position - count} of {head.position} positions have no record: {RESTORE}"
    if first < 1:
        yield f"there is a record at {first}, and positions begin at 1: {RESTORE}"
    twice = (
        select(taken.c.position, func.min(taken.c.name), func.max(taken.c.name))
        .group_by(taken.c.position)
        .having(func.count() > 1)
        .order_by(taken.c.position)
        .limit(SHOWN)
    )
    for position, *names in await connection.execute(twice):
        yield f"more than one record is at position {position} ({' and '.join(names)}): {RESTORE}"


async def _of_references(connection: AsyncConnection) -> AsyncIterator[str]:
    """Yield the rows of no request, and the labels of no call."""
    for table in OF_REQUESTS:
        async for each in _without(connection, table, requests):
            yield each
    # A served call may be judged before it has ended.
    is_ended = labels.c.call_id != served_call(labels)
    async for each in _without(connection, labels, calls, is_ended):
        yield each


async def _without(
    connection: AsyncConnection, table: Table, other: Table, *where: ColumnElement[bool]
) -> AsyncIterator[str]:
    key, to = table.primary_key.columns[0], other.primary_key.columns[0]
    found = select(key).outerjoin(other, to == table.c[to.name]).where(to.is_(None), *where)
    counted = select(func.count()).select_from(found.subquery())
    count = (await connection.execute(counted)).scalar_one()
    if count:
        shown = ", ".join((await connection.execute(found.limit(SHOWN))).scalars())
        more = f" and {count - SHOWN} more" if count > SHOWN else ""
        yield f"{count} {table.name} without their {other.name[:-1]} ({shown}{more}): {RESTORE}"
