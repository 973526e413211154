"""Exploration calls: the same request to other candidates, in the background and unseen."""

import contextvars
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from litellm_messplus.records import exploration_call_id
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.tasks import Tasks
from litellm_messplus.runtime.vocabulary import CallRole
from litellm_messplus.serving.deployments.deployment import (
    exploration_barred,
    exploration_target,
)
from litellm_messplus.serving.deployments.metering import ReportedCall
from litellm_messplus.serving.ends import CallEnd, CallSink, Said, who_failed
from litellm_messplus.serving.litellm_seam import (
    OWN_PARAMETERS,
    failed_deployment,
    hidden_params,
    internal_call_metadata,
    llm_router,
)
from litellm_messplus.serving.open_requests import Author, OpenRequest
from litellm_messplus.serving.surfaces import answers
from litellm_messplus.serving.surfaces.answers import NEVER_CACHED
from litellm_messplus.serving.surfaces.request import IncomingRequest
from litellm_messplus.serving.surfaces.surface import PLAIN_METADATA, Surface

CLOSE_SECONDS = 10.0
ORIGIN = "messplus_exploration"
"""The origin by which LiteLLM's logs distinguish the call from users', and count no savings."""
NOT_REPEATED = frozenset({"stream", "stream_options", "model", "messages", "store", "background"})
"""Arguments left out of an exploration call: it is not streamed, and stores nothing upstream."""


CONCURRENT = 16
"""Exploration calls in progress at once, in one worker: under a burst of explored requests the
endpoints serve users first."""


class Explorer:
    """The exploration calls, a bounded number at once; calls beyond it are left out and
    counted."""

    def __init__(
        self,
        sink: CallSink,
        counters: Counters,
        *,
        charge_caller: bool,
        concurrent: int = CONCURRENT,
    ) -> None:
        self._sink = sink
        self._counters = counters
        self._charge_caller = charge_caller
        self._calls = Tasks(concurrent)

    def start(
        self, opened: OpenRequest, candidates: Sequence[str], request: IncomingRequest
    ) -> None:
        """Begin a call to each candidate; returns at once."""
        if not candidates:
            return
        record = opened.record
        arguments = self._arguments(record.zoo, request)
        for number, candidate in enumerate(candidates, start=1):
            call = self._call(opened, number, candidate, request.surface, arguments)
            # A fresh context: nothing of the user's request may leak into the call, or back.
            if contextvars.Context().run(self._calls.start, call, "exploration") is None:
                self._counters.add("explorations_left_out")

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
        record, asked = opened.record, opened.asked
        exploration_target.set(candidate)
        exploration_barred.set(opened.barred)
        call_id = exploration_call_id(record.request_id, number)
        started = time.perf_counter()
        try:
            response = await getattr(llm_router(), surface.router_method)(**arguments)
        except Exception as error:
            self._counters.failure("exploration_failures", f"exploration of {candidate} failed")
            self._sink.attempt_failed(failed_deployment(error), error, opened.needs)
            end = _failed(call_id, candidate, error, time.perf_counter() - started)
        else:
            seconds = time.perf_counter() - started
            end = _answered(call_id, candidate, surface, response, seconds)
        self._sink.ended(record, asked, replace(end, needs=opened.needs))

    def _arguments(self, group: str, request: IncomingRequest) -> dict[str, Any]:
        """Repeat the request as the filter saw it: after guardrails, before LiteLLM translates it
        for a provider."""
        repeated = {
            name: value
            for name, value in request.kwargs.items()
            if name not in NOT_REPEATED and not name.startswith("_") and name not in OWN_PARAMETERS
        }
        repeated["model"] = group
        repeated |= request.prompt_arguments
        repeated[request.surface.metadata] = self._metadata(request)
        if request.surface.has_client_metadata and PLAIN_METADATA in request.kwargs:
            repeated[PLAIN_METADATA] = request.kwargs[PLAIN_METADATA]
        return {**repeated, "num_retries": 0, "disable_fallbacks": True, "cache": NEVER_CACHED}

    def _metadata(self, request: IncomingRequest) -> dict[str, Any]:
        """Build the metadata: charged to no key, or to the caller's as an internal call."""
        whose = request.metadata if self._charge_caller else {}
        return internal_call_metadata(whose, ORIGIN)


def _answered(
    call_id: str, candidate: str, surface: Surface, response: object, seconds: float
) -> CallEnd:
    hidden = hidden_params(response)
    reading = ReportedCall(
        surface.used(response), surface.text(response), hidden.get("response_cost"), seconds
    )
    return CallEnd(
        call_id=call_id,
        role=CallRole.EXPLORATION,
        author=Author(candidate, hidden.get("model_id"), candidate),
        ended_at=datetime.now(UTC),
        seconds=seconds,
        said=Said(response, answers.response_id(response), reading),
    )


def _failed(call_id: str, candidate: str, error: Exception, seconds: float) -> CallEnd:
    return CallEnd(
        call_id=call_id,
        role=CallRole.EXPLORATION,
        author=Author(candidate, None, candidate),
        ended_at=datetime.now(UTC),
        seconds=seconds,
        error=error,
        failure=who_failed(error),
    )
