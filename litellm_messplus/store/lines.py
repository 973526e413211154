"""Lines of conversations: the key of their digests, and who answered their newest requests."""

from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.store.tables import calls, conversation_key, requests
from litellm_messplus.vocabulary import CallRole, CallStatus

MOST = 2_000
"""Calls that are read at once, the newest."""


class ToldLine(NamedTuple):
    """A served call of a request in a line, as it is logged."""

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


async def told_lines(engine: AsyncEngine, after: int, upto: int) -> list[ToldLine]:
    """Read the answered calls of lines at positions in (after, upto], the oldest first."""
    query = (
        select(
            requests.c.zoo,
            requests.c.conversation,
            requests.c.line,
            requests.c.prefix,
            requests.c.turn,
            requests.c.prompt_characters,
            calls.c.candidate,
            calls.c.deployment_id,
            calls.c.prompt_tokens,
            calls.c.completion_tokens,
            calls.c.cached_tokens,
            calls.c.written_tokens,
            calls.c.is_cache_hit,
            calls.c.ended_at,
        )
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
    return [ToldLine(*row) for row in reversed(found)]


async def read_conversation_key(database: AsyncEngine) -> bytes:
    """Read the key that the migration drew.

    Raises sqlalchemy.exc.SQLAlchemyError where the database does not answer, or has none.
    """
    async with database.connect() as connection:
        found = (await connection.execute(select(conversation_key.c.key))).scalar_one()
    return bytes.fromhex(found)
