"""Pruning the log: the lock, how much of the log may go, and the deletion of its rows."""

import sqlite3
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    Table,
    delete,
    exists,
    func,
    or_,
    select,
    text,
    union,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.runtime.errors import MessplusError
from litellm_messplus.runtime.vocabulary import Change
from litellm_messplus.state.snapshot import taught_in
from litellm_messplus.store import log, snapshots
from litellm_messplus.store.snapshots import Base, Snapshot, replace_bases
from litellm_messplus.store.tables import (
    call_energy,
    calls,
    candidate_events,
    gradings,
    labels,
    lessons,
    log_base,
    log_head,
    outcomes,
    requests,
    verdicts,
)
from litellm_messplus.store.tables import snapshots as kept_snapshots

BY_THEMSELVES = (requests, lessons, candidate_events)
"""Tables whose rows a fold reads by zoo, and that are pruned by their own position."""
ABOUT_REQUESTS = (calls, labels, gradings, call_energy)
FOLLOWING = (outcomes, verdicts)
"""Derived tables: their rows are deleted with the requests, and are no part of the log."""
PRUNED = (requests, *ABOUT_REQUESTS, lessons, candidate_events)
"""Every table of the log that rows are deleted from."""

# One prune of a database at a time: two would overwrite each other's files.

POSTGRES_PRUNE_LOCK = 0x6D65_7373_7072  # "messpr"
SUFFIX = "-prune"
"""Suffix of the empty file next to a SQLite database that serves as lock; it may be deleted
whenever no prune runs."""


class BusyPruningError(MessplusError):
    """A refusal because another prune of the same database is running."""


@asynccontextmanager
async def alone(engine: AsyncEngine) -> AsyncIterator[None]:
    """Hold the lock, which is released if the process is killed. Raises BusyPruningError."""
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
# Labels may come days after their request, so hardly any position has all records about the older
# requests before it. Hence requests are pruned by their own position, with all records about them
# at any position, and the state that replaces them is of a later position: that of a snapshot, from
# which a start would continue the fold.


@dataclass(frozen=True, slots=True)
class Cut:
    """Requests, lessons and changes of candidates at positions in (``start``, ``upto``] that may be
    pruned, as of the log's ``head``; ``bases`` replace them. ``held`` maps each zoo whose snapshot
    ends too early, and so holds back rows that are old enough, to its position. ``forgotten`` zoos
    get no base."""

    start: int
    upto: int
    head: int
    bases: tuple[Base, ...]
    held: dict[str, int] = field(default_factory=dict)
    forgotten: tuple[str, ...] = ()


async def find_cut(engine: AsyncEngine, before: datetime, forgotten: Sequence[str] = ()) -> Cut:
    """Find the highest position up to which every request was decided ``before`` that time, and all
    that the fold reads about them is in a snapshot of their zoo. Writes nothing."""
    reached = await usable(engine)
    ends = await log.ends(engine)
    first = {}
    async with engine.connect() as connection:
        young = await _lowest(connection, _young(ends.start, before))
        upto = ends.head if young is None else young - 1
        zoos = [zoo for zoo in await _zoos(connection, before) if zoo not in forgotten]
        reach = {zoo: reached[zoo].position if zoo in reached else 0 for zoo in zoos}
        for zoo in zoos:
            found = await _lowest(connection, _beyond(reach[zoo], ends.start, upto, zoo))
            if found is not None:
                first[zoo] = found
    return Cut(
        start=ends.start,
        upto=max(ends.start, min([upto, *(position - 1 for position in first.values())])),
        head=ends.head,
        bases=tuple(reached[zoo] for zoo in zoos if zoo in reached),
        held={zoo: reach[zoo] for zoo in first},
        forgotten=tuple(forgotten),
    )


