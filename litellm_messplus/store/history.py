"""Looking requests up: by any id that a client may hold."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import RowMapping, or_, select, true, union
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.records import CallRecord
from litellm_messplus.store.rows import storable
from litellm_messplus.store.tables import calls, labels, log_head, outcomes, requests
from litellm_messplus.vocabulary import CallStatus

KEPT = requests.c.position > select(log_head.c.start).scalar_subquery()
"""Pruned requests are gone, also while their rows are still being deleted."""
MOST_LABELS = 200
"""Of a request, those that are shown: the newest."""


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


# Who wrote an answer, by the id that it went out with.

Columns = tuple[str | None, str | None, str | None]
"""Candidate, deployment and model."""


async def author(engine: AsyncEngine, zoo: str, response_id: str) -> Columns | None:
    """Find who answered the zoo's newest call that a model answered with that id: repetitions are
    passed over."""
    query = (
        select(calls.c.candidate, calls.c.deployment_id, calls.c.model)
        .join(requests, requests.c.request_id == calls.c.request_id)
        .where(
            calls.c.response_id == storable(response_id),
            calls.c.status == "success",
            calls.c.is_cache_hit.is_(False),
            requests.c.zoo == zoo,
        )
        .order_by(calls.c.position.desc())
        .limit(1)
    )
    async with engine.connect() as connection:
        found = (await connection.execute(query)).first()
    return None if found is None else (found.candidate, found.deployment_id, found.model)


# Calls that have ended, as far as their energy goes: when they ran, where, and what they used.


@dataclass(frozen=True, slots=True)
class EndedCall:
    """A call that has ended; ``started`` and ``ended`` are in seconds since 1970."""

    deployment_id: str
    started: float
    ended: float
    prompt_tokens: int
    completion_tokens: int

    @classmethod
    def of(cls, call: CallRecord) -> "EndedCall | None":
        """Read it from a record; None where it is not known what the call used or when it ran."""
        known = (call.deployment_id, call.prompt_tokens, call.completion_tokens, call.seconds)
        deployment_id, prompt_tokens, completion_tokens, seconds = known
        if deployment_id is None or prompt_tokens is None:
            return None
        if completion_tokens is None or seconds is None:
            return None
        ended = call.ended_at.timestamp()
        return cls(deployment_id, ended - seconds, ended, prompt_tokens, completion_tokens)


@dataclass(frozen=True, slots=True)
class Logged:
    """A call at its place in the log."""

    position: int
    call_id: str
    call: EndedCall


async def ended_calls(engine: AsyncEngine, after: int) -> list[Logged]:
    """Read those at positions above ``after`` that used something, in the order of the log."""
    query = (
        select(
            calls.c.position,
            calls.c.call_id,
            calls.c.deployment_id,
            calls.c.ended_at,
            calls.c.seconds,
            calls.c.prompt_tokens,
            calls.c.completion_tokens,
        )
        .where(
            calls.c.position > after,
            calls.c.status == CallStatus.SUCCESS,
            calls.c.is_cache_hit.is_(False),
            calls.c.deployment_id.is_not(None),
            calls.c.seconds.is_not(None),
            calls.c.prompt_tokens.is_not(None),
            calls.c.completion_tokens.is_not(None),
        )
        .order_by(calls.c.position)
    )
    async with engine.connect() as connection:
        return [
            Logged(
                row.position,
                row.call_id,
                EndedCall(
                    row.deployment_id,
                    row.ended_at.timestamp() - row.seconds,
                    row.ended_at.timestamp(),
                    row.prompt_tokens,
                    row.completion_tokens,
                ),
            )
            for row in await connection.execute(query)
        ]
