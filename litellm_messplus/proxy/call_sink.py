"""A call has ended: its record, and everyone who is told of it.

Every call comes here, the one that the user saw and those beside it, whether it was answered or
failed.
"""

from dataclasses import dataclass
from datetime import datetime

from fastapi import HTTPException

from litellm_messplus.conversations.line import Place
from litellm_messplus.journal import Journal
from litellm_messplus.labels.source import Asked, LabelDesk
from litellm_messplus.proxy.deployments.gates import Gates, Needs
from litellm_messplus.proxy.deployments.metering import Meter, Metered, ReportedCall, Served
from litellm_messplus.proxy.energy_service import EnergyService
from litellm_messplus.proxy.holding.holds import Holds
from litellm_messplus.proxy.labelling import judged_call
from litellm_messplus.proxy.litellm_seam import NO_DEPLOYMENT_LEFT
from litellm_messplus.proxy.open_requests import Author
from litellm_messplus.records import REFUSALS, CallRecord, RequestRecord, error_words
from litellm_messplus.vocabulary import CallRole, CallStatus, CostSource, Failure

UNMETERED = Metered(None, None, CostSource.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Said:
    """The answer that came back of a call, ``reading`` in LiteLLM's words. ``is_cache_hit`` where
    LiteLLM's cache gave the answer."""

    response: object
    response_id: str | None
    reading: ReportedCall
    is_cache_hit: bool = False


GONE_STATUS = 499
"""The HTTP status by which LiteLLM's proxy says that its client has hung up."""
TIMEOUT_STATUS = 408
"""That of LiteLLM's timeouts."""


def who_failed(error: BaseException, *, is_called: bool = False) -> Failure:
    """Tell who failed, by the error that ended a call; ``is_called`` where a model was called
    before none was left."""
    status = getattr(error, "status_code", None)
    if isinstance(error, NO_DEPLOYMENT_LEFT) and not is_called:
        return Failure.NO_DEPLOYMENT
    if status in REFUSALS:
        return Failure.REFUSED
    if isinstance(error, HTTPException) and status == GONE_STATUS:  # an endpoint's own is its own
        return Failure.CLIENT_GONE
    if isinstance(error, TimeoutError) or status == TIMEOUT_STATUS:
        return Failure.DEADLINE
    return Failure.UPSTREAM


@dataclass(frozen=True, slots=True)
class CallEnd:
    """The end of a call of a request: with what was ``said``, else with an ``error``, and who
    failed. ``needs`` is what the gates know of the request, None in a zoo without; ``place`` is
    where it stands in a conversation, None of a call that the user did not see."""

    call_id: str
    role: CallRole
    author: Author
    ended_at: datetime
    seconds: float | None = None
    said: Said | None = None
    error: BaseException | None = None
    failure: Failure | None = None
    needs: Needs | None = None
    place: Place | None = None


class CallSink:
    """Meters each call and hands it to the log, to those who measure energy, to the gates, to the
    conversation that it is of, and to those who judge answers."""

    def __init__(
        self,
        meter: Meter,
        journal: Journal,
        energy: EnergyService,
        desk: LabelDesk,
        gates: Gates,
        holds: Holds,
    ) -> None:
        self._holds = holds
        self._meter = meter
        self._journal = journal
        self._energy = energy
        self._desk = desk
        self._gates = gates

    def ended(self, record: RequestRecord, asked: Asked | None, end: CallEnd) -> CallRecord:
        """Tell everyone; returns what is logged. ``asked`` is None where nobody judges."""
        factor = self._energy.price_factor(end.author.deployment_id or "")
        call = call_record(record, end, self._meter, factor)
        self._journal.write(call)
        self._energy.ended(record.zoo, call)
        if end.said is not None and not end.said.is_cache_hit:
            self._gates.succeeded(call.deployment_id, end.needs)
        response = None if end.said is None else end.said.response
        if end.place is not None:
            self._holds.ended(end.place, record, call, response)
        if asked is not None:
            self._desk.ended(judged_call(asked, record, call, response))
        return call

    def called(self, place: Place, zoo: str, deployment: str) -> None:
        """Note whose answer goes out to the client, before the end of the call is known."""
        self._holds.called(place, zoo, deployment)

    def attempt_failed(self, deployment: str | None, error: object, needs: Needs | None) -> None:
        """Learn from an attempt that has failed at a deployment; a retry or a fallback may
        follow."""
        self._gates.failed(deployment, error, needs)


def call_record(
    record: RequestRecord,
    end: CallEnd,
    meter: Meter,
    price_factor: float = 1.0,
) -> CallRecord:
    """Build the record of a call, attributed to whoever wrote the answer."""
    author, said = end.author, end.said
    metered = UNMETERED
    if said is not None:
        served = Served(author.candidate, author.deployment_id, price_factor)
        metered = meter.read(record, served, said.reading)
    usage = metered.usage
    is_cache_hit = said is not None and said.is_cache_hit
    return CallRecord(
        call_id=end.call_id,
        request_id=record.request_id,
        ended_at=end.ended_at,
        role=end.role,
        status=CallStatus.FAILURE if said is None else CallStatus.SUCCESS,
        candidate=author.candidate,
        deployment_id=author.deployment_id,
        model=author.model,
        response_id=None if said is None else said.response_id,
        prompt_tokens=usage.prompt_tokens if usage else None,
        completion_tokens=usage.completion_tokens if usage else None,
        cached_tokens=usage.cached_tokens if usage else None,
        written_tokens=usage.written_tokens if usage else None,
        reasoning_tokens=usage.reasoning_tokens if usage else None,
        cost=0.0 if is_cache_hit else metered.cost,
        cost_source=CostSource.MEASURED if is_cache_hit else metered.source,
        seconds=end.seconds,
        is_cache_hit=is_cache_hit,
        error=None if end.error is None else error_words(end.error),
        answer=None if said is None else said.reading.answer,
        failure=end.failure,
    )
