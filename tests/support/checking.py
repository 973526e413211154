"""Ended calls with sensible defaults: a test names only what it is about."""

from datetime import UTC, datetime
from typing import Any

from litellm_messplus.core.encoder import Conversation
from litellm_messplus.labels.source import Answer, AnsweredCall, JudgedRequest

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
GARBAGE = (
    "\x00\x07\x1b[31m\x7f\r\n",
    "\ud800 alone \udfff",
    "x" * 100_000,
    "[" * 100_000,
    '{"a":' * 100_000,
    "\u202e\u200b\ufeff",
    "",
)
"""What an answer or a client may hold: control characters, lone surrogates, length, depth."""


def ended(
    answer: Answer | str | None = "fine",
    *,
    is_served: bool = True,
    parameters: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
    is_limited: bool = False,
) -> AnsweredCall:
    """A text is an answer of these words."""
    request = JudgedRequest(
        request_id="request",
        zoo="zoo",
        service_level="default",
        key_hash=None,
        conversation=Conversation.of_text("What is 6 * 7?"),
        parameters=parameters or {},
        metadata=metadata or {},
        is_limited=is_limited,
    )
    return AnsweredCall(
        request=request,
        call_id="request.0" if is_served else "request.1",
        candidate="small",
        is_served=is_served,
        calls=1,
        ended_at=NOW,
        answer=Answer(answer) if isinstance(answer, str) else answer,
    )
