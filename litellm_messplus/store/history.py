"""Looking up requests, calls and labels by any id that a client may hold, one or many at once."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    RowMapping,
    exists,
    or_,
    select,
    true,
)
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.records import storable
from litellm_messplus.runtime.vocabulary import CallRole, CallStatus, Change, LabelKind
from litellm_messplus.store.tables import (
    calls,
    candidate_events,
    labels,
    outcomes,
    requests,
)

MOST_LABELS = 200
"""The most labels of a request that are shown; the newest are."""
SHOWN_CHANGES = 100
"""The most changes of candidates that are shown; the newest are."""


@dataclass(frozen=True, slots=True)
class Found:
    """A request that an id belongs to, the key that sent it, and the promise it counts towards."""

    request_id: str
    key_hash: str | None
    zoo: str
    service_level: str


async def find(engine: AsyncEngine, given: str, key_hash: str | None = None) -> Found | None:
    """Find the newest request whose own id, LiteLLM call id or response id is ``given``: of one key
    if given, else of any.

    All but the own id may repeat: clients or independent servers set them.
    """
    given = storable(given)
    answered = select(calls.c.request_id).where(
        calls.c.response_id == given, calls.c.role == CallRole.SERVED
    )
    is_meant = or_(
        requests.c.request_id == given,
        requests.c.litellm_call_id == given,
        requests.c.request_id.in_(answered),
    )
    return await _newest(engine, is_meant, key_hash)


async def newest_answered(
    engine: AsyncEngine, session: str, key_hash: str | None = None
) -> Found | None:
    """Find the newest answered request of the session of that digest: of one key if given, else of
    any."""
    is_answered = exists(calls.c.call_id).where(
        calls.c.request_id == requests.c.request_id,
        calls.c.role == CallRole.SERVED,
        calls.c.status == CallStatus.SUCCESS,
    )
    return await _newest(engine, (requests.c.session == session) & is_answered, key_hash)


async def _newest(
    engine: AsyncEngine, is_meant: ColumnElement[bool], key_hash: str | None
) -> Found | None:
    of = requests.c
    query = (
        select(of.request_id, of.key_hash, of.zoo, of.service_level)
        .where(is_meant, true() if key_hash is None else of.key_hash == key_hash)
        .order_by(of.position.desc())
        .limit(1)
    )
    async with engine.connect() as connection:
        found = (await connection.execute(query)).first()
    return None if found is None else Found(*found)


async def has_ended(engine: AsyncEngine, request_id: str, call_id: str) -> bool:
    """Tell whether the log holds that call of that request."""
    query = select(calls.c.call_id).where(
        calls.c.call_id == call_id, calls.c.request_id == request_id
    )
    async with engine.connect() as connection:
        return (await connection.execute(query)).first() is not None


@dataclass(frozen=True, slots=True)
class History:
    """One request with its calls and newest labels, as rows; ``outcome`` summarises them."""

    request: RowMapping
    outcome: RowMapping
    calls: list[RowMapping]
    labels: list[RowMapping]


async def history(engine: AsyncEngine, request_id: str) -> History | None:
    """Read what is logged about a request; None for an unknown id."""
    async with engine.connect() as connection:

        async def rows(query: Any) -> list[RowMapping]:
            return list((await connection.execute(query)).mappings())

        found = await rows(select(requests).where(requests.c.request_id == request_id))
        if not found:
            return None
        of_request = calls.c.request_id == request_id
        return History(
            request=found[0],
            outcome=(await rows(select(outcomes).where(outcomes.c.request_id == request_id)))[0],
            calls=await rows(select(calls).where(of_request).order_by(calls.c.call_id)),
            labels=(
                await rows(
                    select(labels)
                    .where(labels.c.request_id == request_id)
                    .order_by(labels.c.position.desc())
                    .limit(MOST_LABELS)
                )
            )[::-1],
        )


@dataclass(frozen=True, slots=True)
class CandidateStatus:
    """A change of a model of a zoo; ``at`` is UTC."""

    zoo: str
    candidate: str
    change: Change
    at: datetime


async def newest_changes(
    connection: AsyncConnection, limit: int = SHOWN_CHANGES
) -> list[CandidateStatus]:
    """Read the newest changes of the candidates of all zoos, the newest first."""
    query = select(candidate_events).order_by(candidate_events.c.position.desc()).limit(limit)
    found = await connection.execute(query)
    return [
        CandidateStatus(row.zoo, row.candidate, Change(row.change), row.created_at) for row in found
    ]


# The feedback on one call so far.


@dataclass(frozen=True, slots=True)
class CallVerdicts:
    """The feedback on a call: ``given`` is the number of verdicts, at most the number requested.
    Value, weight and comment are of the newest; ``counting`` and ``counted_at`` are value and time
    of the one that counts, if any."""

    given: int
    value: float | None = None
    weight: float | None = None
    comment: str | None = None
    counting: float | None = None
    counted_at: datetime | None = None

    def has(self, value: float, comment: str | None) -> bool:
        """Return whether the newest has this value and comment; a missing comment matches any."""
        return value == self.value and (comment is None or storable(comment) == self.comment)


async def call_verdicts(engine: AsyncEngine, call_id: str, most: int) -> CallVerdicts:
    """Read the newest ``most`` verdicts of users on a call.

    Raises SQLAlchemyError if the database does not answer.
    """
    columns = (labels.c.value, labels.c.weight, labels.c.created_at)
    of_call = (labels.c.call_id == call_id, labels.c.source == LabelKind.FEEDBACK)
    newest = labels.c.position.desc()
    query = select(*columns).where(*of_call).order_by(newest).limit(most)
    async with engine.connect() as connection:
        rows = (await connection.execute(query)).all()
        if not rows:
            return CallVerdicts(0)
        newest_comment = select(labels.c.comment).where(*of_call).order_by(newest).limit(1)
        comment = (await connection.execute(newest_comment)).scalar_one()
    counting = next((row for row in rows if row.weight > 0.0), None)
    return CallVerdicts(
        given=len(rows),
        value=rows[0].value,
        weight=rows[0].weight,
        comment=comment,
        counting=None if counting is None else counting.value,
        counted_at=None if counting is None else counting.created_at,
    )
