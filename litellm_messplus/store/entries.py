"""Reading the log back as entries of the fold.

An entry at a position says only what was known at that position: a label that came before its
call ended has no candidate yet, and the call's own entry brings the label along. So a log read in
one piece, or in many, at any later time, folds into the same state.
"""

from collections.abc import AsyncIterator, Callable, Collection
from typing import Any

from sqlalchemy import Row, Select, and_, func, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.learning.entries import Decided, Entry, Example, Labelled, Settled
from litellm_messplus.records import (
    CallRecord,
    CallRole,
    CallStatus,
    LabelRecord,
    Record,
    RequestRecord,
)
from litellm_messplus.store.rows import features_from_bytes
from litellm_messplus.store.tables import calls, labels, requests

PAGE = 2000
"""Positions read at once, which bounds the memory that a long log takes."""


Kinds = Collection[type[Record]]
EVERY_KIND: Kinds = (RequestRecord, CallRecord, LabelRecord)


async def read_entries(
    engine: AsyncEngine, after: int, upto: int, kinds: Kinds = EVERY_KIND
) -> AsyncIterator[Entry]:
    """The entries at positions in (after, upto], in order; ``kinds`` are those to look for."""
    async with engine.connect() as connection:
        for start in range(after, upto, PAGE):
            for entry in await _page(connection, start, min(start + PAGE, upto), kinds):
                yield entry


async def _page(connection: AsyncConnection, after: int, upto: int, kinds: Kinds) -> list[Entry]:
    entries: list[Entry] = []
    for kind in kinds:
        query, entry_of = _READ[kind]
        entries += map(entry_of, await connection.execute(query(after, upto)))
    entries.sort(key=lambda entry: entry.position)
    return entries


def _decided_query(after: int, upto: int) -> Select[Any]:
    return select(
        requests.c.position,
        requests.c.zoo,
        requests.c.service_level,
        requests.c.request_id,
        func.coalesce(requests.c.aim - requests.c.expected_satisfaction, 0.0).label(
            "expected_shortfall"
        ),
    ).where(requests.c.position > after, requests.c.position <= upto)


def _decided(found: Row[Any]) -> Decided:
    return Decided(
        position=found.position,
        zoo=found.zoo,
        service_level=found.service_level,
        request_id=found.request_id,
        expected_shortfall=found.expected_shortfall,
    )


def _settled_query(after: int, upto: int) -> Select[Any]:
    """Ended calls, each with the newest label given before it ended."""
    given = labels.alias("given")
    newest = (
        select(func.max(given.c.position))
        .where(given.c.call_id == calls.c.call_id, given.c.position < calls.c.position)
        .scalar_subquery()
    )
    return (
        select(
            calls.c.position,
            calls.c.call_id,
            calls.c.role,
            calls.c.status,
            calls.c.is_cache_hit,
            calls.c.candidate,
            calls.c.prompt_tokens,
            calls.c.completion_tokens,
            requests.c.zoo,
            requests.c.prompt_characters,
            requests.c.encoder,
            requests.c.features,
            requests.c.is_exploration,
            labels.c.value.label("satisfaction"),
            labels.c.weight,
        )
        .join(requests, requests.c.request_id == calls.c.request_id)
        .outerjoin(labels, labels.c.position == newest)
        .where(calls.c.position > after, calls.c.position <= upto)
    )


def _settled(found: Row[Any]) -> Settled:
    succeeded = found.status == CallStatus.SUCCESS
    used = succeeded and not found.is_cache_hit
    return Settled(
        position=found.position,
        zoo=found.zoo,
        call_id=found.call_id,
        candidate=found.candidate,
        prompt_characters=found.prompt_characters,
        prompt_tokens=found.prompt_tokens if used else None,
        completion_tokens=found.completion_tokens if used else None,
        example=_example(found) if succeeded else None,
        satisfaction=found.satisfaction,
        weight=1.0 if found.weight is None else found.weight,
    )


def _label_query(after: int, upto: int) -> Select[Any]:
    """Labels, each with the verdict that it replaces and the call, if it had ended by then."""
    older = labels.alias("older")
    previous = (
        select(older.c.value)
        .where(
            older.c.call_id == labels.c.call_id,
            older.c.source == labels.c.source,
            older.c.position < labels.c.position,
        )
        .order_by(older.c.position.desc())
        .limit(1)
        .scalar_subquery()
    )
    ended = and_(calls.c.call_id == labels.c.call_id, calls.c.position < labels.c.position)
    return (
        select(
            labels.c.position,
            labels.c.value,
            labels.c.call_id,
            labels.c.request_id,
            labels.c.weight,
            calls.c.role,
            calls.c.status,
            calls.c.candidate,
            requests.c.zoo,
            requests.c.service_level,
            func.coalesce(requests.c.aim, requests.c.alpha).label("alpha"),
            requests.c.encoder,
            requests.c.features,
            requests.c.is_exploration,
            previous.label("previous"),
        )
        .join(requests, requests.c.request_id == labels.c.request_id)
        .outerjoin(calls, ended)
        .where(labels.c.position > after, labels.c.position <= upto)
    )


def _labelled(found: Row[Any]) -> Labelled:
    # Only the served call can be labelled before it has ended: its id is known from the start.
    is_served = found.role in (None, CallRole.SERVED)
    return Labelled(
        position=found.position,
        zoo=found.zoo,
        service_level=found.service_level,
        request_id=found.request_id,
        call_id=found.call_id,
        alpha=found.alpha,
        is_served=is_served,
        satisfaction=found.value,
        previous=found.previous,
        weight=found.weight,
        example=_example(found) if found.status == CallStatus.SUCCESS else None,
    )


def _example(found: Row[Any]) -> Example | None:
    if found.candidate is None:
        return None
    return Example(
        encoder=found.encoder,
        features=None if found.features is None else features_from_bytes(found.features),
        candidate=found.candidate,
        is_exploration=bool(found.is_exploration),
    )


_READ: dict[type[Record], tuple[Callable[[int, int], Select[Any]], Callable[[Row[Any]], Entry]]] = {
    RequestRecord: (_decided_query, _decided),
    CallRecord: (_settled_query, _settled),
    LabelRecord: (_label_query, _labelled),
}