async def move_start(engine: AsyncEngine, cut: Cut) -> int:
    """Apply the cut, and return the log's start. After that the requests are gone: no record about
    them is accepted, no fold needs them, and their rows may be deleted at any time.

    Under the log's lock, for which labels wait, only records written since the cut was found are
    read.
    """
    async with engine.begin() as connection:
        ends = await log.lock(connection)
        late = await _lowest(connection, _about(cut.head, cut.start, cut.upto))
        upto = cut.upto if late is None else late - 1
        if upto <= ends.start or not await are_kept(connection, cut.bases):
            return ends.start
        await connection.execute(update(log_head).values(start=upto))
        await replace_bases(connection, cut.bases, cut.forgotten)
    return upto


async def usable(engine: AsyncEngine) -> dict[str, Base]:
    """Find, by zoo, the newest state that a start could continue from: that of a readable snapshot
    whose lessons agree with the log, else that of the base, if any."""
    found = await snapshots.bases(engine)
    for each in await snapshots.newest_of_each_zoo(engine):
        begins = found.get(each.zoo)
        is_newer = begins is None or begins.position < each.position
        if is_newer and await _is_usable(engine, each):
            found[each.zoo] = Base.of(each)
    return found


async def _is_usable(engine: AsyncEngine, found: Snapshot) -> bool:
    try:
        taught = taught_in(found.state)
    except (ValueError, KeyError):
        return False
    is_ahead = found.position > await log.head(engine)
    return not is_ahead and taught == await snapshots.lessons_upto(
        engine, found.zoo, found.position
    )


async def _lowest(connection: AsyncConnection, queries: Iterable[Select[Any]]) -> int | None:
    """Return the lowest position that one of the queries finds; None if they find none."""
    found = [(await connection.execute(query)).scalar_one_or_none() for query in queries]
    return min((position for position in found if position is not None), default=None)


def _young(start: int, before: datetime) -> Iterator[Select[Any]]:
    """Query the first request, lesson and change that is not old enough."""
    for table in BY_THEMSELVES:
        is_young = (table.c.position > start) & (table.c.created_at >= before)
        yield select(table.c.position).where(is_young).order_by(table.c.position).limit(1)


async def _zoos(connection: AsyncConnection, before: datetime) -> Sequence[str]:
    """List the zoos that have requests or changes of candidates of that age, or lessons."""
    query = union(
        select(requests.c.zoo).where(requests.c.created_at < before),
        select(lessons.c.zoo),
        select(candidate_events.c.zoo).where(candidate_events.c.created_at < before),
    )
    return sorted((await connection.execute(query)).scalars())


def _beyond(reach: int, start: int, upto: int, zoo: str) -> Iterator[Select[Any]]:
    """Query the first request, lesson and change of the zoo that its state does not fully
    include."""
    for table in BY_THEMSELVES:
        yield select(func.min(table.c.position)).where(
            table.c.zoo == zoo, table.c.position > max(reach, start), table.c.position <= upto
        )
    for query in _about(reach, start, upto):
        yield query.where(requests.c.zoo == zoo)


def _about(after: int, start: int, upto: int) -> Iterator[Select[Any]]:
    """Query the first of these requests that has a later call or label."""
    first = select(func.min(requests.c.position))
    of_these = (requests.c.position > start) & (requests.c.position <= upto)
    for table in (calls, labels):
        of_request = requests.c.request_id == table.c.request_id
        later = first.select_from(table).join(requests, of_request)
        yield later.where(table.c.position > after, of_these)


async def are_kept(connection: AsyncConnection, bases: Sequence[Base]) -> bool:
    """Tell whether the snapshots still exist: they are deleted when lessons are taken back."""
    for each in bases:
        for table in (kept_snapshots, log_base):
            of_zoo = select(table.c.position).where(table.c.zoo == each.zoo)
            if each.position in (await connection.execute(of_zoo)).scalars().all():
                break
        else:
            return False
    return True


# The rows of pruned requests, lessons and changes of candidates, read and deleted in parts of
# bounded size.
#
# The newest change of a candidate stays while the candidate is there, one row per model: its number
# shows which changes are new. The others are included in the base of the zoo.

