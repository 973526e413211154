"""Calls that have ended, as far as their energy goes: when they ran, where, and what they used."""

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.records import CallRecord, CallStatus
from litellm_messplus.store.tables import calls


@dataclass(frozen=True, slots=True)
class EndedCall:
    """``started`` and ``ended`` in seconds since 1970."""

    deployment_id: str
    started: float
    ended: float
    prompt_tokens: int
    completion_tokens: int

    @classmethod
    def of(cls, call: CallRecord) -> "EndedCall | None":
        """None where it is not known what it used or when it ran."""
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
    """Those at positions above ``after`` that used something, in the order of the log."""
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
