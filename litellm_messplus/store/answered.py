"""Ended calls: which model wrote an answer, what the calls of all workers used, and which models
answered the newest requests of conversations."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.runtime.vocabulary import CallRole, CallStatus
from litellm_messplus.store.rows import storable
from litellm_messplus.store.tables import calls, conversation_key, requests

# The model that wrote an answer, by its response id.

Columns = tuple[str | None, str | None, str | None]
"""Candidate, deployment and model."""


async def author(engine: AsyncEngine, zoo: str, response_id: str) -> Columns | None:
    """Find which model answered the zoo's newest call with that response id; answers repeated from
    LiteLLM's cache are skipped."""
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


# What the calls of all workers used, and when, from which their energy is estimated.


@dataclass(frozen=True, slots=True)
class EndedCall:
    """A call that has ended; ``started`` and ``ended`` are in seconds since 1970."""

    deployment_id: str
    started: float
    ended: float
    prompt_tokens: int
    completion_tokens: int

    @classmethod
    def of(cls, call: Any) -> "EndedCall | None":
        """Read it from a record or a row; None if its usage or its times are unknown."""
        known = (call.deployment_id, call.prompt_tokens, call.completion_tokens, call.seconds)
        if None in known:
            return None
        deployment_id, prompt_tokens, completion_tokens, seconds = known
        ended = call.ended_at.timestamp()
        return cls(deployment_id, ended - seconds, ended, prompt_tokens, completion_tokens)


class Logged(NamedTuple):
    """A call at its place in the log."""

    position: int
    call_id: str
    call: EndedCall


_USED = ("deployment_id", "ended_at", "seconds", "prompt_tokens", "completion_tokens")


async def ended_calls(engine: AsyncEngine, after: int) -> list[Logged]:
    """Read the ended calls at positions above ``after`` with known usage, in log order."""
    own = calls.c
    query = (
        select(own.position, own.call_id, *(own[name] for name in _USED))
        .where(own.position > after, own.status == CallStatus.SUCCESS, own.is_cache_hit.is_(False))
        .order_by(own.position)
    )
    async with engine.connect() as connection:
        found = [(row, EndedCall.of(row)) for row in await connection.execute(query)]
    return [Logged(row.position, row.call_id, call) for row, call in found if call is not None]


# Lines of conversations: the key of their digests, and which models answered them last.

MOST = 2_000
"""The most calls read at once; the newest are read."""


class LoggedLine(NamedTuple):
    """A served call of a request in a line, as logged."""

    zoo: str
    conversation: str
    line: str
    prefix: str
    turn: int
    prompt_characters: int
    candidate: str
    deployment_id: str
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None
    written_tokens: int | None
    is_cache_hit: bool
    ended_at: datetime


async def logged_lines(engine: AsyncEngine, after: int, upto: int) -> list[LoggedLine]:
    """Read the answered calls of lines at positions in (after, upto], oldest first."""
    columns = ((requests.c if name in requests.c else calls.c)[name] for name in LoggedLine._fields)
    query = (
        select(*columns)
        .join(requests, requests.c.request_id == calls.c.request_id)
        .where(
            *(calls.c.position > after, calls.c.position <= upto),
            *(calls.c.role == CallRole.SERVED, calls.c.status == CallStatus.SUCCESS),
            *(calls.c.candidate.is_not(None), calls.c.deployment_id.is_not(None)),
            requests.c.prefix.is_not(None),
        )
        .order_by(calls.c.position.desc())
        .limit(MOST)
    )
    async with engine.connect() as connection:
        found: list[Any] = list((await connection.execute(query)).all())
    return [LoggedLine(*row) for row in reversed(found)]


async def read_conversation_key(database: AsyncEngine) -> bytes:
    """Read the random key that the migration generated.

    Raises sqlalchemy.exc.SQLAlchemyError if the database does not answer, or has no key.
    """
    async with database.connect() as connection:
        found = (await connection.execute(select(conversation_key.c.key))).scalar_one()
    return bytes.fromhex(found)
