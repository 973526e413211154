"""Ended calls with sensible defaults: a test names only what it is about."""

from datetime import UTC, datetime, timedelta
from typing import Any

from litellm_messplus.labels.source import Answer, AnsweredCall, Finish, JudgedRequest
from litellm_messplus.prediction.encoder import Conversation, Turn

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
GOOD = Answer(text="Paris.", finish=Finish.STOP)


def conversation(*texts: str, system: str | None = None) -> Conversation:
    """What user and assistant said in turn, the user first."""
    said = [Turn("assistant" if place % 2 else "user", text) for place, text in enumerate(texts)]
    return Conversation(tuple([Turn("system", system)] if system else []) + tuple(said))


def asked(*texts: str, seconds: float = 0.0, **changed: Any) -> JudgedRequest:
    """A request, so many seconds after noon."""
    given: dict[str, Any] = {
        "request_id": f"r{seconds:g}",
        "zoo": "zoo",
        "service_level": "default",
        "received_at": NOON + timedelta(seconds=seconds),
        "key_hash": "key",
        "user": None,
        "conversation": conversation(*texts),
        "parameters": {},
        "metadata": {},
    }
    return JudgedRequest(**given | changed)


def answered(
    *texts: str, seconds: float = 0.0, answer: Answer | None = GOOD, **changed: Any
) -> AnsweredCall:
    """The served call of a request, answered a second after it was asked."""
    of_call = {"is_served", "calls", "call_id", "candidate", "ended_at"}
    request = asked(
        *texts,
        seconds=seconds,
        **{name: value for name, value in changed.items() if name not in of_call},
    )
    given: dict[str, Any] = {
        "call_id": f"{request.request_id}.0",
        "candidate": "small",
        "is_served": True,
        "calls": 1,
        "ended_at": request.received_at + timedelta(seconds=1),
    }
    given |= {name: value for name, value in changed.items() if name in of_call}
    return AnsweredCall(request=request, answer=answer, **given)
