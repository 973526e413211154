"""Stored states of zoos: snapshots, so that a start need not read the whole log, and the base of a
zoo whose log was pruned, which replaces the pruned rows."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row, delete, func, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.runtime.errors import MessplusError
from litellm_messplus.state.snapshot import taught_in
from litellm_messplus.store import log
from litellm_messplus.store.tables import candidate_events, lessons, log_base, log_head, snapshots

KEPT = 3
"""The number of snapshots kept per zoo."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of one zoo after the record at ``position``. ``fingerprint`` is the hash of
    ``settings``, which are None if an earlier version stored none."""

    zoo: str
    position: int
    fingerprint: str
    state: bytes
    settings: Mapping[str, Any] | None = None


async def save(engine: AsyncEngine, snapshot: Snapshot) -> None:
    """Write the snapshot unless another worker has, and drop the oldest ones.

    On Postgres, two workers that write the same position at once do not see each other's row.
    """
    with suppress(IntegrityError):
        await _replace(engine, snapshot)


async def _replace(engine: AsyncEngine, snapshot: Snapshot) -> None:
    of_zoo = snapshots.c.zoo == snapshot.zoo
    async with engine.begin() as connection:
        at = of_zoo & (snapshots.c.position == snapshot.position)
        await connection.execute(delete(snapshots).where(at))
        row = {name: getattr(snapshot, name) for name in Snapshot.__slots__}
        await connection.execute(insert(snapshots).values(created_at=datetime.now(UTC), **row))
        newest = select(snapshots.c.position).where(of_zoo).order_by(snapshots.c.position.desc())
        kept = (await connection.execute(newest.limit(KEPT))).scalars().all()
        old = snapshots.c.position.not_in(kept)
        await connection.execute(delete(snapshots).where(of_zoo, old))


async def drop_ahead(engine: AsyncEngine, zoo: str) -> None:
    """Drop snapshots ahead of the log's end: if kept, they would displace new ones."""
    end = select(log_head.c.position).scalar_subquery()
    async with engine.begin() as connection:
        await connection.execute(
            delete(snapshots).where(snapshots.c.zoo == zoo, snapshots.c.position > end)
        )


async def newest(engine: AsyncEngine, zoo: str, fingerprint: str) -> Snapshot | None:
    """Find the newest snapshot of the zoo taken under the same settings, and not before its base:
    the log after an older one is no longer complete."""
    base = select(log_base.c.position).where(log_base.c.zoo == zoo).scalar_subquery()
    query = (
        select(snapshots)
        .where(snapshots.c.zoo == zoo, snapshots.c.fingerprint == fingerprint)
        .where(snapshots.c.position >= func.coalesce(base, 0))
        .order_by(snapshots.c.position.desc())
        .limit(1)
    )
    async with engine.connect() as connection:
        found = (await connection.execute(query)).one_or_none()
    return None if found is None else _snapshot(found)


async def newest_of_each_zoo(engine: AsyncEngine) -> list[Snapshot]:
    """Find the newest snapshot of each zoo, under any settings."""
    latest = (
        select(snapshots.c.zoo, func.max(snapshots.c.position).label("position"))
        .group_by(snapshots.c.zoo)
        .subquery()
    )
    is_latest = (latest.c.zoo == snapshots.c.zoo) & (latest.c.position == snapshots.c.position)
    async with engine.connect() as connection:
        found = await connection.execute(select(snapshots).join(latest, is_latest))
        return [_snapshot(row) for row in found]


def _snapshot(row: Row[Any]) -> Snapshot:
    return Snapshot(*(row._mapping[name] for name in Snapshot.__slots__))


# The state from which the fold of a zoo begins after its log was pruned.


@dataclass(frozen=True, slots=True, kw_only=True)
class Base(Snapshot):
    """The snapshot that replaces pruned rows. ``taught`` counts the lessons in it by batch."""

    taught: Counter[str]
    created_at: datetime

    @classmethod
    def of(cls, found: Snapshot) -> "Base":
        """Make a snapshot the base that replaces the rows before it."""
        given = {name: getattr(found, name) for name in Snapshot.__slots__}
        return cls(**given, taught=taught_in(found.state), created_at=datetime.now(UTC))


async def bases(engine: AsyncEngine, zoo: str | None = None) -> dict[str, Base]:
    """Read the bases by zoo, or that of one zoo."""
    query = select(log_base).order_by(log_base.c.zoo)
    if zoo is not None:
        query = query.where(log_base.c.zoo == zoo)
    async with engine.connect() as connection:
        found = (await connection.execute(query)).mappings()
        return {row["zoo"]: Base(**{**row, "taught": Counter(row["taught"])}) for row in found}


