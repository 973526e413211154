"""Feedback that comes with the next request, in its metadata: the same form, and as durable."""

import asyncio
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from litellm_messplus.counters import Counters
from litellm_messplus.errors import MessplusError
from litellm_messplus.proxy.authentication import Caller
from litellm_messplus.proxy.feedback import Feedback, FeedbackDesk
from litellm_messplus.proxy.surfaces import IncomingRequest

METADATA_KEY = "messplus_feedback"
UNDER_WAY = 1000
"""Verdicts that may be waiting to be written; what comes on top is refused and counted."""


class NextTurnFeedback:
    """A verdict that cannot be taken is counted and logged: the request it came with is served."""

    def __init__(self, desk: FeedbackDesk, counters: Counters) -> None:
        self._desk = desk
        self._counters = counters
        self._running: set[asyncio.Task[None]] = set()

    def take(self, request: IncomingRequest) -> None:
        """Begin to write the verdict that a request brings along, if any; returns at once."""
        given = request.client_metadata.get(METADATA_KEY)
        if given is None:
            return
        if len(self._running) >= UNDER_WAY:
            self._refused("too many verdicts are waiting")
            return
        caller = Caller(request.key_hash, is_admin=False)
        task = asyncio.create_task(self._accept(given, caller), name="messplus-feedback")
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def close(self) -> None:
        """Let the verdicts under way be written."""
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _accept(self, given: Mapping[str, Any], caller: Caller) -> None:
        try:
            reason = await self._refusal(given, caller)
        except Exception:
            self._counters.failure("database_failures", "feedback in metadata was not written")
            return
        if reason is not None:
            self._refused(reason)

    async def _refusal(self, given: Mapping[str, Any], caller: Caller) -> str | None:
        """Why the verdict was not taken, in words that quote nobody; None where it is durable."""
        try:
            await self._desk.accept(Feedback.model_validate(given), caller)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            return f"{'.'.join(map(str, first['loc'])) or METADATA_KEY}: {first['msg']}"
        except MessplusError as error:
            return f"{type(error).__name__} {error}"
        return None

    def _refused(self, reason: str) -> None:
        self._counters.failure("feedback_refused", f"feedback in metadata was refused: {reason}")
