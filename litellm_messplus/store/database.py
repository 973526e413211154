"""Opening the database: the engine, and the migrations up to this code's version."""

import asyncio
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, event, make_url, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from litellm_messplus.errors import ConfigurationError, DatabaseAwayError
from litellm_messplus.store import database_file
from litellm_messplus.store.database_file import DatabaseFile, DatabaseFileGoneError
from litellm_messplus.store.refusals import is_away, is_the_databases

SETTING = "messplus.database"
ASYNC_DRIVERS = ("sqlite+aiosqlite", "postgresql+asyncpg")
BUSY_MILLISECONDS = 10_000
POSTGRES_MIGRATION_LOCK = 0x6D657373  # "mess"


def create_engine(url: str, connections: int | None = None) -> AsyncEngine:
    """An engine for the running event loop, with at most so many ``connections``.

    Its errors do not show what was to be written, which may be a user's words: they go to the
    proxy's log.

    Raises ConfigurationError for a URL that is none, of another driver, or of a database in memory.
    """
    try:
        parsed = make_url(url)
        driver = parsed.drivername
    except ArgumentError as error:
        raise ConfigurationError(SETTING, _masked(url), "an SQLAlchemy URL") from error
    if driver not in ASYNC_DRIVERS:
        raise ConfigurationError(SETTING, _masked(url), f"a URL of {' or '.join(ASYNC_DRIVERS)}")
    if driver == "sqlite+aiosqlite" and _is_in_memory(parsed):
        raise ConfigurationError(
            SETTING, url, "a file: each connection would have a memory of its own, and each restart"
        )
    pool = {} if connections is None else {"pool_size": connections, "max_overflow": 0}
    engine = create_async_engine(url, hide_parameters=True, **pool)
    if driver == "sqlite+aiosqlite":
        file = DatabaseFile()
        event.listen(engine.sync_engine, "connect", partial(_prepare_sqlite, file))
    return engine


def _is_in_memory(url: URL) -> bool:
    path = url.database or ""
    return not path or ":memory:" in path or url.query.get("mode") == "memory"


def _prepare_sqlite(
    file: DatabaseFile, connection: DBAPIConnection, entry: ConnectionPoolEntry
) -> None:
    """Several processes on one file; the log sets for each commit whether it waits for the disk."""
    try:
        file.opened(connection)
    except DatabaseFileGoneError:
        connection.close()
        raise
    entry.info[database_file.KEY] = file
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.close()


def _masked(url: str) -> str:
    """Whatever was given, without a password in it."""
    return re.sub(r":[^:/@]*@", ":***@", url)


async def migrate(engine: AsyncEngine) -> None:
    """Bring the schema to this code's version; the workers of one proxy take turns.

    Raises ConfigurationError where the database cannot be opened, or is newer than the code;
    DatabaseAwayError where it does not answer now.
    """
    with explained(engine):
        if engine.dialect.name == "sqlite":
            await _allow_readers_beside_a_writer(engine)
        async with engine.connect() as connection:
            await connection.run_sync(_upgrade)
            await connection.commit()


@contextmanager
def explained(engine: AsyncEngine) -> Iterator[None]:
    """Tell of the database's errors at a start in one message: what is wrong, and what to do.

    Raises ConfigurationError, DatabaseAwayError where the database does not answer now.
    """
    try:
        yield
    except Exception as error:
        if not is_the_databases(error):
            raise
        raise _unusable(engine, error) from error


def _unusable(engine: AsyncEngine, error: Exception) -> ConfigurationError:
    given, reason = engine.url.render_as_string(), str(getattr(error, "orig", None) or error)
    reason = reason or type(error).__name__
    if is_away(error):
        return DatabaseAwayError(SETTING, given, f"a database that answers ({reason})")
    if "malformed" in reason or "corrupt" in reason:
        reason += "; restore it from a backup, or move it away to begin anew"
    return ConfigurationError(SETTING, given, f"a database that opens ({reason})")


async def _allow_readers_beside_a_writer(engine: AsyncEngine) -> None:
    """WAL, which a file keeps. SQLite refuses the change at once, without waiting its busy time,
    while another worker makes it too."""
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
    config = migrations_config()
    config.attributes["connection"] = connection
    _refuse_newer(connection, ScriptDirectory.from_config(config))
    command.upgrade(config, "head")


def _refuse_newer(connection: Connection, scripts: ScriptDirectory) -> None:
    current = MigrationContext.configure(connection).get_current_revision()
    known = {script.revision for script in scripts.walk_revisions()}
    if current is not None and current not in known:
        raise ConfigurationError(
            SETTING,
            connection.engine.url.render_as_string(),
            f"a database of this version or older (its revision {current} is not known here: "
            "upgrade litellm-messplus)",
        )


def migrations_config() -> Config:
    """Of Alembic, for this code's migrations."""
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    return config


def migrations_folder() -> Path:
    """`migrations/`: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "migrations"
    return installed if installed.is_dir() else package.parent / "migrations"
