"""Removing requests from a database, with or without a running proxy: old ones as a whole, and what
identifies those of one key or one user."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.runtime.database_url import without_passwords
from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.store import erasing, hours, log, pruning
from litellm_messplus.store.database import create_engine
from litellm_messplus.store.erasing import Owner as Owner  # from here, for the command
from litellm_messplus.store.reading import reading

LEAST_AGE = timedelta(days=1)
"""Least age of what is pruned: its calls have ended, and activity of keys counts for a day."""
PAUSE_SECONDS = 0.12
"""Least seconds between two transactions: a waiter for SQLite's lock finally tries every 0.1 s, and
would miss a shorter pause again and again. With 0.02 s, labels waited up to 1.7 s."""


@dataclass(frozen=True, slots=True)
class Removed:
    """The result: ``requests`` that are deleted or erased, and those that are ``held``, old enough,
    but about which the newest snapshot does not hold all. A dry run returns what would be."""

    database: str
    requests: int
    held: int
    is_dry_run: bool

    @property
    def text(self) -> str:
        """The result for people."""
        verb = "would go" if self.is_dry_run else "are gone"
        held = (
            f"; {self.held} older ones stay until a snapshot holds all about them: a proxy takes "
            "one every 10,000 records, and when it stops"
        )
        return f"{self.database}: {self.requests} requests {verb}{held if self.held else ''}"

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return asdict(self)


def checked(before: datetime) -> datetime:
    """Return the date, in UTC. Raises ConfigurationError if it is too recent."""
    before = before.replace(tzinfo=UTC) if before.tzinfo is None else before.astimezone(UTC)
    if before > datetime.now(UTC) - LEAST_AGE:
        raise ConfigurationError(
            "--before", before.isoformat(), "a time at least a day ago: younger requests are judged"
        )
    return before


async def prune(database: str, before: datetime, *, is_dry_run: bool = False) -> Removed:
    """Delete the requests decided before that time. Raises UnreadableDatabaseError."""
    before = checked(before)
    async with _writing(database) as engine:
        requests = (await pruning.count(engine, before))[0] if is_dry_run else 0
        if not is_dry_run:
            requests = await delete_before(engine, before)
        held = (await pruning.count(engine, before))[1]
        return Removed(without_passwords(engine.url), requests, held, is_dry_run)


async def delete_before(engine: AsyncEngine, before: datetime) -> int:
    """Delete the requests decided before that time, in short transactions, and return how many."""
    await hours.settle(engine, await log.head(engine))
    deleted, since = 0, None
    while True:
        began = time.monotonic()
        found, since = await pruning.delete_some(engine, before, since)
        deleted += found
        if not found:
            return deleted
        await asyncio.sleep(max(PAUSE_SECONDS, time.monotonic() - began))


async def erase(database: str, owner: Owner, *, is_dry_run: bool = False) -> Removed:
    """Erase what identifies the owner's requests, and their content. Raises
    UnreadableDatabaseError."""
    async with _writing(database) as engine:
        take = erasing.count if is_dry_run else erasing.erase
        found = await take(engine, owner)
        return Removed(without_passwords(engine.url), found, 0, is_dry_run)


@asynccontextmanager
async def _writing(database: str) -> AsyncIterator[AsyncEngine]:
    """Open an existing database, at a URL or a path, for writing."""
    async with reading(database):  # creates no database, reports what is wrong with one
        pass
    engine = create_engine(database if "://" in database else f"sqlite+aiosqlite:///{database}")
    try:
        yield engine
    finally:
        await engine.dispose()
