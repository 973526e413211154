"""Opening a database that somebody else keeps: it is read, never changed."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.runtime.errors import ConfigurationError, MessplusError
from litellm_messplus.store import schema
from litellm_messplus.store.database import create_engine


class UnreadableDatabaseError(MessplusError):
    """A database cannot be read; the message says why, and what to do."""


class OtherVersionError(UnreadableDatabaseError):
    """A database whose schema this version does not have."""


@asynccontextmanager
async def reading(database: str) -> AsyncIterator[AsyncEngine]:
    """Open the database at an SQLAlchemy URL, or the SQLite one at a path, to be read.

    Raises UnreadableDatabaseError where there is none, or none of this version, and where what is
    done with it fails.
    """
    async with _opened(database) as (engine, shown):
        _refuse_unmigrated(await _revision(engine, shown, schema.revision), shown)
        yield engine


async def revision_of(database: str, seconds: float) -> str | None:
    """Read the newest migration of such a database, within a time; None where it has none.

    Raises OtherVersionError where a start would refuse it, UnreadableDatabaseError.
    """
    async with _opened(database) as (engine, shown), asyncio.timeout(seconds):
        return await _revision(engine, shown, schema.startable)


@asynccontextmanager
async def _opened(database: str) -> AsyncIterator[tuple[AsyncEngine, str]]:
    """Open it, and say what it is called in messages."""
    if "://" not in database:
        database = f"sqlite+aiosqlite:///{database}"
    try:
        engine = create_engine(_read_only(database))
    except ConfigurationError as error:
        raise UnreadableDatabaseError(str(error)) from error
    shown = engine.url.render_as_string() if "uri" not in engine.url.query else database
    try:
        yield engine, shown
    except (SQLAlchemyError, OSError) as error:
        raise _unreadable(shown, getattr(error, "orig", None) or error) from error
    finally:
        await engine.dispose()


def _read_only(database: str) -> str:
    """Return, for a SQLite file, a URL that can neither make nor change it."""
    try:
        url = make_url(database)
    except ArgumentError:
        return database  # create_engine says what is allowed
    if url.drivername != "sqlite+aiosqlite":
        return database
    found = url if "uri" in url.query else _of_file(url)
    _try_file(found.database or "")
    return found.update_query_dict({"mode": "ro"}).render_as_string(hide_password=False)


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
    """Open it here first: where that fails under aiosqlite, its thread outlives the event loop."""
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


async def _revision(
    engine: AsyncEngine, shown: str, read: Callable[[Connection], str | None]
) -> str | None:
    try:
        async with engine.connect() as connection:
            return await connection.run_sync(read)
    except schema.OtherSchemaError as error:
        raise OtherVersionError(f"{shown} is of another version: {error}") from error


def _refuse_unmigrated(found: str | None, shown: str) -> None:
    if found is None:
        raise UnreadableDatabaseError(
            f"{shown} is not migrated: no proxy with the plugin has opened it yet"
        )
    if found != schema.newest():
        raise UnreadableDatabaseError(
            f"{shown} is not migrated to this version (it is at {found}): start the proxy once"
        )


# Reading the log as of one moment, within a time: all statements agree, and none runs on for ever.
#
# A reading that nobody waits for any more would go on in the database, and keep what it needs from
# others. So the database itself ends it: Postgres by its `statement_timeout`, each statement for
# itself; SQLite by asking now and then, all of them together.

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
    """Begin a transaction that sees one moment. Postgres would compile the larger queries to
    machine code, which takes longer than the queries do."""
    if connection.dialect.name == "sqlite":
        await connection.exec_driver_sql("BEGIN")
    else:
        await connection.execution_options(isolation_level="REPEATABLE READ")
        await connection.exec_driver_sql("SET LOCAL jit = off")


async def _limit(connection: AsyncConnection, seconds: float | None) -> None:
    """Limit the time of a statement: on Postgres the limit ends with the transaction; a connection
    to SQLite would keep it."""
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
