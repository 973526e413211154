"""Stored states of zoos: a start goes on from the newest, and reads of the log what came since."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import delete, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.store.tables import log_head, snapshots

KEPT = 3
"""The number of snapshots kept per zoo."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of one zoo after the record at ``position``. ``fingerprint`` is the hash of the
    settings that it depends on."""

    zoo: str
    position: int
    fingerprint: str
    state: bytes


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
    """Find the newest snapshot of the zoo taken under the same settings."""
    query = (
        select(snapshots)
        .where(snapshots.c.zoo == zoo, snapshots.c.fingerprint == fingerprint)
        .order_by(snapshots.c.position.desc())
        .limit(1)
    )
    async with engine.connect() as connection:
        found = (await connection.execute(query)).one_or_none()
    if found is None:
        return None
    return Snapshot(*(found._mapping[name] for name in Snapshot.__slots__))
