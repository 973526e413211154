"""Ended calls: which model wrote an answer, and which models answered the newest requests of
conversations."""

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.records import storable
from litellm_messplus.runtime.vocabulary import CallRole, CallStatus
from litellm_messplus.store.tables import calls, log_head, outcomes, requests

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


# Requests that nobody ends any more.

LOOKED_BACK = timedelta(days=2)


async def left_open(engine: AsyncEngine, started: datetime) -> list[tuple[str, str]]:
    """Find the ids of the requests that gone workers have left open, and the models chosen: older
    than all workers that run, the first of which ``started`` then."""
    query = (
        select(requests.c.request_id, requests.c.chosen)
        .join(outcomes, outcomes.c.request_id == requests.c.request_id)
        .where(
            requests.c.created_at.between(started - LOOKED_BACK, started),
            outcomes.c.status.is_(None),
        )
    )
    async with engine.connect() as connection:
        return [(row[0], row[1]) for row in await connection.execute(query)]


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
        found = (await connection.execute(select(log_head.c.conversation_key))).scalar_one()
    return bytes.fromhex(found)
