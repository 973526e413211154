"""A request repeated to another candidate, through LiteLLM's router: its arguments, and its end;
and the candidates that are called so in the background, unseen."""

import contextvars
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from litellm_messplus.brain.messages import Author
from litellm_messplus.records import exploration_call_id
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.tasks import Tasks
from litellm_messplus.runtime.vocabulary import CallRole, Failure
from litellm_messplus.serving.deployments.deployment import exploration_barred, exploration_target
from litellm_messplus.serving.deployments.metering import ReportedCall
from litellm_messplus.serving.ends import EMPTY, CallEnd, CallSink, EndedAnswer
from litellm_messplus.serving.failures import who_failed
from litellm_messplus.serving.litellm_seam import (
    OWN_PARAMETERS,
    hidden_params,
    internal_call_metadata,
    llm_router,
)
from litellm_messplus.serving.open_requests import OpenRequest
from litellm_messplus.serving.surfaces import answers
from litellm_messplus.serving.surfaces.answers import NEVER_CACHED
from litellm_messplus.serving.surfaces.request import IncomingRequest
from litellm_messplus.serving.surfaces.surface import PLAIN_METADATA, Surface

NOTHING = {"error": EMPTY, "failure": Failure.UPSTREAM}
"""The outcome of a call whose answer has no content."""
NOT_REPEATED = frozenset({"stream", "stream_options", "model", "messages", "store", "background"})
"""Arguments left out of such a call: it is not streamed, and stores nothing upstream."""


def repeated(
    group: str, request: IncomingRequest, whose: Mapping[str, Any], origin: str, **more: Any
) -> dict[str, Any]:
    """Repeat the request as the filter saw it: after guardrails, before LiteLLM translates it for a
    provider. It is charged to the key in the metadata ``whose``, if any, as an internal call of
    that ``origin``; ``more`` are further arguments of LiteLLM's router."""
    found = {
        name: value
        for name, value in request.kwargs.items()
        if name not in NOT_REPEATED and not name.startswith("_") and name not in OWN_PARAMETERS
    }
    found["model"] = group
    found |= request.prompt_arguments
    found[request.surface.metadata] = internal_call_metadata(whose, origin)
    if request.surface.has_client_metadata and PLAIN_METADATA in request.kwargs:
        found[PLAIN_METADATA] = request.kwargs[PLAIN_METADATA]
    return {**found, "disable_fallbacks": True, "cache": NEVER_CACHED, **more}


@dataclass(frozen=True, slots=True)
class OwnCall:
    """A call that the plugin makes to a candidate, on the surface of the request."""

    call_id: str
    role: CallRole
    candidate: str
    surface: Surface

    def answered(self, response: object, seconds: float) -> CallEnd:
        """Build its end with an answer."""
        hidden, surface = hidden_params(response), self.surface
        reading = ReportedCall(
            surface.used(response), surface.text(response), hidden.get("response_cost"), seconds
        )
        outcome: dict[str, Any] = NOTHING if answers.is_empty(response) else {}
        answer = EndedAnswer(response, answers.response_id(response), reading)
        return self._end(seconds, hidden.get("model_id"), answer=answer, **outcome)

    def failed(self, error: Exception, seconds: float) -> CallEnd:
        """Build its end without one."""
        return self._end(seconds, None, error=error, failure=who_failed(error))

    def _end(self, seconds: float, deployment: str | None, **outcome: Any) -> CallEnd:
        author = Author(self.candidate, deployment, self.candidate)
        return CallEnd(self.call_id, self.role, author, datetime.now(UTC), seconds, **outcome)


async def called(call: OwnCall, arguments: Mapping[str, Any], barred: frozenset[str]) -> Any:
    """Call the candidate, in a context of its own; returns LiteLLM's response. Raises the errors of
    LiteLLM's router."""
    exploration_target.set(call.candidate)
    exploration_barred.set(barred)
    return await getattr(llm_router(), call.surface.router_method)(**arguments)


# Exploration calls: the same request to other candidates, in the background and unseen.

CLOSE_SECONDS = 10.0
ORIGIN = "messplus_exploration"
"""The origin by which LiteLLM's logs distinguish the call from users', and count no savings."""
CONCURRENT = 16
"""Exploration calls in progress at once, in one worker: under a burst of explored requests the
endpoints serve users first."""


class Explorer:
    """The exploration calls, a bounded number at once; calls beyond it are left out and
    counted."""

    def __init__(self, sink: CallSink, counters: Counters, concurrent: int = CONCURRENT) -> None:
        self._sink = sink
        self._counters = counters
        self._calls = Tasks(concurrent)

    def start(
        self, opened: OpenRequest, candidates: Sequence[str], request: IncomingRequest
    ) -> None:
        """Begin a call to each candidate; returns at once."""
        if not candidates:
            return
        record = opened.record
        arguments = repeated(record.zoo, request, {}, ORIGIN, num_retries=0)
        for number, candidate in enumerate(candidates, start=1):
            call = self._call(opened, number, candidate, request.surface, arguments)
            # A fresh context: nothing of the user's request may leak into the call, or back.
            if contextvars.Context().run(self._calls.start, call, "exploration") is None:
                self._counters.add("explorations_left_out")
                self._sink.road.left_out(record.request_id)

    async def close(self) -> None:
        """Wait for the calls in progress, for at most ``CLOSE_SECONDS``."""
        await self._calls.close(CLOSE_SECONDS)

    async def _call(
        self,
        opened: OpenRequest,
        number: int,
        candidate: str,
        surface: Surface,
        arguments: Mapping[str, Any],
    ) -> None:
        call_id = exploration_call_id(opened.record.request_id, number)
        own = OwnCall(call_id, CallRole.EXPLORATION, candidate, surface)
        started = time.perf_counter()
        try:
            response = await called(own, arguments, opened.barred)
        except Exception as error:
            self._counters.failure("exploration_failures", f"exploration of {candidate} failed")
            end = own.failed(error, time.perf_counter() - started)
        else:
            end = own.answered(response, time.perf_counter() - started)
            end = await self._sink.read(opened, end)
        self._sink.ended(opened, end)