async def base_of(engine: AsyncEngine, zoo: str) -> Base | None:
    """Read the base of the zoo; None if nothing of it was pruned."""
    return (await bases(engine, zoo)).get(zoo)


async def base_positions(engine: AsyncEngine) -> dict[str, int]:
    """Read the position of the base of each zoo that has one."""
    async with engine.connect() as connection:
        found = await connection.execute(select(log_base.c.zoo, log_base.c.position))
        return {row.zoo: row.position for row in found}


async def replace_bases(
    connection: AsyncConnection, given: Sequence[Base], forgotten: Sequence[str] = ()
) -> None:
    """Replace the bases of these zoos, and delete those of ``forgotten`` zoos."""
    for zoo in forgotten:
        await _forget(connection, zoo)
    of_zoos = log_base.c.zoo.in_([base.zoo for base in given])
    await connection.execute(delete(log_base).where(of_zoos))
    names = log_base.columns.keys()
    rows = [{name: getattr(base, name) for name in names} for base in given]
    if rows:
        await connection.execute(insert(log_base), rows)


async def forget_base(engine: AsyncEngine, zoo: str) -> bool:
    """Delete the base of a zoo; False if it has none."""
    async with engine.begin() as connection:
        return await _forget(connection, zoo)


async def _forget(connection: AsyncConnection, zoo: str) -> bool:
    """Delete the base and the snapshots of a zoo: the log after an older one is no longer complete.
    Delete also the pruned changes of its candidates: workers report anew which ones are there."""
    dropped = await connection.execute(delete(log_base).where(log_base.c.zoo == zoo))
    await connection.execute(delete(snapshots).where(snapshots.c.zoo == zoo))
    start = select(log_head.c.start).scalar_subquery()
    unread = (candidate_events.c.zoo == zoo) & (candidate_events.c.position <= start)
    await connection.execute(delete(candidate_events).where(unread))
    return dropped.rowcount > 0


# The lessons that a state must include, and taking them back.


async def lessons_upto(engine: AsyncEngine, zoo: str, upto: int | None = None) -> Counter[str]:
    """Count the lessons of each batch of a zoo, up to a position of the log if given. Lessons in
    the zoo's base count, whether or not their rows still exist."""
    begins = await base_of(engine, zoo)
    query = select(lessons.c.batch, func.count()).where(lessons.c.zoo == zoo)
    if begins is not None:
        query = query.where(lessons.c.position > begins.position)
    if upto is not None:
        query = query.where(lessons.c.position <= upto)
    async with engine.connect() as connection:
        found = await connection.execute(query.group_by(lessons.c.batch))
        counted: Counter[str] = Counter(dict(found.all()))
    return counted if begins is None else counted + begins.taught


async def lasting_lessons(connection: AsyncConnection, zoo: str) -> Counter[str]:
    """Count the lessons of each batch in the zoo's base, which cannot be taken back."""
    query = select(log_base.c.taught).where(log_base.c.zoo == zoo)
    return Counter((await connection.execute(query)).scalar_one_or_none() or {})


async def refuse_lasting(connection: AsyncConnection, zoo: str, batches: Sequence[str]) -> None:
    """Raise MessplusError if lessons of one of these batches are in the zoo's base."""
    stay = sorted(set(batches) & (await lasting_lessons(connection, zoo)).keys())
    if stay:
        raise MessplusError(
            f"--forget: given {', '.join(stay)}, whose lessons are in the state that the log of "
            f"{zoo} begins with since it was pruned; allowed: sources that were taught since then"
        )


async def take_back(engine: AsyncEngine, zoo: str, batches: Sequence[str]) -> int:
    """Delete the lessons of these batches, and the zoo's snapshots, which include what they taught;
    returns the number of lessons deleted.

    Holds the log's lock, so that no prune puts them into the base meanwhile. Raises MessplusError
    if they are in it already.
    """
    async with engine.begin() as connection:
        await log.lock(connection)
        await refuse_lasting(connection, zoo, batches)
        of_batches = (lessons.c.zoo == zoo) & lessons.c.batch.in_(batches)
        deleted = await connection.execute(delete(lessons).where(of_batches))
        await connection.execute(delete(snapshots).where(snapshots.c.zoo == zoo))
    return deleted.rowcount
