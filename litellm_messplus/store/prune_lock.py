"""One prune of a database at a time: two would write each other's files."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.errors import MessplusError

POSTGRES_PRUNE_LOCK = 0x6D65_7373_7072  # "messpr"
SUFFIX = "-prune"
"""Of the empty file beside a SQLite database that is locked; it may be deleted at any time when no
prune runs."""


class BusyPruningError(MessplusError):
    """Another prune of the same database is running."""


@asynccontextmanager
async def alone(engine: AsyncEngine) -> AsyncIterator[None]:
    """Hold the lock, which a process that is killed loses. Raises BusyPruningError."""
    if engine.dialect.name == "sqlite":
        async with _alone_on_file(await _path(engine)):
            yield
    else:
        async with _alone_on_postgres(engine):
            yield


async def _path(engine: AsyncEngine) -> str:
    async with engine.connect() as connection:
        found = (await connection.exec_driver_sql("PRAGMA database_list")).mappings()
        return next(str(row["file"]) for row in found if row["name"] == "main")


@asynccontextmanager
async def _alone_on_file(path: str) -> AsyncIterator[None]:
    with closing(sqlite3.connect(path + SUFFIX, timeout=0, isolation_level=None)) as lock:
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            raise _busy() from error
        yield


@asynccontextmanager
async def _alone_on_postgres(engine: AsyncEngine) -> AsyncIterator[None]:
    key = {"key": POSTGRES_PRUNE_LOCK}
    async with engine.connect() as found:
        connection = await found.execution_options(isolation_level="AUTOCOMMIT")
        taken = await connection.execute(text("SELECT pg_try_advisory_lock(:key)"), key)
        if not taken.scalar_one():
            raise _busy()
        try:
            yield
        finally:
            await connection.execute(text("SELECT pg_advisory_unlock(:key)"), key)


def _busy() -> BusyPruningError:
    return BusyPruningError("another prune of this database is running: try again when it is over")
