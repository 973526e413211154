"""Looking requests, calls and labels up: by any id that a client may hold, one or many at once."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    RowMapping,
    Select,
    and_,
    case,
    func,
    null,
    or_,
    select,
    true,
    union,
)
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.learning.logged import in_parts
from litellm_messplus.records import served_call_id
from litellm_messplus.runtime.vocabulary import CallRole, Change, LabelKind
from litellm_messplus.store.rows import storable
from litellm_messplus.store.tables import (
    calls,
    candidate_events,
    labels,
    log_head,
    outcomes,
    requests,
)

KEPT = requests.c.position > select(log_head.c.start).scalar_subquery()
"""Pruned requests are gone, also while their rows are still being deleted."""
MOST_LABELS = 200
"""Of a request, those that are shown: the newest."""
SHOWN_CHANGES = 100
"""Changes of candidates that are shown, the newest."""


@dataclass(frozen=True, slots=True)
class Found:
    """A request that an id belongs to, whose it is, and which promise it counts towards, with which
    other one where that stands for its conversation."""

    request_id: str
    key_hash: str | None
    zoo: str
    service_level: str
    counted_with: str | None = None


async def find(
    engine: AsyncEngine, given: str, key_hash: str | None = None, session: str | None = None
) -> Found | None:
    """Find the newest request whose own id, LiteLLM call id or response id is ``given``, or whose
    session has that digest: of that key where one is given, else of any.

    All but the first may repeat: clients set them, or independent servers do.
    """
    given = storable(given)
    answered = select(calls.c.request_id).where(
        calls.c.response_id == given, calls.c.role == "served"
    )
    is_meant = or_(
        requests.c.request_id == given,
        requests.c.litellm_call_id == given,
        requests.c.request_id.in_(answered),
        *(() if session is None else (requests.c.session == session,)),
    )
    query = select(
        *(requests.c.request_id, requests.c.key_hash, requests.c.zoo, requests.c.service_level),
        requests.c.counted_with,
    ).where(is_meant, KEPT, true() if key_hash is None else requests.c.key_hash == key_hash)
    query = query.order_by(requests.c.position.desc()).limit(1)
    async with engine.connect() as connection:
        found = (await connection.execute(query)).first()
    return None if found is None else Found(*found)


async def arrived_ids(
    engine: AsyncEngine, expected: Collection[str], after: int, upto: int
) -> set[str]:
    """Find those of the expected ids that the log holds at positions in (after, upto]."""
    in_requests = (requests.c.position > after, requests.c.position <= upto)
    in_calls = (calls.c.position > after, calls.c.position <= upto)
    query = union(
        select(requests.c.request_id).where(*in_requests, requests.c.request_id.in_(expected)),
        select(requests.c.litellm_call_id).where(
            *in_requests, requests.c.litellm_call_id.in_(expected)
        ),
        select(calls.c.response_id).where(*in_calls, calls.c.response_id.in_(expected)),
    )
    async with engine.connect() as connection:
        return set((await connection.execute(query)).scalars())


async def has_ended(engine: AsyncEngine, request_id: str, call_id: str) -> bool:
    """Tell whether the log holds that call, as one of that request."""
    query = select(calls.c.call_id).where(
        calls.c.call_id == call_id, calls.c.request_id == request_id
    )
    async with engine.connect() as connection:
        return (await connection.execute(query)).first() is not None


@dataclass(frozen=True, slots=True)
class History:
    """One request with its calls and its newest labels, as rows; ``outcome`` sums them up."""

    request: RowMapping
    outcome: RowMapping
    calls: list[RowMapping]
    labels: list[RowMapping]


async def history(engine: AsyncEngine, request_id: str) -> History | None:
    """Read what is logged about a request; None for an id that is not ours."""
    async with engine.connect() as connection:

        async def rows(query: Any) -> list[RowMapping]:
            return list((await connection.execute(query)).mappings())

        found = await rows(select(requests).where(requests.c.request_id == request_id, KEPT))
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


# What users have said of one call so far.


@dataclass(frozen=True, slots=True)
class CallVerdicts:
    """The feedback on a call: ``given`` is how many verdicts there are, no more than were asked
    for. The newest one's value, weight and comment; and the value and time of the one that counts,
    where one does."""

    given: int
    value: float | None = None
    weight: float | None = None
    comment: str | None = None
    counting: float | None = None
    counted_at: datetime | None = None

    def say(self, value: float, comment: str | None) -> bool:
        """Tell whether the newest says just that; a comment that is left out says nothing else."""
        return value == self.value and (comment is None or storable(comment) == self.comment)


async def call_verdicts(engine: AsyncEngine, call_id: str, most: int) -> CallVerdicts:
    """Read the feedback on a call, the newest ``most`` of it.

    Raises SQLAlchemyError where the database does not answer.
    """
    columns = (labels.c.value, labels.c.weight, labels.c.created_at)
    of_call = (labels.c.call_id == call_id, labels.c.source == LabelKind.FEEDBACK)
    newest = labels.c.position.desc()
    query = select(*columns).where(*of_call).order_by(newest).limit(most)
    async with engine.connect() as connection:
        rows = (await connection.execute(query)).all()
        if not rows:
            return CallVerdicts(0)
        said = select(labels.c.comment).where(*of_call).order_by(newest).limit(1)
        comment = (await connection.execute(said)).scalar_one()
    counting = next((row for row in rows if row.weight > 0.0), None)
    return CallVerdicts(
        given=len(rows),
        value=rows[0].value,
        weight=rows[0].weight,
        comment=comment,
        counting=None if counting is None else counting.value,
        counted_at=None if counting is None else counting.created_at,
    )


# Which calls many ids mean at once, and what lies on these calls already.


class Target(NamedTuple):
    """A call that an id means, and which promise its request counts towards."""

    call_id: str
    request_id: str
    zoo: str
    service_level: str


async def targets(connection: AsyncConnection, ids: Iterable[str]) -> dict[str, set[Target]]:
    """Find, by id, every call that it means: as the request's own id or LiteLLM's call id the one
    that the user saw, as a response id the call that gave the response."""
    found: dict[str, set[Target]] = defaultdict(set)
    for some in in_parts(ids):
        for query in _queries(some):
            for given, call_id, *of_request in await connection.execute(query):
                request_id = of_request[0]
                found[given].add(Target(call_id or served_call_id(request_id), *of_request))
    return found


async def labels_on(connection: AsyncConnection, call_ids: Iterable[str]) -> dict[str, int]:
    """Count the labels of each call that has any."""
    found: dict[str, int] = {}
    for some in in_parts(call_ids):
        query = (
            select(labels.c.call_id, func.count())
            .where(labels.c.call_id.in_(some))
            .group_by(labels.c.call_id)
        )
        found.update(dict((await connection.execute(query)).all()))
    return found


async def known_labels(connection: AsyncConnection, label_ids: Iterable[str]) -> set[str]:
    """Find those of the ids that the log holds a label under."""
    found: set[str] = set()
    for some in in_parts(label_ids):
        query = select(labels.c.label_id).where(labels.c.label_id.in_(some))
        found.update((await connection.execute(query)).scalars())
    return found


def _queries(ids: Sequence[str]) -> Iterator[Select[Any]]:
    """Yield queries that answer with the id, the call's where it is another than the served one,
    and the request. The first one of a conversation stands for those that are counted with it."""
    for column in (requests.c.request_id, requests.c.litellm_call_id):
        yield select(column, null(), *_of_request()).where(column.in_(ids), KEPT)
    answered = calls.c.response_id
    is_turn = and_(calls.c.role == CallRole.SERVED, requests.c.counted_with.is_not(None))
    yield (
        select(answered, case((is_turn, null()), else_=calls.c.call_id), *_of_request())
        .join(requests, requests.c.request_id == calls.c.request_id)
        .where(answered.in_(ids), KEPT)
    )


def _of_request() -> tuple[ColumnElement[Any], ...]:
    first = func.coalesce(requests.c.counted_with, requests.c.request_id)
    return first, requests.c.zoo, requests.c.service_level
