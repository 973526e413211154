"""Lessons in the database: how many are there, and taking them back."""

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.errors import MessplusError
from litellm_messplus.store import base, log
from litellm_messplus.store.tables import lessons, log_base, snapshots


async def counts(engine: AsyncEngine, zoo: str, upto: int | None = None) -> Counter[str]:
    """Count the lessons of each batch of a zoo, up to a position in the log where one is given.
    Those in the zoo's base count, whether their rows are still there or not."""
    begins = await base.read(engine, zoo)
    query = select(lessons.c.batch, func.count()).where(lessons.c.zoo == zoo)
    if begins is not None:
        query = query.where(lessons.c.position > begins.position)
    if upto is not None:
        query = query.where(lessons.c.position <= upto)
    async with engine.connect() as connection:
        found = await connection.execute(query.group_by(lessons.c.batch))
        counted: Counter[str] = Counter(dict(found.all()))
    return counted if begins is None else counted + begins.taught


async def lasting(engine: AsyncEngine, zoo: str) -> Counter[str]:
    """Count the lessons of each batch that are in the zoo's base, and cannot be taken back."""
    async with engine.connect() as connection:
        return await _lasting(connection, zoo)


async def refuse_lasting(connection: AsyncConnection, zoo: str, batches: Sequence[str]) -> None:
    """Raise MessplusError where the lessons of one of these batches are in the zoo's base."""
    stay = sorted(set(batches) & (await _lasting(connection, zoo)).keys())
    if stay:
        raise MessplusError(
            f"--forget: given {', '.join(stay)}, whose lessons are in the state that the log of "
            f"{zoo} begins with since it was pruned; allowed: sources that were taught since then"
        )


async def _lasting(connection: AsyncConnection, zoo: str) -> Counter[str]:
    query = select(log_base.c.taught).where(log_base.c.zoo == zoo)
    return Counter((await connection.execute(query)).scalar_one_or_none() or {})


async def forget(engine: AsyncEngine, zoo: str, batches: Sequence[str]) -> int:
    """Delete the lessons of these batches, and the zoo's snapshots, which hold what they taught;
    returns how many lessons there were.

    Under the log's lock, so that no prune makes them last meanwhile. Raises MessplusError where
    they do already.
    """
    async with engine.begin() as connection:
        await log.lock(connection)
        await refuse_lasting(connection, zoo, batches)
        of_batches = (lessons.c.zoo == zoo) & lessons.c.batch.in_(batches)
        deleted = await connection.execute(delete(lessons).where(of_batches))
        await connection.execute(delete(snapshots).where(snapshots.c.zoo == zoo))
    return deleted.rowcount
