"""The labels on a call that can still count: the newest of each source.

A label that its source has replaced changes no verdict any more, so the fold does not read it: with
all of them read back for each, a client that judges one answer over and over costs the cube of it.
"""

import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple, Self

from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    case,
    delete,
    func,
    insert,
    null,
    select,
    union,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.records import served_call_id
from litellm_messplus.state.entries import Given
from litellm_messplus.store import summaries
from litellm_messplus.store.contribution import DEFAULT_RANKS, Ranks, Sums, contribution
from litellm_messplus.store.history import KEPT
from litellm_messplus.store.logged_requests import AT_ONCE, logged_requests, ranks_of
from litellm_messplus.store.rows import storable
from litellm_messplus.store.side_tables import label_precedence
from litellm_messplus.store.tables import calls, labels, log_head, requests
from litellm_messplus.vocabulary import CallRole, LabelKind


def given(found: Any) -> Given:
    """Read a label, from its record or from a row."""
    return Given(LabelKind(found.kind), found.source, found.value, found.weight, found.probability)


class StandingLabels:
    """The labels that stand, by call, as of a place in the log: each source's newest label that has
    a weight, in the order in which the sources spoke first."""

    def __init__(self, by_call: Mapping[str, Mapping[str, Given]] | None = None) -> None:
        self._by_call = {call_id: dict(found) for call_id, found in (by_call or {}).items()}

    @classmethod
    async def read(cls, connection: AsyncConnection, after: int, upto: int) -> Self:
        """Read them as of position ``after``, on the calls that the positions in (after, upto] are
        about."""
        found: dict[str, dict[str, Given]] = {}
        for row in await connection.execute(_standing_query(after, upto)):
            found.setdefault(row.call_id, {})[row.source] = given(row)
        return cls(found)

    def __len__(self) -> int:
        """Count the calls that have any."""
        return len(self._by_call)

    def of(self, call_id: str) -> tuple[Given, ...]:
        return tuple(self._by_call.get(call_id, {}).values())

    def add(self, call_id: str, label: Given) -> None:
        """Add the next label in the log."""
        if label.weight > 0.0:
            self._by_call.setdefault(call_id, {})[label.source] = label


def _standing_query(after: int, upto: int) -> Select[Any]:
    touched = union(
        *(
            select(table.c.call_id).where(table.c.position > after, table.c.position <= upto)
            for table in (calls, labels)
        )
    )
    of_source = (
        select(
            func.min(labels.c.position).label("first"), func.max(labels.c.position).label("newest")
        )
        .where(labels.c.call_id.in_(touched), labels.c.position <= after, labels.c.weight > 0.0)
        .group_by(labels.c.call_id, labels.c.source)
        .subquery()
    )
    return (
        select(
            *(labels.c.call_id, labels.c.kind, labels.c.source),
            *(labels.c.value, labels.c.weight, labels.c.probability),
        )
        .join(of_source, of_source.c.newest == labels.c.position)
        .order_by(of_source.c.first)
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


# Whose label counts first, written down at the start so that SQL sees the rule of the fold.
#
# Another rule makes other verdicts of the same labels: where it really is another one, the sums
# change by what it makes of the requests that are still in the log.

logger = logging.getLogger("litellm_messplus")


async def save(engine: AsyncEngine, precedence: Mapping[str, Sequence[LabelKind]]) -> None:
    """Replace the rule of every given zoo: its kinds that count, the strongest first.

    Workers that start together take turns, as writers of the log do: on Postgres none sees the rows
    that another has just put in the place of those that both replace.
    """
    rows = [
        {"zoo": zoo, "kind": kind, "rank": kinds.index(kind) + 1 if kind in kinds else None}
        for zoo, kinds in precedence.items()
        for kind in LabelKind
    ]
    async with engine.begin() as connection:
        await connection.execute(update(log_head).values(position=log_head.c.position))
        before = await ranks_of(connection)
        for zoo, kinds in precedence.items():
            ranks = {kind.value: place for place, kind in enumerate(kinds, start=1)}
            await _change(connection, zoo, before.get(zoo, DEFAULT_RANKS), ranks)
        await connection.execute(
            delete(label_precedence).where(label_precedence.c.zoo.in_(list(precedence)))
        )
        await connection.execute(insert(label_precedence), rows)


async def _change(connection: AsyncConnection, zoo: str, before: Ranks, after: Ranks) -> None:
    """Let the sums of a zoo follow its rule. The log is read in pages: it may be long."""
    kinds = {kind.value for kind in LabelKind if before.get(kind) != after.get(kind)}
    if not kinds:
        return
    logger.info("zoo %s: labels count by another rule, so its sums are made anew", zoo)
    async for ids in _labelled(connection, zoo, kinds):
        changed: Sums = {}
        for logged in (await logged_requests(connection, ids)).values():
            was, now = contribution(logged, before), contribution(logged, after)
            summaries.add_change(changed, was, now)
        await summaries.add(connection, changed)


async def _labelled(
    connection: AsyncConnection, zoo: str, kinds: Collection[str]
) -> AsyncIterator[Sequence[str]]:
    """Yield the ids of the zoo's requests that have labels of these kinds, page by page."""
    of_kinds = (
        select(labels.c.label_id)
        .where(labels.c.request_id == requests.c.request_id, labels.c.kind.in_(kinds))
        .exists()
    )
    after = 0
    while True:
        query = (
            select(requests.c.request_id, requests.c.position)
            .where(requests.c.zoo == zoo, requests.c.position > after, of_kinds)
            .order_by(requests.c.position)
            .limit(AT_ONCE)
        )
        rows: Sequence[Any] = (await connection.execute(query)).all()
        if not rows:
            return
        yield [row.request_id for row in rows]
        after = rows[-1].position


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
