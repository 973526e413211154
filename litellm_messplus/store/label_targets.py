"""Which calls many ids mean at once, and what lies on these calls already."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import Column, Select, func, null, select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.records import served_call_id
from litellm_messplus.store.history import KEPT
from litellm_messplus.store.tables import calls, labels, requests

AT_ONCE = 500
"""Ids in one query: a database takes only so many parameters."""


class Target(NamedTuple):
    """A call that an id means, and which promise its request counts towards."""

    call_id: str
    request_id: str
    zoo: str
    service_level: str


async def targets(connection: AsyncConnection, ids: Iterable[str]) -> dict[str, set[Target]]:
    """By id, every call that it means: as the request's own id or LiteLLM's call id the one that
    the user saw, as a response id the call that gave the response."""
    found: dict[str, set[Target]] = defaultdict(set)
    for some in _in_parts(ids):
        for query in _queries(some):
            for given, call_id, *of_request in await connection.execute(query):
                request_id = of_request[0]
                found[given].add(Target(call_id or served_call_id(request_id), *of_request))
    return found


async def labels_on(connection: AsyncConnection, call_ids: Iterable[str]) -> dict[str, int]:
    """How many labels each call has, of those that have any."""
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
    """Those of the ids that the log holds a label under."""
    found: set[str] = set()
    for some in _in_parts(label_ids):
        query = select(labels.c.label_id).where(labels.c.label_id.in_(some))
        found.update((await connection.execute(query)).scalars())
    return found


def _queries(ids: Sequence[str]) -> Iterator[Select[Any]]:
    """Each answers with the id, the call's where it is another than the served one, the request."""
    for column in (requests.c.request_id, requests.c.litellm_call_id):
        yield select(column, null(), *_of_request()).where(column.in_(ids), KEPT)
    answered = calls.c.response_id
    yield (
        select(answered, calls.c.call_id, *_of_request())
        .join(requests, requests.c.request_id == calls.c.request_id)
        .where(answered.in_(ids), KEPT)
    )


def _of_request() -> tuple[Column[Any], ...]:
    return requests.c.request_id, requests.c.zoo, requests.c.service_level


def _in_parts(ids: Iterable[str]) -> Iterator[list[str]]:
    remaining = iter(ids)
    while some := list(islice(remaining, AT_ONCE)):
        yield some
