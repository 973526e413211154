"""The order of the log: each position once over all tables, and none beyond the log's head."""

from collections.abc import Iterator

from sqlalchemy import Subquery, func, literal, select, union_all
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.store.rows import TABLE_OF
from litellm_messplus.store.tables import log_head
from litellm_messplus.upkeep.finding import Finding, Outcome, some

CHECK = "positions"
SHOWN = 3
"""Positions that are named."""


async def check_positions(database: AsyncEngine) -> list[Finding]:
    """Of requests, calls, labels and all others, which share one numbering."""
    async with database.connect() as connection:
        taken = _everywhere()
        query = select(  # at once: a running proxy appends between two statements
            func.count(),
            func.count(taken.c.position.distinct()),
            func.min(taken.c.position),
            func.max(taken.c.position),
            select(log_head.c.position).scalar_subquery(),
            func.coalesce(select(log_head.c.start).scalar_subquery(), 0),
        )
        records, distinct, first, last, head, start = (await connection.execute(query)).one()
        wrong = list(_bounds(first or 1, last or 0, head, start))
        if records > distinct:
            wrong.append(await _shared(connection, taken))
    if wrong:
        return wrong
    findings = [Finding(CHECK, Outcome.SOUND, f"{records} records, each at a position of its own")]
    if start:
        findings.append(_pruned(start, is_done=(first or head) > start))
    empty = (head or 0) - distinct
    if empty and not start:
        told = (
            f"{empty} of {head} positions are empty, as `messplus teach --forget` leaves them (and "
            "rows that were deleted by hand)"
        )
        findings.append(Finding(CHECK, Outcome.NOTE, told))
    return findings


def _pruned(start: int, *, is_done: bool) -> Finding:
    told = f"requests and lessons up to {start} are pruned"
    if is_done:
        return Finding(CHECK, Outcome.NOTE, told)
    return Finding(
        CHECK,
        Outcome.NOTE,
        f"{told}, and rows of them are still there: the next `messplus prune` deletes them",
    )


def _everywhere() -> Subquery:
    return union_all(
        *(
            select(table.c.position, literal(table.name).label("name"))
            for table in TABLE_OF.values()
        )
    ).subquery("taken")


def _bounds(first: int, last: int, head: int | None, start: int) -> Iterator[Finding]:
    if head is None:
        yield Finding(
            CHECK,
            Outcome.WRONG,
            "the table log_head is empty, which says where the log ends",
            f"stop the proxy, then: INSERT INTO log_head (id, position) VALUES (1, {last})",
        )
    elif last > head:
        yield Finding(
            CHECK,
            Outcome.WRONG,
            f"log_head says that the log ends at {head}, and there is a record at {last}",
            f"stop the proxy, then: UPDATE log_head SET position = {last}",
        )
    elif start > head:
        yield Finding(
            CHECK,
            Outcome.WRONG,
            f"log_head says that the log is pruned up to {start}, and ends at {head}",
            "restore the database from a backup",
        )
    if first < 1:
        yield Finding(
            CHECK,
            Outcome.WRONG,
            f"there is a record at {first}; positions begin at 1",
            "delete that record, or restore the database from a backup",
        )


async def _shared(connection: AsyncConnection, taken: Subquery) -> Finding:
    """The positions that more than one record has; each is unique within its table."""
    twice = (
        select(taken.c.position).group_by(taken.c.position).having(func.count() > 1)
    ).subquery()
    count = (await connection.execute(select(func.count()).select_from(twice))).scalar_one()
    query = select(twice.c.position).order_by(twice.c.position).limit(SHOWN)
    shown = (await connection.execute(query)).scalars().all()
    named = []
    for position in shown:
        tables = select(taken.c.name).where(taken.c.position == position).order_by(taken.c.name)
        names = (await connection.execute(tables)).scalars().all()
        named.append(f"{position} ({' and '.join(names)})")
    return Finding(
        CHECK,
        Outcome.WRONG,
        f"more than one record is at position {some(named, count)}, so the log has no order there",
        "restore the database from a backup, or delete the record that does not belong there",
    )
