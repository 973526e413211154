"""What became of the candidates, in the log: reported by compare-and-set, so that of several
workers that see the same change one writes it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Row, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.records import CandidateRecord
from litellm_messplus.state.catalog import price_of
from litellm_messplus.state.entries import CandidateChanged
from litellm_messplus.store import log
from litellm_messplus.store.rows import row_of
from litellm_messplus.store.tables import candidate_events
from litellm_messplus.vocabulary import Change

SHOWN = 100
"""Changes of a zoo that are shown, the newest."""


async def report(engine: AsyncEngine, record: CandidateRecord, after: int | None) -> int | None:
    """Append a change to the log, with the next number; returns its position. None where somebody
    else was faster: the log has more changes of the candidate than the ``after`` that the reporter
    knows, or, to one who knows none, the candidate is there. Where they are pruned, the number goes
    on from what the reporter knows.

    The head of the log is locked from the question to the commit, so that no two are written.
    Raises SQLAlchemyError and DatabaseFileGoneError.
    """
    async with engine.begin() as connection:
        await log.lock(connection)
        newest = await _newest(connection, record.zoo, record.candidate)
        number = (after or 0) if newest is None else newest.number
        if after is None and newest is not None and newest.change != Change.GONE:
            return None
        if after is not None and number != after:
            return None
        head = (await log.advance(connection, 1)).head
        row = row_of(replace(record, number=number + 1), head)
        await connection.execute(insert(candidate_events), [row])
        return head


async def _newest(connection: AsyncConnection, zoo: str, candidate: str) -> Any:
    """Read the newest change of a candidate."""
    query = (
        select(candidate_events.c.number, candidate_events.c.change)
        .where(candidate_events.c.zoo == zoo, candidate_events.c.candidate == candidate)
        .order_by(candidate_events.c.number.desc())
        .limit(1)
    )
    return (await connection.execute(query)).one_or_none()


async def changes_in(
    connection: AsyncConnection, after: int, upto: int
) -> Sequence[CandidateChanged]:
    """Read the changes at positions in (after, upto] as entries of the fold."""
    in_page = (candidate_events.c.position > after, candidate_events.c.position <= upto)
    found = await connection.execute(select(candidate_events).where(*in_page))
    return [_entry(row) for row in found]


def _entry(found: Row[Any]) -> CandidateChanged:
    return CandidateChanged(
        position=found.position,
        zoo=found.zoo,
        candidate=found.candidate,
        change=Change(found.change),
        price=price_of(found.price),
        at=found.created_at.timestamp(),
        number=found.number,
    )


@dataclass(frozen=True, slots=True)
class CandidateStatus:
    """A change of a model of a zoo; ``at`` is UTC."""

    zoo: str
    candidate: str
    change: Change
    at: datetime


async def newest_changes(connection: AsyncConnection, limit: int = SHOWN) -> list[CandidateStatus]:
    """Read the newest changes of all zoos, the newest first."""
    query = select(candidate_events).order_by(candidate_events.c.position.desc()).limit(limit)
    found = await connection.execute(query)
    return [
        CandidateStatus(row.zoo, row.candidate, Change(row.change), row.created_at) for row in found
    ]