SPAN = 20_000
"""Positions of the log in one part, which bounds the memory for reading it."""
CHUNK = 100
"""Requests, lessons or changes deleted in one transaction, for which labels wait on SQLite."""


@dataclass(frozen=True, slots=True)
class Part:
    """Requests, lessons and changes at positions in (``after``, ``upto``], with the records about
    the requests at any position. A resumed run finds the same parts."""

    after: int
    upto: int


async def first_part(engine: AsyncEngine, start: int) -> Part | None:
    """Find the first part before the start of the log that has rows left; None if none has."""
    queries = (
        select(func.min(table.c.position)).where(_in_part(table, Part(0, start)))
        for table in BY_THEMSELVES
    )
    async with engine.connect() as connection:
        first = await _lowest(connection, queries)
    if first is None:
        return None
    after = (first - 1) // SPAN * SPAN
    return Part(after, min(after + SPAN, start))


async def rows(engine: AsyncEngine, table: Table, part: Part) -> list[dict[str, Any]]:
    """Read all rows of the part in a table, in log order."""
    async with engine.connect() as connection:
        query = select(table).where(_in_part(table, part)).order_by(table.c.position)
        return [dict(row) for row in (await connection.execute(query)).mappings()]


async def keys(engine: AsyncEngine, table: Table, part: Part) -> set[str]:
    """Read the primary keys of these rows."""
    async with engine.connect() as connection:
        query = select(*table.primary_key.columns).where(_in_part(table, part))
        return set((await connection.execute(query)).scalars())


async def counts(engine: AsyncEngine, part: Part) -> Mapping[str, int]:
    """Count the rows that each table has in the part."""
    async with engine.connect() as connection:
        queries = {
            table.name: select(func.count()).select_from(table).where(_in_part(table, part))
            for table in PRUNED
        }
        return {
            name: (await connection.execute(query)).scalar_one() for name, query in queries.items()
        }


async def delete_some(engine: AsyncEngine, part: Part) -> int:
    """Delete a chunk in one transaction: requests with all records about them, or lessons, or
    changes. Returns the number of rows; 0 if the part has none left."""
    for table in BY_THEMSELVES:
        (key,) = table.primary_key.columns
        query = select(key).where(_in_part(table, part)).order_by(table.c.position).limit(CHUNK)
        # Read in a separate transaction: SQLite then takes the writer's lock only for the deletion.
        async with engine.connect() as connection:
            chosen = (await connection.execute(query)).scalars().all()
        if not chosen:
            continue
        deleted = 0
        async with engine.begin() as connection:
            for other in (*FOLLOWING, *ABOUT_REQUESTS) if table is requests else ():
                of_these = delete(other).where(other.c.request_id.in_(chosen))
                found = await connection.execute(of_these)
                deleted += 0 if other in FOLLOWING else found.rowcount
            deleted += (await connection.execute(delete(table).where(key.in_(chosen)))).rowcount
        return deleted
    return 0


def _in_part(table: Table, part: Part) -> ColumnElement[bool]:
    if table in ABOUT_REQUESTS:
        within: Select[Any] = select(requests.c.request_id).where(_in_part(requests, part))
        return table.c.request_id.in_(within)
    within_part = (table.c.position > part.after) & (table.c.position <= part.upto)
    return within_part & _is_past() if table is candidate_events else within_part


def _is_past() -> ColumnElement[bool]:
    """Build the condition that a change of a candidate is obsolete: a newer one follows, the
    candidate is gone, or its zoo has no base."""
    own, newer = candidate_events.c, candidate_events.alias("newer")
    of_the_same = (newer.c.zoo == own.zoo) & (newer.c.candidate == own.candidate)
    is_followed = exists(newer.c.number).where(of_the_same & (newer.c.number > own.number))
    has_base = exists(log_base.c.zoo).where(log_base.c.zoo == own.zoo)
    return or_(is_followed, own.change == Change.GONE, ~has_base)
