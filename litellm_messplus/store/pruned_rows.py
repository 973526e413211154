"""The rows of pruned requests, lessons and changes of candidates: found, read and deleted in parts
of bounded size.

Of the changes of a candidate the newest stays while it is there, so that one row a model is left:
its number says what is new of it. What the others said is in the base of the zoo.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, delete, exists, func, or_, select
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.store.tables import (
    call_energy,
    calls,
    candidate_events,
    gradings,
    labels,
    lessons,
    log_base,
    outcomes,
    requests,
    verdicts,
)
from litellm_messplus.vocabulary import Change

SPAN = 20_000
"""Positions of the log in one part, which bounds the memory that reading it takes."""
CHUNK = 100
"""Requests, lessons or changes, deleted in one transaction: labels wait for it on SQLite."""
ABOUT_REQUESTS = (calls, labels, gradings, call_energy)
FOLLOWING = (outcomes, verdicts)
"""Tables of what follows from these: their rows go with the requests, and are no part of the
log."""
BY_THEMSELVES = (requests, lessons, candidate_events)
"""Tables whose rows go by their own position."""
PRUNED = (requests, *ABOUT_REQUESTS, lessons, candidate_events)
"""Every table that rows go from."""


@dataclass(frozen=True, slots=True)
class Part:
    """Requests, lessons and changes at positions in (``after``, ``upto``], with all that is said of
    the requests wherever it lies. A run that goes on where another ended finds the same parts."""

    after: int
    upto: int


async def first_part(engine: AsyncEngine, start: int) -> Part | None:
    """Find the first part before the start of the log that has rows left; None where none has."""
    found = []
    async with engine.connect() as connection:
        for table in BY_THEMSELVES:
            query = select(func.min(table.c.position)).where(_in_part(table, Part(0, start)))
            found.append((await connection.execute(query)).scalar_one())
    first = min((position for position in found if position is not None), default=None)
    if first is None:
        return None
    after = (first - 1) // SPAN * SPAN
    return Part(after, min(after + SPAN, start))


async def rows(engine: AsyncEngine, table: Table, part: Part) -> list[dict[str, Any]]:
    """Read all rows of the part in a table, in the order of the log."""
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
        return {
            table.name: (
                await connection.execute(
                    select(func.count()).select_from(table).where(_in_part(table, part))
                )
            ).scalar_one()
            for table in PRUNED
        }


async def delete_some(engine: AsyncEngine, part: Part) -> int:
    """Delete a chunk in one transaction: requests with all that is said of them, or others.
    Returns how many rows that were; 0 where the part has none left."""
    for table in BY_THEMSELVES:
        about = ABOUT_REQUESTS if table is requests else ()
        (key,) = table.primary_key.columns
        # Read first and by itself: SQLite takes the writer's lock for what is deleted alone.
        chosen = await _first_keys(engine, table, part)
        if not chosen:
            continue
        async with engine.begin() as connection:
            deleted = 0
            for other in FOLLOWING if table is requests else ():
                await connection.execute(delete(other).where(other.c.request_id.in_(chosen)))
            for other in about:
                of_these = delete(other).where(other.c.request_id.in_(chosen))
                deleted += (await connection.execute(of_these)).rowcount
            deleted += (await connection.execute(delete(table).where(key.in_(chosen)))).rowcount
        return deleted
    return 0


async def _first_keys(engine: AsyncEngine, table: Table, part: Part) -> list[str]:
    query = select(*table.primary_key.columns).where(_in_part(table, part))
    async with engine.connect() as connection:
        found = await connection.execute(query.order_by(table.c.position).limit(CHUNK))
        return list(found.scalars())


def _in_part(table: Table, part: Part) -> ColumnElement[bool]:
    if table in ABOUT_REQUESTS:
        within: Select[Any] = select(requests.c.request_id).where(_in_part(requests, part))
        return table.c.request_id.in_(within)
    within_part = (table.c.position > part.after) & (table.c.position <= part.upto)
    return within_part & _is_past() if table is candidate_events else within_part


def _is_past() -> ColumnElement[bool]:
    """Tell whether a change of a candidate is over: another came after it, the candidate is gone,
    or its zoo has left nothing behind."""
    own, newer = candidate_events.c, candidate_events.alias("newer")
    of_the_same = (newer.c.zoo == own.zoo) & (newer.c.candidate == own.candidate)
    is_followed = exists(newer.c.number).where(of_the_same & (newer.c.number > own.number))
    has_base = exists(log_base.c.zoo).where(log_base.c.zoo == own.zoo)
    return or_(is_followed, own.change == Change.GONE, ~has_base)
