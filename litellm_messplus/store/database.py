"""Opening the database: the engine, and the migrations to this version's schema."""

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from alembic import command
from sqlalchemy import URL, Connection, event, make_url, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import (
    ArgumentError,
    DataError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    ProgrammingError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as NoConnectionFreeError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from litellm_messplus.runtime.database_url import without_passwords
from litellm_messplus.runtime.errors import (
    BrokenLogError,
    ConfigurationError,
    DatabaseAwayError,
    MessplusError,
)
from litellm_messplus.store import schema
from litellm_messplus.store.postgres import SETTING, arguments_of, connect

# Whether the file of a SQLite database is still the one that was opened.
#
# SQLite goes on writing to a file that was deleted or replaced, which nothing will ever read: an
# acknowledged verdict would be lost with the process.

KEY = "database_file"
"""The key in a connection's ``info`` that holds its `DatabaseFile`."""


class DatabaseFileGoneError(MessplusError, OSError):
    """The database file was deleted or replaced."""


class DatabaseFile:
    """The file of one engine: all its connections must write to the file that the first one
    found."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._identity: tuple[int, int] | None = None

    def opened(self, connection: DBAPIConnection) -> None:
        """Note that a connection was opened; the first one defines the file. Raises
        DatabaseFileGoneError if that file is no longer there, because SQLite then creates an empty
        one."""
        cursor = connection.cursor()
        cursor.execute("PRAGMA database_list")
        found = [path for _, name, path in cursor.fetchall() if name == "main" and path]
        cursor.close()
        if self._path is None and found:
            self._path = Path(found[0])
            self._identity = self._now()
        self.check()

    def check(self) -> None:
        """Raise DatabaseFileGoneError if the file at the path is not the one that was opened."""
        if self._path is None:
            return
        now = self._now()
        if now is None or now != self._identity:
            what = "was deleted" if now is None else "was replaced by another one"
            raise DatabaseFileGoneError(
                f"the database {self._path} {what} while it was open: put it back, or restart the "
                "proxy, which goes on with what is there"
            )

    def _now(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path or "")
        except OSError:
            return None
        return found.st_dev, found.st_ino


# Permanent and temporary errors of the database.

AWAY = ("08", "53", "57")
"""Classes of Postgres's SQLSTATE: no connection, no resources, an operator's intervention."""


def is_the_databases(error: Exception) -> bool:
    """Tell whether the error comes from the database. asyncpg raises errors of its own."""
    if isinstance(error, SQLAlchemyError | OSError | BrokenLogError):
        return True
    return hasattr(error, "sqlstate")


def is_away(error: BaseException) -> bool:
    """Tell whether the database is only temporarily unavailable."""
    found: Any = getattr(error, "orig", None) or error
    sqlstate = getattr(found, "sqlstate", None)
    if sqlstate is not None:
        return str(sqlstate)[:2] in AWAY
    if isinstance(error, NoConnectionFreeError) or isinstance(found, OSError):
        return not isinstance(found, DatabaseFileGoneError)
    return isinstance(error, OperationalError) and "is locked" in str(found)


def is_the_records_fault(error: Exception) -> bool:
    """Tell whether the database will never accept the record, as opposed to not now."""
    if not isinstance(error, DBAPIError):
        # TimeoutError is an OSError
        return not isinstance(error, OSError | NoConnectionFreeError | BrokenLogError)
    sqlstate = getattr(error.orig, "sqlstate", None)
    if sqlstate is not None:  # Postgres: data exceptions, violated constraints
        return str(sqlstate)[:2] in ("22", "23")
    if isinstance(error, IntegrityError | DataError):
        return True
    refused_by_driver = isinstance(error, ProgrammingError | InterfaceError)
    return refused_by_driver and not error.connection_invalidated


SQLITE, POSTGRES = "sqlite+aiosqlite", "postgresql+asyncpg"
SPELLINGS = ("postgres", "postgresql")
"""How others write `postgresql+asyncpg`."""
INSTALL = "for Postgres, pip install 'litellm-messplus[postgres]'"
BUSY_MILLISECONDS = 10_000
POSTGRES_MIGRATION_LOCK = 0x6D657373  # "mess"


def create_engine(url: str | URL, connections: int | None = None) -> AsyncEngine:
    """Create an engine for the running event loop, with at most ``connections`` connections.

    Its errors, which go to the proxy's log, do not show the values written: they may be a user's
    text.

    Raises ConfigurationError for an invalid URL, an unsupported driver or one that is not
    installed, an option that no connection could honour, and a database in memory. Opens no
    connection.
    """
    refusal = partial(ConfigurationError, SETTING, without_passwords(url))
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise refusal("an SQLAlchemy URL") from error
    if parsed.drivername in SPELLINGS:
        parsed = parsed.set(drivername=POSTGRES)
    if parsed.drivername not in (SQLITE, POSTGRES):
        raise refusal(f"a URL of {SQLITE} or {POSTGRES}")
    if parsed.drivername == SQLITE and _is_in_memory(parsed):
        raise refusal("a file: each connection would have a memory of its own, and each start")
    pool = {}
    if connections:  # for reading: replaces connections lost in a restart
        pool = {"pool_size": connections, "max_overflow": 0, "pool_pre_ping": True}
    try:
        arguments = arguments_of(parsed) if parsed.drivername == POSTGRES else {}
        engine = create_async_engine(parsed, hide_parameters=True, **pool)
    except ModuleNotFoundError as error:
        raise refusal(f"a URL whose driver is installed ({error}): {INSTALL}") from error
    except (ArgumentError, ValueError, TypeError) as error:
        raise refusal(f"options that work ({error})") from error
    if parsed.drivername == SQLITE:
        event.listen(engine.sync_engine, "connect", partial(_prepare_sqlite, DatabaseFile()))
    else:
        event.listen(engine.sync_engine, "do_connect", partial(connect, parsed, arguments))
    return engine


def _is_in_memory(url: URL) -> bool:
    path = url.database or ""
    return not path or ":memory:" in path or url.query.get("mode") == "memory"


def _prepare_sqlite(
    file: DatabaseFile, connection: DBAPIConnection, entry: ConnectionPoolEntry
) -> None:
    """Prepare a connection: several processes share one file, and the log sets for each commit
    whether it waits for the disk."""
    try:
        file.opened(connection)
    except DatabaseFileGoneError:
        connection.close()
        raise
    entry.info[KEY] = file
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.close()


def check_place(url: str) -> None:
    """Raise ConfigurationError for a URL that `create_engine` refuses, and for a file of SQLite
    that could not be written. Opens nothing.

    SQLite writes files next to the database too, so its folder must be there, and be writable: it
    would say no more than that it is unable to open the file.
    """
    found = create_engine(url).url
    if found.drivername != SQLITE or "uri" in found.query:
        return
    path = Path(found.database or "").absolute()
    places = (path.parent, path) if path.exists() else (path.parent,)
    if path.is_dir() or not all(os.access(each, os.W_OK) for each in places):
        allowed = f"a file in a folder that is there, both to be written, which {path} is not"
        raise ConfigurationError(SETTING, without_passwords(url), allowed)


async def migrate(engine: AsyncEngine) -> None:
    """Bring the schema to this code's version; the workers of one proxy take turns.

    Raises ConfigurationError if the database cannot be opened, or its schema then differs from the
    code's (nothing is changed), and DatabaseAwayError if it does not answer now.
    """
    with explained(engine):
        if engine.dialect.name == "sqlite":
            await _allow_readers_during_writes(engine)
        async with engine.connect() as connection:
            await connection.run_sync(_upgrade)
            await connection.commit()


@contextmanager
def explained(engine: AsyncEngine) -> Iterator[None]:
    """Turn the database's errors at a start into one message: what is wrong, and what to do.

    Raises ConfigurationError, and DatabaseAwayError if the database does not answer now.
    """
    try:
        yield
    except Exception as error:
        if not is_the_databases(error):
            raise
        raise _unusable(engine, error) from error


def _unusable(engine: AsyncEngine, error: Exception) -> ConfigurationError:
    given = without_passwords(engine.url)
    reason = " ".join(str(getattr(error, "orig", None) or error).split()) or type(error).__name__
    if is_away(error):
        return DatabaseAwayError(SETTING, given, f"a database that answers ({reason})")
    if "malformed" in reason or "corrupt" in reason:
        reason += "; restore it from a backup, or move it away to begin anew"
    return ConfigurationError(SETTING, given, f"a database that opens ({reason})")


async def _allow_readers_during_writes(engine: AsyncEngine) -> None:
    """Switch the file to WAL, which persists. SQLite refuses the change at once, without its busy
    timeout, while another worker makes the same change."""
    deadline = time.monotonic() + BUSY_MILLISECONDS / 1000
    while True:
        try:
            async with engine.connect() as connection:
                await connection.exec_driver_sql("PRAGMA journal_mode = WAL")
            return
        except OperationalError as error:
            if "locked" not in str(error.orig) or time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.05)


def _upgrade(connection: Connection) -> None:
    if connection.dialect.name == "sqlite":
        # Taken before the version is read: a second worker waits here, then finds nothing to do.
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        connection.execute(text(f"SELECT pg_advisory_xact_lock({POSTGRES_MIGRATION_LOCK})"))
    config = schema.migrations_config()
    config.attributes["connection"] = connection
    try:
        schema.revision(connection)
        command.upgrade(config, "head")
    except schema.OtherSchemaError as error:
        given = without_passwords(connection.engine.url)
        allowed = f"a database that this version can go on with: {error}"
        raise ConfigurationError(SETTING, given, allowed) from error
