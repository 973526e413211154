"""Snapshots: where the fold had got to, so that a start need not read the whole log."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import delete, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.store.tables import log_head, snapshots

KEPT = 3
"""Snapshots kept of each zoo."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of one zoo after the record at ``position``."""

    zoo: str
    position: int
    fingerprint: str
    state: bytes


async def save(engine: AsyncEngine, snapshot: Snapshot) -> None:
    """Write it unless another worker has, and drop the oldest ones.

    On Postgres two workers that come to the same position at once do not see each other's row.
    """
    with suppress(IntegrityError):
        await _replace(engine, snapshot)


async def _replace(engine: AsyncEngine, snapshot: Snapshot) -> None:
    at = (snapshots.c.zoo == snapshot.zoo) & (snapshots.c.position == snapshot.position)
    async with engine.begin() as connection:
        await connection.execute(delete(snapshots).where(at))
        await connection.execute(
            insert(snapshots).values(
                zoo=snapshot.zoo,
                position=snapshot.position,
                fingerprint=snapshot.fingerprint,
                created_at=datetime.now(UTC),
                state=snapshot.state,
            )
        )
        positions = select(snapshots.c.position).where(snapshots.c.zoo == snapshot.zoo)
        newest = positions.order_by(snapshots.c.position.desc()).limit(KEPT)
        kept = (await connection.execute(newest)).scalars().all()
        await connection.execute(
            delete(snapshots).where(
                snapshots.c.zoo == snapshot.zoo, snapshots.c.position.not_in(kept)
            )
        )


async def drop_ahead(engine: AsyncEngine, zoo: str) -> None:
    """Drop those that the log has not reached: kept, they would push new ones out."""
    end = select(log_head.c.position).scalar_subquery()
    async with engine.begin() as connection:
        await connection.execute(
            delete(snapshots).where(snapshots.c.zoo == zoo, snapshots.c.position > end)
        )


async def newest(engine: AsyncEngine, zoo: str, fingerprint: str) -> Snapshot | None:
    """The newest snapshot of the zoo that was taken under the same settings."""
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
    return Snapshot(found.zoo, found.position, found.fingerprint, found.state)
