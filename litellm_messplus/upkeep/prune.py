"""Pruning a database, with or without a running proxy.

Three steps, each of which may be interrupted: the start of the log moves, with the states that
replace what was before; what is before it is written to files, and read back; then it is deleted,
in short transactions. The next run finishes what an earlier one began."""

import asyncio
import json
import os
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rich.table import Table
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.runtime.errors import ConfigurationError, MessplusError
from litellm_messplus.store import log, pruning, snapshots
from litellm_messplus.store.database import create_engine
from litellm_messplus.store.pruning import (
    PRUNED,
    BusyPruningError,
    Cut,
    Part,
    alone,
    find_cut,
    move_start,
)
from litellm_messplus.store.reading import reading
from litellm_messplus.upkeep.archive import Archive

LEAST_AGE = timedelta(days=1)
"""Least age of what is pruned: its calls have ended, and activity of keys counts for a day."""
SETTLE_SECONDS = 5.0
"""Seconds between moving the start and deleting, for workers to read what they have yet to fold."""
PAUSE_SECONDS = 0.12
"""Least seconds between two transactions: a waiter for SQLite's lock finally tries every 0.1 s, and
would miss a shorter pause again and again. With 0.02 s, labels waited up to 1.7 s."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """The result of a prune: requests and lessons at positions in (``start``, ``upto``] with
    ``rows`` by table. ``held`` is the end of each zoo's state, which holds back more. A dry run
    returns what would be pruned."""

    database: str
    before: datetime
    start: int
    upto: int
    rows: Mapping[str, int]
    held: Mapping[str, int]
    is_dry_run: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {**asdict(self), "before": self.before.isoformat(), "rows": dict(self.rows)}


def checked(before: datetime) -> datetime:
    """Return the date, in UTC. Raises ConfigurationError if it is too recent."""
    before = before.replace(tzinfo=UTC) if before.tzinfo is None else before.astimezone(UTC)
    if before > datetime.now(UTC) - LEAST_AGE:
        raise ConfigurationError(
            "--before", before.isoformat(), "a time at least a day ago: younger requests are judged"
        )
    return before


async def dry_run(database: str, before: datetime, forgotten: Sequence[str] = ()) -> Pruned:
    """Report what `prune` would do. Raises UnreadableDatabaseError."""
    before = checked(before)
    async with reading(database) as engine:
        cut = await find_cut(engine, before, forgotten)
        rows = await pruning.counts(engine, Part(0, cut.upto))
        return _pruned(engine, before, cut, cut.upto, rows, is_dry_run=True)


async def prune(
    database: str,
    before: datetime,
    archive: Path | None,
    forgotten: Sequence[str] = (),
) -> Pruned:
    """Move what was decided before ``before`` to the ``archive``, or delete it if that is None.

    Raises UnreadableDatabaseError, BusyPruningError and ArchiveError; what is begun stays begun.
    """
    before = checked(before)
    async with writing(database) as engine, alone(engine):
        return await _prune(engine, before, archive, forgotten)


async def begin_anew(database: str, zoo: str) -> bool:
    """Forget the state that a zoo's pruned rows left behind: its next start knows only the rows
    that are left. Return False if there was no state."""
    async with writing(database) as engine:
        return await snapshots.forget_base(engine, zoo)


@asynccontextmanager
async def writing(database: str) -> AsyncIterator[AsyncEngine]:
    """Open an existing database, at a URL or a path, for writing."""
    async with reading(database):  # creates no database, reports what is wrong with one
        pass
    engine = create_engine(database if "://" in database else f"sqlite+aiosqlite:///{database}")
    try:
        yield engine
    finally:
        await engine.dispose()


async def _prune(
    engine: AsyncEngine, before: datetime, archive: Path | None, forgotten: Sequence[str]
) -> Pruned:
    files = None if archive is None else Archive(archive)
    start = (await log.ends(engine)).start
    rows = await _delete_before(engine, start, files)
    cut = await find_cut(engine, before, forgotten)
    upto = await move_start(engine, cut)
    if upto > start:
        await asyncio.sleep(SETTLE_SECONDS)
        rows += await _delete_before(engine, upto, files)
    return _pruned(engine, before, cut, upto, rows)


async def _delete_before(engine: AsyncEngine, start: int, files: Archive | None) -> Counter[str]:
    """Delete everything before the start of the log, part by part."""
    deleted: Counter[str] = Counter()
    while (part := await pruning.first_part(engine, start)) is not None:
        deleted += Counter(await pruning.counts(engine, part))
        if files is not None:
            await _archive(engine, part, files)
        await _delete(engine, part)
    return deleted


async def _archive(engine: AsyncEngine, part: Part, files: Archive) -> None:
    """Write and check a file of every table with rows in the part, before any row is deleted. A
    file from an earlier run may hold more: some of its rows are already deleted."""
    written = []
    for table in PRUNED:
        keys = await pruning.keys(engine, table, part)
        if not keys:
            continue
        if not files.path(table, part).is_file():  # one that exists is complete
            files.write(table, part, await pruning.rows(engine, table, part))
            written.append(table)
        files.check(table, part, keys)
    for table in written:
        files.finish(table, part)


async def _delete(engine: AsyncEngine, part: Part) -> None:
    while True:
        began = time.monotonic()
        if not await pruning.delete_some(engine, part):
            return
        await asyncio.sleep(max(PAUSE_SECONDS, time.monotonic() - began))


def _pruned(
    engine: AsyncEngine,
    before: datetime,
    cut: Cut,
    upto: int,
    rows: Mapping[str, int],
    *,
    is_dry_run: bool = False,
) -> Pruned:
    shown = engine.url.render_as_string()
    by_table = {table.name: rows.get(table.name, 0) for table in PRUNED}
    return Pruned(shown, before, cut.start, upto, by_table, cut.held, is_dry_run)


# What was pruned, for the terminal.


def render(found: Pruned) -> Iterator[Table | str]:
    """Render one row per table of the log, then notes."""
    table = Table(title=found.database, title_justify="left")
    table.add_column("table")
    table.add_column("rows", justify="right")
    for name, count in found.rows.items():
        table.add_row(name, str(count))
    yield table
    verb = "would go" if found.is_dry_run else "are gone"
    yield f"requests decided before {found.before:%Y-%m-%d %H:%M} UTC, up to {found.upto}, {verb}"
    for zoo, position in found.held.items():
        yield (
            f"{zoo}: older requests stay, for its newest snapshot is at {position}. A proxy takes "
            "one every 10,000 records, and when it stops; where none serves the "
            f"zoo any more: --forget-zoo {zoo}"
        )


# Once a day: a process of its own, which a proxy starts. Reading, writing and compressing old rows
# takes no time from requests. Standard input is the task, standard output the result, in JSON.

NICE = 10
"""Niceness of that process: requests have the processor first."""


def task(database: str, keep_days: int, archive: str | None) -> bytes:
    """Encode the task for standard input, because the database's URL may hold a password."""
    given = {"database": database, "keep_days": keep_days, "archive": archive}
    return json.dumps(given).encode()


def run(given: bytes) -> dict[str, Any] | None:
    """Prune; return the result, or None if another worker of the proxy is pruning."""
    wanted = json.loads(given)
    before = datetime.now(UTC) - timedelta(days=wanted["keep_days"])
    archive = None if wanted["archive"] is None else Path(wanted["archive"])
    with suppress(BusyPruningError):
        return asyncio.run(prune(wanted["database"], before, archive)).as_dict()
    return None


if __name__ == "__main__":
    os.nice(NICE)
    try:
        print(json.dumps(run(sys.stdin.buffer.read())))
    except MessplusError as error:
        sys.exit(str(error))
