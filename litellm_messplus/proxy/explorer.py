"""Exploration calls: the same request to other candidates, in the background and unseen."""

import asyncio
import contextvars
import time
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from litellm_messplus.journal import Journal
from litellm_messplus.labels.source import LabelDesk
from litellm_messplus.proxy.deployments.metering import Meter, ReportedCall, Served
from litellm_messplus.proxy.energy_service import EnergyService
from litellm_messplus.proxy.gates import Gates
from litellm_messplus.proxy.labelling import judged_call
from litellm_messplus.proxy.litellm_seam import (
    OWN_PARAMETERS,
    failed_deployment,
    hidden_params,
    internal_call_metadata,
    llm_router,
)
from litellm_messplus.proxy.open_requests import OpenRequest
from litellm_messplus.proxy.surfaces import answers
from litellm_messplus.proxy.surfaces.answers import NEVER_CACHED
from litellm_messplus.proxy.surfaces.surface import (
    METADATA_OF_OTHERS,
    IncomingRequest,
    metadata_name,
)
from litellm_messplus.records import (
    CallRecord,
    CallRole,
    CallStatus,
    RequestRecord,
    exploration_call_id,
)
from litellm_messplus.runtime import Counters

exploration_target: ContextVar[str | None] = ContextVar("exploration_target", default=None)
"""Set in the context of an exploration call: our own filter then keeps that candidate only."""
exploration_barred: ContextVar[frozenset[str]] = ContextVar(
    "exploration_barred", default=frozenset()
)
"""Ids of deployments that cannot take the request, which an exploration call passes by."""

CLOSE_SECONDS = 10.0
ROUTER_METHODS = {
    "acompletion": "acompletion",
    "atext_completion": "atext_completion",
    "anthropic_messages": "aanthropic_messages",
    "aresponses": "aresponses",
}
NOT_REPEATED = frozenset({"stream", "stream_options", "model", "messages", "store", "background"})
"""Not part of an exploration call: it is never streamed, and leaves nothing behind upstream."""


class Explorer:
    """The exploration calls, a bounded number at once; what would exceed it is left out and
    counted."""

    def __init__(
        self,
        meter: Meter,
        energy: EnergyService,
        journal: Journal,
        desk: LabelDesk,
        gates: Gates,
        counters: Counters,
        *,
        concurrent: int,
        charge_caller: bool,
    ) -> None:
        self._meter = meter
        self._energy = energy
        self._journal = journal
        self._desk = desk
        self._gates = gates
        self._counters = counters
        self._concurrent = concurrent
        self._charge_caller = charge_caller
        self._running: set[asyncio.Task[None]] = set()

    def start(
        self, opened: OpenRequest, candidates: Sequence[str], request: IncomingRequest
    ) -> None:
        """Begin a call to each candidate; returns at once."""
        if not candidates:
            return
        record = opened.record
        arguments = self._arguments(record.zoo, request)
        for number, candidate in enumerate(candidates, start=1):
            if len(self._running) >= self._concurrent:
                self._counters.add("explorations_left_out")
                continue
            call = self._call(opened, number, candidate, request.call_type, arguments)
            # A fresh context: nothing of the user's request may leak into the call, or back.
            task = contextvars.Context().run(
                asyncio.create_task, call, name=f"messplus-exploration-{record.request_id}"
            )
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def close(self) -> None:
        """Wait for the calls under way, but not for ever."""
        if self._running:
            _, pending = await asyncio.wait(self._running, timeout=CLOSE_SECONDS)
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)

    async def _call(
        self,
        opened: OpenRequest,
        number: int,
        candidate: str,
        call_type: str,
        arguments: Mapping[str, Any],
    ) -> None:
        record, asked = opened.record, opened.asked
        exploration_target.set(candidate)
        exploration_barred.set(opened.barred)
        started = time.perf_counter()
        try:
            response = await getattr(llm_router(), ROUTER_METHODS[call_type])(**arguments)
        except Exception as error:
            self._counters.failure("exploration_failures", f"exploration of {candidate} failed")
            self._gates.failed(failed_deployment(error), error, opened.needs)
            response = None
            ended = _failed(record, number, candidate, error, time.perf_counter() - started)
        else:
            seconds = time.perf_counter() - started
            self._gates.succeeded(hidden_params(response).get("model_id"), opened.needs)
            ended = self._answered(record, number, candidate, response, seconds)
        self._journal.write(ended)
        self._energy.ended(record.zoo, ended)
        if asked is not None:
            self._desk.ended(judged_call(asked, record, ended, response))

    def _answered(
        self, record: RequestRecord, number: int, candidate: str, response: Any, seconds: float
    ) -> CallRecord:
        hidden = hidden_params(response)
        answer = answers.text(response)
        deployment = hidden.get("model_id")
        reading = ReportedCall(
            answers.usage(response), answer, hidden.get("response_cost"), seconds
        )
        metered = self._meter.read(record, Served(candidate, deployment), reading)
        usage = metered.usage
        return CallRecord(
            call_id=exploration_call_id(record.request_id, number),
            request_id=record.request_id,
            ended_at=datetime.now(UTC),
            role=CallRole.EXPLORATION,
            status=CallStatus.SUCCESS,
            candidate=candidate,
            deployment_id=deployment,
            model=candidate,
            response_id=answers.response_id(response),
            prompt_tokens=usage.prompt_tokens if usage else None,
            completion_tokens=usage.completion_tokens if usage else None,
            cached_tokens=usage.cached_tokens if usage else None,
            reasoning_tokens=usage.reasoning_tokens if usage else None,
            cost=metered.cost,
            cost_source=metered.source,
            seconds=seconds,
            answer=answer,
        )

    def _arguments(self, group: str, request: IncomingRequest) -> dict[str, Any]:
        """Repeat the request as the filter saw it: after guardrails, before a provider's
        spelling."""
        repeated = {
            name: value
            for name, value in request.kwargs.items()
            if name not in NOT_REPEATED and not name.startswith("_") and name not in OWN_PARAMETERS
        }
        repeated["model"] = group
        repeated |= request.prompt_arguments
        repeated[metadata_name(request.call_type)] = self._metadata(request)
        if request.call_type in METADATA_OF_OTHERS and "metadata" in request.kwargs:
            repeated["metadata"] = request.kwargs["metadata"]
        return {**repeated, "num_retries": 0, "disable_fallbacks": True, "cache": NEVER_CACHED}

    def _metadata(self, request: IncomingRequest) -> dict[str, Any]:
        """Say whose the call is: nobody's, or the caller's as an internal call of the proxy."""
        if not self._charge_caller:
            return {}
        return internal_call_metadata(request.metadata, "messplus_exploration")


def _failed(
    record: RequestRecord, number: int, candidate: str, error: Exception, seconds: float
) -> CallRecord:
    return CallRecord(
        call_id=exploration_call_id(record.request_id, number),
        request_id=record.request_id,
        ended_at=datetime.now(UTC),
        role=CallRole.EXPLORATION,
        status=CallStatus.FAILURE,
        candidate=candidate,
        model=candidate,
        seconds=seconds,
        error=f"{type(error).__name__}: {error}"[:2000],
    )
