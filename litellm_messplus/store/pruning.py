"""Pruning the log: who may, how much of it, and how its rows go."""

import sqlite3
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Select, and_, func, select, text, union, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.errors import MessplusError
from litellm_messplus.state import snapshot
from litellm_messplus.store import base, lessons, log, snapshots
from litellm_messplus.store.base import Base
from litellm_messplus.store.tables import (
    calls,
    candidate_events,
    labels,
    log_base,
    log_head,
    requests,
)
from litellm_messplus.store.tables import lessons as lesson_rows
from litellm_messplus.store.tables import snapshots as kept_snapshots

# One prune of a database at a time: two would write each other's files.

POSTGRES_PRUNE_LOCK = 0x6D65_7373_7072  # "messpr"
SUFFIX = "-prune"
"""Of the empty file beside a SQLite database that is locked; it may be deleted at any time when no
prune runs."""


class BusyPruningError(MessplusError):
    """A refusal because another prune of the same database is running."""


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


# How much of the log may be pruned, and pruning it: one transaction moves the log's start.
#
# What a user says of a request may come days later, so at hardly any position lies all about the
# older requests before it. Hence requests go by their position, with everything about them wherever
# it lies, and the state that stands for them is of a later position: that of a snapshot, which is
# the fold that a start would go on from.


OF_ZOOS = (requests, lesson_rows, candidate_events)
"""What a fold reads by itself, of a zoo, at a time."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Requests, lessons and changes of candidates at positions in (``start``, ``upto``] may go, as
    the log was at its
    ``head``; ``bases`` are to stand for them. ``held`` says, by zoo, where its snapshot ends and so
    holds back others that are old enough. ``forgotten`` zoos leave nothing behind."""

    start: int
    upto: int
    head: int
    bases: tuple[Base, ...]
    held: dict[str, int] = field(default_factory=dict)
    forgotten: tuple[str, ...] = ()


async def find_cut(engine: AsyncEngine, before: datetime, forgotten: Sequence[str] = ()) -> Cut:
    """Find the highest position up to which every request was decided ``before`` then, and
    everything that the fold knows of them is in a snapshot of their zoo. Nothing is written."""
    reached = {found.zoo: found for found in await usable(engine)}
    ends = await log.ends(engine)
    async with engine.connect() as connection:
        upto = await _old_enough(connection, ends, before)
        zoos = [zoo for zoo in await _zoos(connection, before) if zoo not in forgotten]
        first = {}
        for zoo in zoos:
            reach = reached[zoo].position if zoo in reached else 0
            found = await _first_beyond(connection, zoo, reach, ends.start, upto)
            if found is not None:
                first[zoo] = found
    return Cut(
        start=ends.start,
        upto=max(ends.start, min([upto, *(position - 1 for position in first.values())])),
        head=ends.head,
        bases=tuple(reached[zoo] for zoo in zoos if zoo in reached),
        held={zoo: reached[zoo].position if zoo in reached else 0 for zoo in first},
        forgotten=tuple(forgotten),
    )


async def move_start(engine: AsyncEngine, cut: Cut) -> int:
    """Make it so, and return the log's start. From here on the requests are gone: nothing can be
    added to them, no fold needs them, and their rows may be deleted at any time.

    Only what was written since the cut was found is looked at under the log's lock, which labels
    wait for.
    """
    async with engine.begin() as connection:
        ends = await log.lock(connection)
        late = await _first_late(connection, cut)
        upto = cut.upto if late is None else late - 1
        if upto <= ends.start or not await are_kept(connection, cut.bases):
            return ends.start
        await connection.execute(update(log_head).values(start=upto))
        await base.replace(connection, cut.bases, cut.forgotten)
    return upto


