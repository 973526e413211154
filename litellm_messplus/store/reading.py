"""Opening a database of another process read-only."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.runtime.database_url import without_passwords
from litellm_messplus.runtime.errors import ConfigurationError, MessplusError
from litellm_messplus.store import schema
from litellm_messplus.store.database import SQLITE, create_engine


class UnreadableDatabaseError(MessplusError):
    """A database cannot be read; the message states why, and what to do."""


class OtherVersionError(UnreadableDatabaseError):
    """A database with the schema of another version."""


@asynccontextmanager
async def reading(database: str) -> AsyncIterator[AsyncEngine]:
    """Open the database at an SQLAlchemy URL, or the SQLite one at a path, for reading.

    Raises UnreadableDatabaseError if there is none, if it is of another version, and if reading
    fails.
    """
    async with _opened(database) as (engine, shown):
        if await _revision(engine, shown) != schema.newest():
            raise UnreadableDatabaseError(
                f"{shown} is not migrated to this version: start the proxy once"
            )
        yield engine


LOOK_SECONDS = 5.0
"""Seconds that a database may take to return which migrations it has."""


async def refuse_other_version(database: str) -> None:
    """Raise OtherVersionError if a start would refuse such a database, and UnreadableDatabaseError
    if that cannot be read in time."""
    async with _opened(database) as (engine, shown), asyncio.timeout(LOOK_SECONDS):
        await _revision(engine, shown)


@asynccontextmanager
async def _opened(database: str) -> AsyncIterator[tuple[AsyncEngine, str]]:
    """Open the database, and give its name for messages."""
    if "://" not in database:
        database = f"sqlite+aiosqlite:///{database}"
    try:
        engine = create_engine(_read_only(database))
    except ConfigurationError as error:
        raise UnreadableDatabaseError(str(error)) from error
    shown = without_passwords(engine.url) if "uri" not in engine.url.query else database
    try:
        yield engine, shown
    except (SQLAlchemyError, OSError) as error:
        raise _unreadable(shown, getattr(error, "orig", None) or error) from error
    finally:
        await engine.dispose()


def _read_only(database: str) -> URL:
    """Return, for a SQLite file, a URL that can neither create nor change it."""
    url = create_engine(database).url
    if url.drivername != SQLITE:
        return url
    found = url if "uri" in url.query else _of_file(url)
    _try_file(found.database or "")
    return found.update_query_dict({"mode": "ro"})


def _of_file(url: URL) -> URL:
    path = Path(url.database or "")
    if not path.is_file():
        raise UnreadableDatabaseError(
            f"there is no database at {path.absolute()}: start the proxy, which makes it, or give "
            "the value of messplus.database"
        )
    shown = url.set(database=f"file:{quote(str(path.absolute()))}")
    return shown.update_query_dict({"uri": "true"})


def _try_file(uri: str) -> None:
    """Open it here first: if that fails within aiosqlite, its thread outlives the event loop."""
    try:
        with closing(sqlite3.connect(f"{uri}?mode=ro", uri=True)) as connection:
            connection.execute("PRAGMA schema_version")
    except sqlite3.Error as error:
        raise _unreadable(uri, error) from error


def _unreadable(shown: str, reason: BaseException) -> UnreadableDatabaseError:
    words = str(reason) or type(reason).__name__
    if "malformed" in words:
        words += "; restore it from a backup"
    return UnreadableDatabaseError(f"the database {shown} cannot be read: {words}")


async def _revision(engine: AsyncEngine, shown: str) -> str | None:
    try:
        async with engine.connect() as connection:
            return await connection.run_sync(schema.revision)
    except schema.OtherSchemaError as error:
        raise OtherVersionError(f"{shown} is of another version: {error}") from error


# Reading the log as of one moment within a time limit: all statements agree, and each one ends.
#
# An abandoned reading would go on in the database and use its resources. So the database itself
# ends it: Postgres by `statement_timeout`, per statement; SQLite by a progress handler, over all
# statements together.

LONGEST_SECONDS = 30.0
CHECKED_EVERY = 10_000
"""SQLite instructions between two checks of the clock: well below a millisecond."""
QUERY_CANCELED = "57014"
"""Postgres's SQLSTATE of a statement that took too long."""


class ReadingTakesTooLongError(MessplusError, TimeoutError):
    """A reading of the log exceeded its time limit."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"reading the log took more than {seconds:g} s, and was given up")


@asynccontextmanager
async def one_moment(
    connection: AsyncConnection, longest_seconds: float | None = LONGEST_SECONDS
) -> AsyncIterator[None]:
    """Let all statements on the connection see the log as of now.

    ``longest_seconds`` None sets no limit. Raises ReadingTakesTooLongError.
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
    """Begin a transaction that sees one moment. JIT is off: for the larger queries, Postgres would
    take longer to compile than to run them."""
    if connection.dialect.name == "sqlite":
        await connection.exec_driver_sql("BEGIN")
    else:
        await connection.execution_options(isolation_level="REPEATABLE READ")
        await connection.exec_driver_sql("SET LOCAL jit = off")


async def _limit(connection: AsyncConnection, seconds: float | None) -> None:
    """Limit the time of statements; None removes the limit, which on Postgres ends with the
    transaction, but on SQLite stays with the connection."""
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
    await raw.set_progress_handler(lambda: time.monotonic() > deadline, CHECKED_EVERY)


def _was_ended(error: DBAPIError) -> bool:
    state = getattr(error.orig, "sqlstate", None)
    return state == QUERY_CANCELED or str(error.orig) == "interrupted"
