"""Where a zoo's fold begins once its log was pruned: the state that stands for what is gone."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import delete, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.store.tables import candidate_events, log_base, log_head, snapshots


@dataclass(frozen=True, slots=True)
class Base:
    """The state of one zoo after the record at ``position``. ``taught`` counts the lessons in it by
    batch; ``settings`` are None where a version before kept the snapshot that it was."""

    zoo: str
    position: int
    fingerprint: str
    settings: Mapping[str, Any] | None
    taught: Counter[str]
    created_at: datetime
    state: bytes


async def read(engine: AsyncEngine, zoo: str) -> Base | None:
    """Read the base of the zoo; None where nothing of it was pruned."""
    async with engine.connect() as connection:
        query = select(log_base).where(log_base.c.zoo == zoo)
        found = (await connection.execute(query)).one_or_none()
    if found is None:
        return None
    return Base(
        zoo=found.zoo,
        position=found.position,
        fingerprint=found.fingerprint,
        settings=found.settings,
        taught=Counter(found.taught),
        created_at=found.created_at,
        state=found.state,
    )


async def positions(engine: AsyncEngine) -> dict[str, int]:
    """Read where the fold of each zoo that has a base goes on."""
    async with engine.connect() as connection:
        found = await connection.execute(select(log_base.c.zoo, log_base.c.position))
        return {row.zoo: row.position for row in found}


async def replace(
    connection: AsyncConnection, bases: Sequence[Base], forgotten: Sequence[str] = ()
) -> None:
    """Put these in the place of those that the zoos had; ``forgotten`` zoos have none any more."""
    for zoo in forgotten:
        await _forget(connection, zoo)
    of_zoos = log_base.c.zoo.in_([base.zoo for base in bases])
    await connection.execute(delete(log_base).where(of_zoos))
    if bases:
        await connection.execute(insert(log_base), [_row(base) for base in bases])


async def drop(engine: AsyncEngine, zoo: str) -> bool:
    """Forget what the pruned rows of a zoo left behind; False where they left nothing."""
    async with engine.begin() as connection:
        return await _forget(connection, zoo)


async def _forget(connection: AsyncConnection, zoo: str) -> bool:
    """Delete the base and the snapshots of a zoo: from an older one, the log does not lead to here
    any more. So do the changes of its candidates that no fold reads: workers report anew what is
    there."""
    dropped = await connection.execute(delete(log_base).where(log_base.c.zoo == zoo))
    await connection.execute(delete(snapshots).where(snapshots.c.zoo == zoo))
    start = select(log_head.c.start).scalar_subquery()
    unread = (candidate_events.c.zoo == zoo) & (candidate_events.c.position <= start)
    await connection.execute(delete(candidate_events).where(unread))
    return dropped.rowcount > 0


def _row(base: Base) -> dict[str, Any]:
    return {
        "zoo": base.zoo,
        "position": base.position,
        "fingerprint": base.fingerprint,
        "settings": base.settings,
        "taught": dict(base.taught),
        "created_at": base.created_at,
        "state": base.state,
    }
