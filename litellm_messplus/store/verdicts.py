"""The labels on a call that can still count: the newest of each source.

A label that its source has replaced changes no verdict any more, so the fold does not read it: with
all of them read back for each, a client that judges one answer over and over costs the cube of it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple, Self

from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    case,
    func,
    null,
    select,
    union,
)
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.learning.logged import newest_labels
from litellm_messplus.records import served_call_id
from litellm_messplus.state.verdict import Given, newest_of_sources
from litellm_messplus.store.history import KEPT
from litellm_messplus.store.rows import storable
from litellm_messplus.store.tables import calls, labels, requests
from litellm_messplus.vocabulary import CallRole, LabelKind


def given(found: Any) -> Given:
    """Read a label, from its record or from a row."""
    return Given(LabelKind(found.kind), found.source, found.value, found.weight, found.probability)


class StandingLabels:
    """The labels that stand, by call, as of a place in the log: each source's newest label that has
    a weight, in the order of the log."""

    def __init__(self, by_call: Mapping[str, Sequence[Given]] | None = None) -> None:
        self._by_call = {call_id: list(found) for call_id, found in (by_call or {}).items()}

    @classmethod
    async def read(cls, connection: AsyncConnection, after: int, upto: int) -> Self:
        """Read them as of position ``after``, on the calls that the positions in (after, upto] are
        about."""
        found: dict[str, list[Given]] = defaultdict(list)
        for row in await connection.execute(_standing_query(after, upto)):
            found[row.call_id].append(given(row))
        return cls(found)

    def __len__(self) -> int:
        """Count the calls that have any."""
        return len(self._by_call)

    def of(self, call_id: str) -> tuple[Given, ...]:
        return tuple(self._by_call.get(call_id, ()))

    def add(self, call_id: str, label: Given) -> None:
        """Add the next label in the log."""
        if label.weight > 0.0:
            standing = (*self._by_call.get(call_id, ()), label)
            self._by_call[call_id] = newest_of_sources(standing)


def _standing_query(after: int, upto: int) -> Select[Any]:
    touched = union(
        *(
            select(table.c.call_id).where(table.c.position > after, table.c.position <= upto)
            for table in (calls, labels)
        )
    )
    of = labels.c
    newest = newest_labels(and_(of.call_id.in_(touched), of.position <= after))
    return (
        select(of.call_id, of.kind, of.source, of.value, of.weight, of.probability)
        .join(newest, newest.c.weighs == of.position)
        .order_by(of.position)
    )


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

IDS_AT_ONCE = 500
"""Ids in one query: a database takes only so many parameters."""


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
    for some in _in_parts(ids):
        for query in _queries(some):
            for given, call_id, *of_request in await connection.execute(query):
                request_id = of_request[0]
                found[given].add(Target(call_id or served_call_id(request_id), *of_request))
    return found


async def labels_on(connection: AsyncConnection, call_ids: Iterable[str]) -> dict[str, int]:
    """Count the labels of each call that has any."""
    found: dict[str, int] = {}
    for some in _in_parts(call_ids):
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
    for some in _in_parts(label_ids):
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


def _in_parts(ids: Iterable[str]) -> Iterator[list[str]]:
    remaining = iter(ids)
    while some := list(islice(remaining, IDS_AT_ONCE)):
        yield some
