"""Snapshots: where the fold had got to, so that a start need not read the whole log."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row, delete, func, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.store.tables import log_base, log_head, snapshots

KEPT = 3
"""Snapshots kept of each zoo."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of one zoo after the record at ``position``. ``settings`` are what the fingerprint
    is of; None where nobody kept them."""

    zoo: str
    position: int
    fingerprint: str
    state: bytes
    settings: Mapping[str, Any] | None = None


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
                settings=snapshot.settings,
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
    """Find the newest snapshot of the zoo that was taken under the same settings, and not before
    its base: the log does not lead from there to here any more."""
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
    """Find the newest snapshot of each zoo, whatever settings it was taken under."""
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
    return Snapshot(row.zoo, row.position, row.fingerprint, row.state, row.settings)
