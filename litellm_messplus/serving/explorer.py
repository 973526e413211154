"""Exploration calls: the same request to other candidates, in the background and unseen."""

import contextvars
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from litellm_messplus.records import exploration_call_id
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.tasks import Tasks
from litellm_messplus.runtime.vocabulary import CallRole
from litellm_messplus.serving.ends import CallSink
from litellm_messplus.serving.litellm_seam import failed_deployment
from litellm_messplus.serving.open_requests import OpenRequest
from litellm_messplus.serving.repeating import OwnCall, called, repeated
from litellm_messplus.serving.surfaces.request import IncomingRequest
from litellm_messplus.serving.surfaces.surface import Surface

CLOSE_SECONDS = 10.0
ORIGIN = "messplus_exploration"
"""The origin by which LiteLLM's logs distinguish the call from users', and count no savings."""
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
        whose = request.metadata if self._charge_caller else {}
        arguments = repeated(record.zoo, request, whose, ORIGIN, num_retries=0)
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
        record, judged = opened.record, opened.judged
        call_id = exploration_call_id(record.request_id, number)
        own = OwnCall(call_id, CallRole.EXPLORATION, candidate, surface)
        started = time.perf_counter()
        try:
            response = await called(own, arguments, opened.barred)
        except Exception as error:
            self._counters.failure("exploration_failures", f"exploration of {candidate} failed")
            self._sink.gates.failed(failed_deployment(error), error, opened.needs)
            end = own.failed(error, time.perf_counter() - started)
        else:
            end = own.answered(response, time.perf_counter() - started)
            end = await self._sink.read(record, judged, end)
        self._sink.ended(record, judged, replace(end, needs=opened.needs))
