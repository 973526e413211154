"""Reading the log as of one moment, within a time: all statements agree, and none runs on for ever.

A reading that nobody waits for any more would go on in the database, and keep what it needs from
others. So the database itself ends it: Postgres by its `statement_timeout`, each statement for
itself; SQLite by asking now and then, all of them together.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.errors import MessplusError

LONGEST_SECONDS = 30.0
ASKED_EVERY = 10_000
"""Instructions of SQLite's between two looks at the clock: well below a millisecond."""
QUERY_CANCELED = "57014"
"""Postgres's SQLSTATE of a statement that took too long."""


class ReadingTakesTooLongError(MessplusError, TimeoutError):
    """A reading of the log was given up."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"reading the log took more than {seconds:g} s, and was given up")


@asynccontextmanager
async def one_moment(
    connection: AsyncConnection, longest_seconds: float | None = LONGEST_SECONDS
) -> AsyncIterator[None]:
    """Let all that is read on the connection see the log as of now.

    None is as long as it takes. Raises ReadingTakesTooLongError.
    """
    await _hold_still(connection)
    await _limit(connection, longest_seconds)
    try:
        yield
    except DBAPIError as error:
        if longest_seconds is not None and _was_ended(error):
            raise ReadingTakesTooLongError(longest_seconds) from error
        raise
    finally:
        await _limit(connection, None)


async def _hold_still(connection: AsyncConnection) -> None:
    """Postgres would compile the larger questions to machine code, which takes it longer than they
    do."""
    if connection.dialect.name == "sqlite":
        await connection.exec_driver_sql("BEGIN")
    else:
        await connection.execution_options(isolation_level="REPEATABLE READ")
        await connection.exec_driver_sql("SET LOCAL jit = off")


async def _limit(connection: AsyncConnection, seconds: float | None) -> None:
    """Of Postgres it ends with the transaction; a connection to SQLite would keep it."""
    if connection.dialect.name != "sqlite":
        if seconds is not None:
            milliseconds = max(1, round(1000 * seconds))
            await connection.exec_driver_sql(f"SET LOCAL statement_timeout = {milliseconds}")
        return
    if connection.closed or connection.invalidated:
        return
    raw: Any = (await connection.get_raw_connection()).driver_connection
    if seconds is None:
        await raw.set_progress_handler(None, 0)
        return
    deadline = time.monotonic() + seconds
    await raw.set_progress_handler(lambda: time.monotonic() > deadline, ASKED_EVERY)


def _was_ended(error: DBAPIError) -> bool:
    state = getattr(error.orig, "sqlstate", None)
    return state == QUERY_CANCELED or str(error.orig) == "interrupted"
