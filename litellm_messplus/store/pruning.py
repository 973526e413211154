"""Deleting old requests from the log, with all that is about them."""

from datetime import datetime

from sqlalchemy import ColumnElement, and_, delete, exists, func, select, update
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.store import log
from litellm_messplus.store.tables import (
    calls,
    gradings,
    labels,
    log_head,
    outcomes,
    requests,
    snapshots,
)

ABOUT_REQUESTS = (calls, labels, gradings, outcomes)
CHUNK = 100
"""Requests deleted in one transaction, for which labels wait."""


def removable(before: datetime) -> ColumnElement[bool]:
    """Build the condition that a request was decided ``before`` that time, and that the newest
    snapshot of its zoo holds all that the fold reads about it: a start goes on from there."""
    own = requests.c
    reach = (
        select(func.max(snapshots.c.position)).where(snapshots.c.zoo == own.zoo).scalar_subquery()
    )
    later = (
        exists(each.c.position).where(each.c.request_id == own.request_id, each.c.position > reach)
        for each in (calls, labels)
    )
    return and_(own.created_at < before, own.position <= reach, *(~each for each in later))


async def count(engine: AsyncEngine, before: datetime) -> tuple[int, int]:
    """Count the requests that may be deleted, and the others that were decided before that time."""
    old = select(func.count()).select_from(requests).where(requests.c.created_at < before)
    async with engine.connect() as connection:
        found = (await connection.execute(old.where(removable(before)))).scalar_one()
        return found, (await connection.execute(old)).scalar_one() - found


async def delete_some(
    engine: AsyncEngine, before: datetime, since: datetime | None
) -> tuple[int, datetime | None]:
    """Delete the oldest of them that are in the sums, decided ``since`` then, in one transaction
    under the log's lock, so that no record about one is added meanwhile. Returns their number, and
    the time of the newest."""
    own = requests.c
    query = select(own.request_id, own.position, own.created_at).where(removable(before))
    query = query.where(own.position <= select(log_head.c.summed).scalar_subquery())
    if since is not None:
        query = query.where(own.created_at >= since)
    async with engine.begin() as connection:
        await log.lock(connection)
        chosen = (await connection.execute(query.order_by(own.created_at).limit(CHUNK))).all()
        if not chosen:
            return 0, since
        ids = [row.request_id for row in chosen]
        for table in (*ABOUT_REQUESTS, requests):
            await connection.execute(delete(table).where(table.c.request_id.in_(ids)))
        upto = max(row.position for row in chosen)
        moved = update(log_head).where(log_head.c.start < upto).values(start=upto)
        await connection.execute(moved)
    return len(ids), chosen[-1].created_at
