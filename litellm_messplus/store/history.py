"""Looking requests up: by any id that a client may hold."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Boolean, RowMapping, column, or_, select, table, true, union
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.store.rows import storable
from litellm_messplus.store.tables import calls, labels, log_head, requests

OUTCOME = table(
    "request_outcomes",
    *map(column, ("request_id", "served", "status", "satisfaction", "satisfaction_weight")),
    *map(column, ("satisfaction_kind", "cost", "cost_largest")),
    column("is_measured", Boolean()),
)
"""The view, as far as it is read here."""
KEPT = requests.c.position > select(log_head.c.start).scalar_subquery()
"""Pruned requests are gone, also while their rows are still being deleted."""
MOST_LABELS = 200
"""Of a request, those that are shown: the newest."""


@dataclass(frozen=True, slots=True)
class Found:
    """A request that an id belongs to, whose it is, and which promise it counts towards."""

    request_id: str
    key_hash: str | None
    zoo: str
    service_level: str


async def find(engine: AsyncEngine, given: str, key_hash: str | None = None) -> Found | None:
    """The newest request whose own id, LiteLLM call id or response id is ``given``: of that key
    where one is given, else of any.

    The latter two may repeat: a client sets the one, independent servers the other.
    """
    given = storable(given)
    answered = select(calls.c.request_id).where(
        calls.c.response_id == given, calls.c.role == "served"
    )
    is_meant = or_(
        requests.c.request_id == given,
        requests.c.litellm_call_id == given,
        requests.c.request_id.in_(answered),
    )
    query = select(
        requests.c.request_id, requests.c.key_hash, requests.c.zoo, requests.c.service_level
    ).where(is_meant, KEPT, true() if key_hash is None else requests.c.key_hash == key_hash)
    query = query.order_by(requests.c.position.desc()).limit(1)
    async with engine.connect() as connection:
        found = (await connection.execute(query)).first()
    return None if found is None else Found(*found)


async def arrived_ids(
    engine: AsyncEngine, expected: Collection[str], after: int, upto: int
) -> set[str]:
    """Those of the expected ids that the log holds at positions in (after, upto]."""
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
    """Whether the log holds that call, as one of that request."""
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
    """What is logged about a request; None for an id that is not ours."""
    async with engine.connect() as connection:

        async def rows(query: Any) -> list[RowMapping]:
            return list((await connection.execute(query)).mappings())

        found = await rows(select(requests).where(requests.c.request_id == request_id, KEPT))
        if not found:
            return None
        of_request = calls.c.request_id == request_id
        return History(
            request=found[0],
            outcome=(await rows(select(OUTCOME).where(OUTCOME.c.request_id == request_id)))[0],
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
