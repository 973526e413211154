"""The lease of the brain: one process of all on a database holds it, until it ends.

On SQLite it is a lock on a file, which the system releases with the process; on Postgres an
advisory lock of a session, or through a pooler of a transaction that stays open. None can be
forgotten by a process that is killed.
"""

import asyncio
import fcntl
import os
from contextlib import suppress
from pathlib import Path

from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.store.database import create_engine
from litellm_messplus.store.postgres import is_pooled

POSTGRES_LOCK = 0x6D657373_6C6561  # "messlea"
SUFFIX = "-brain"
"""The end of the name of the lock's file, after that of the database's."""


class FileLease:
    """A lock on a file next to a SQLite database."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    async def take(self) -> bool:
        """Take it unless another process holds it; return whether this process holds it now."""
        if self._file is not None:
            return True
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return False
        self._file = file
        return True

    async def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


class SessionLease:
    """An advisory lock of a session on Postgres, with a connection of its own."""

    def __init__(self, database: AsyncEngine) -> None:
        self._engine = create_engine(database.url)
        self._connection: AsyncConnection | None = None

    async def take(self) -> bool:
        if self._connection is not None:
            return True
        connection = await self._engine.connect()
        # Through a pooler a session's lock would stay with a session that serves others, after
        # this process has ended too. A transaction keeps its session, and ends with the client.
        lock = func.pg_try_advisory_xact_lock
        if not is_pooled(self._engine):
            await connection.execution_options(isolation_level="AUTOCOMMIT")
            lock = func.pg_try_advisory_lock
        found = await connection.execute(select(lock(POSTGRES_LOCK)))
        self._connection = connection
        if not (is_held := bool(found.scalar_one())):
            await self.release()
        return is_held

    async def release(self) -> None:
        if self._connection is not None:
            with suppress(SQLAlchemyError, OSError, asyncio.CancelledError):
                await self._connection.close()
                await self._engine.dispose()  # ends the session
            self._connection = None


def lease_of(database: AsyncEngine) -> FileLease | SessionLease:
    """Return the lease of a database."""
    if database.dialect.name == "postgresql":
        return SessionLease(database)
    return FileLease(adjacent_path(database, SUFFIX))


def adjacent_path(database: AsyncEngine, suffix: str) -> Path:
    """Return the path of a file that belongs to a SQLite database."""
    return Path(f"{database.url.database}{suffix}").absolute()