async def usable(engine: AsyncEngine) -> list[Base]:
    """Find the newest state of each zoo that a start could go on from: of a snapshot that can be
    read and holds the lessons that the log says, else of the base that there is."""
    found = []
    for each in await snapshots.newest_of_each_zoo(engine):
        begins = await base.read(engine, each.zoo)
        if begins is not None and begins.position >= each.position:
            continue
        if await _is_usable(engine, each):
            found.append(_base_of(each))
    known = {each.zoo for each in found}
    others = [await base.read(engine, zoo) for zoo in await base.positions(engine)]
    return found + [each for each in others if each is not None and each.zoo not in known]


async def _is_usable(engine: AsyncEngine, found: snapshots.Snapshot) -> bool:
    try:
        taught = snapshot.taught_in(found.state)
    except (ValueError, KeyError):
        return False
    is_ahead = found.position > await log.head(engine)
    return not is_ahead and taught == await lessons.counts(engine, found.zoo, found.position)


def _base_of(found: snapshots.Snapshot) -> Base:
    return Base(
        zoo=found.zoo,
        position=found.position,
        fingerprint=found.fingerprint,
        settings=found.settings,
        taught=snapshot.taught_in(found.state),
        created_at=datetime.now(UTC),
        state=found.state,
    )


async def _old_enough(connection: AsyncConnection, ends: log.Ends, before: datetime) -> int:
    """Find the position before the first request, lesson or change that is not old enough; the
    head where all are."""
    upto = ends.head
    for table in OF_ZOOS:
        query = (
            select(table.c.position)
            .where(table.c.position > ends.start, table.c.created_at >= before)
            .order_by(table.c.position)
            .limit(1)
        )
        first: int | None = (await connection.execute(query)).scalar_one_or_none()
        if first is not None:
            upto = min(upto, first - 1)
    return upto


async def _zoos(connection: AsyncConnection, before: datetime) -> Collection[str]:
    """List the zoos that have requests of that age, or lessons, or changes of candidates."""
    query = union(
        select(requests.c.zoo).where(requests.c.created_at < before),
        select(lesson_rows.c.zoo),
        select(candidate_events.c.zoo).where(candidate_events.c.created_at < before),
    )
    return sorted((await connection.execute(query)).scalars())


async def _first_beyond(
    connection: AsyncConnection, zoo: str, reach: int, start: int, upto: int
) -> int | None:
    """Find the first request, lesson or change of the zoo about which its state does not hold
    everything."""
    found = [
        (await connection.execute(query)).scalar_one() for query in _beyond(reach, start, upto, zoo)
    ]
    return min((position for position in found if position is not None), default=None)


def _beyond(reach: int, start: int, upto: int, zoo: str) -> Iterator[Select[Any]]:
    for table in OF_ZOOS:
        yield select(func.min(table.c.position)).where(
            table.c.zoo == zoo, table.c.position > max(reach, start), table.c.position <= upto
        )
    for query in _about(reach, start, upto):
        yield query.where(requests.c.zoo == zoo)


def _about(after: int, start: int, upto: int) -> Iterator[Select[Any]]:
    """Query the first of these requests that a later call or label is about."""
    for table in (calls, labels):
        of_request = requests.c.request_id == table.c.request_id
        yield (
            select(func.min(requests.c.position))
            .select_from(table)
            .join(requests, of_request)
            .where(
                table.c.position > after,
                and_(requests.c.position > start, requests.c.position <= upto),
            )
        )


async def _first_late(connection: AsyncConnection, cut: Cut) -> int | None:
    found = [
        (await connection.execute(query)).scalar_one()
        for query in _about(cut.head, cut.start, cut.upto)
    ]
    return min((position for position in found if position is not None), default=None)


async def are_kept(connection: AsyncConnection, bases: Sequence[Base]) -> bool:
    """Tell whether nobody has taken the snapshots away since: lessons may have been taken back."""
    for each in bases:
        for table in (kept_snapshots, log_base):
            of_zoo = select(table.c.position).where(table.c.zoo == each.zoo)
            if each.position in (await connection.execute(of_zoo)).scalars().all():
                break
        else:
            return False
    return True
