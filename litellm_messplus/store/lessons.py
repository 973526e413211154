"""Lessons in the database: how many are there, and taking them back."""

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.store.tables import lessons, snapshots


async def counts(engine: AsyncEngine, zoo: str, upto: int | None = None) -> Counter[str]:
    """Of each batch of a zoo, up to a position in the log where one is given."""
    query = select(lessons.c.batch, func.count()).where(lessons.c.zoo == zoo)
    if upto is not None:
        query = query.where(lessons.c.position <= upto)
    async with engine.connect() as connection:
        found = await connection.execute(query.group_by(lessons.c.batch))
        return Counter(dict(found.all()))


async def forget(engine: AsyncEngine, zoo: str, batches: Sequence[str]) -> int:
    """Delete the lessons of these batches, and the zoo's snapshots, which hold what they taught;
    returns how many lessons there were."""
    async with engine.begin() as connection:
        of_batches = (lessons.c.zoo == zoo) & lessons.c.batch.in_(batches)
        deleted = await connection.execute(delete(lessons).where(of_batches))
        await connection.execute(delete(snapshots).where(snapshots.c.zoo == zoo))
    return deleted.rowcount
