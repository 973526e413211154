"""The end of a call: its record, and the parts that are notified of it.

Every call goes to one sink: the one that the user saw and the unseen ones in parallel to it,
answered or failed."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from functools import partial
from typing import Any

from fastapi import HTTPException

from litellm_messplus.conversations.line import Place
from litellm_messplus.costs.price import Usage
from litellm_messplus.deciding.question import Reading
from litellm_messplus.journal import Journal
from litellm_messplus.labels.source import JudgedRequest, LabelDesk
from litellm_messplus.prediction.answer import ANSWER_VERSION, AnswerSurface
from litellm_messplus.records import (
    CallRecord,
    RequestRecord,
    replaced_call_id,
    request_of,
    served_call_id,
)
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.errors import REFUSALS, error_words
from litellm_messplus.runtime.stand_ins import replace
from litellm_messplus.runtime.vocabulary import CallRole, CallStatus, CostSource, Failure
from litellm_messplus.serving.deployments.gates import Gates, Needs
from litellm_messplus.serving.deployments.index import DeploymentIndex
from litellm_messplus.serving.deployments.metering import Meter, Metered, ReportedCall, Served
from litellm_messplus.serving.energy_service import EnergyService
from litellm_messplus.serving.holding.holds import Holds
from litellm_messplus.serving.http import response_headers
from litellm_messplus.serving.labelling import judged_call
from litellm_messplus.serving.litellm_seam import NO_DEPLOYMENT_LEFT
from litellm_messplus.serving.open_requests import (
    UNKNOWN,
    Author,
    Authors,
    OpenRequest,
    OpenRequests,
)
from litellm_messplus.serving.scores import AnswerScores
from litellm_messplus.serving.surfaces import answers
from litellm_messplus.serving.surfaces.answers import plain_response_id
from litellm_messplus.serving.surfaces.surface import SURFACES
from litellm_messplus.switching.modes import is_of_litellm

UNMETERED = Metered(None, None, CostSource.UNKNOWN)


@dataclass(frozen=True, slots=True)
class EndedAnswer:
    """The answer of a call; ``reading`` is what LiteLLM reports of it. ``is_cache_hit`` if it came
    from LiteLLM's cache."""

    response: object
    response_id: str | None
    reading: ReportedCall
    is_cache_hit: bool = False


GONE_STATUS = 499
"""The HTTP status that LiteLLM's proxy uses when its client has disconnected."""
TIMEOUT_STATUS = 408
"""The HTTP status of LiteLLM's timeouts."""


def who_failed(error: BaseException, *, is_called: bool = False) -> Failure:
    """Classify the error that ended a call by who failed; ``is_called`` if a model was called
    before no deployment was left."""
    status = getattr(error, "status_code", None)
    if isinstance(error, NO_DEPLOYMENT_LEFT) and not is_called:
        return Failure.NO_DEPLOYMENT
    if status in REFUSALS:
        return Failure.REFUSED
    if isinstance(error, HTTPException) and status == GONE_STATUS:  # an endpoint's is upstream
        return Failure.CLIENT_GONE
    if isinstance(error, TimeoutError) or status == TIMEOUT_STATUS:
        return Failure.DEADLINE
    return Failure.UPSTREAM


@dataclass(frozen=True, slots=True)
class CallEnd:
    """The end of a call of a request: with its ``answer``, else with an ``error`` and who
    failed. ``needs`` is what the gates read of the request, None in a zoo without gates; ``place``
    is its place in a conversation, None for a call that the user did not see. ``reading`` is set if
    the answer was read to keep or replace it, and ``looks`` if its surface was read before."""

    call_id: str
    role: CallRole
    author: Author
    ended_at: datetime
    seconds: float | None = None
    answer: EndedAnswer | None = None
    error: BaseException | None = None
    failure: Failure | None = None
    needs: Needs | None = None
    place: Place | None = None
    reading: Reading | None = None
    looks: AnswerSurface | None = None


@dataclass(eq=False, repr=False)
class CallSink:
    """The sink of ended calls: it meters each and passes it to the log, the energy service, the
    gates, its conversation, and the sources of labels."""

    meter: Meter
    journal: Journal
    energy: EnergyService
    desk: LabelDesk
    gates: Gates
    holds: Holds
    scores: AnswerScores
    counters: Counters

    def ended(
        self, record: RequestRecord, judged: JudgedRequest | None, end: CallEnd
    ) -> CallRecord:
        """Notify all parts and return the logged record. ``judged`` is None if no source judges."""
        factor = self.energy.price_factor(end.author.deployment_id or "")
        call = call_record(record, end, self.meter, factor, self._looks(record, end))
        self.journal.write(call)
        self.energy.ended(record.zoo, call)
        if end.answer is not None and not end.answer.is_cache_hit:
            self.gates.succeeded(call.deployment_id, end.needs)
        response = None if end.answer is None else end.answer.response
        if end.place is not None:
            self.holds.ended(end.place, record, call, response)
        if judged is not None:
            self.desk.ended(judged_call(judged, record, call, response))
        return call

    async def read(
        self, record: RequestRecord, judged: JudgedRequest | None, end: CallEnd
    ) -> CallEnd:
        """Return the end of a call with what its answer looks like, and the score of its zoo."""
        if end.answer is None:
            return end
        surface, looks = SURFACES[record.asker.call_type], self._looks(record, end)
        looks = await self.scores.scored(judged, surface, end.answer.response, looks)
        return replace(end, looks=looks)

    def _looks(self, record: RequestRecord, end: CallEnd) -> AnswerSurface | None:
        """Read what a new answer looks like; None if that fails, which is counted."""
        answer = end.answer
        if end.looks is not None:
            return end.looks
        if answer is None or answer.is_cache_hit:
            return None
        with self.counters.tolerated("answers_unread", "an answer's surface was not read"):
            return SURFACES[record.asker.call_type].looks(answer.response)
        return None


TOKENS = {each.name for each in fields(Usage)} & {each.name for each in fields(CallRecord)}
"""The numbers of tokens that a call is logged with."""


def call_record(
    record: RequestRecord,
    end: CallEnd,
    meter: Meter,
    price_factor: float = 1.0,
    looks: AnswerSurface | None = None,
) -> CallRecord:
    """Build the record of a call, attributed to the author of the answer; ``looks`` is the answer's
    surface."""
    author, answer = end.author, end.answer
    metered = UNMETERED
    if answer is not None:
        served = Served(author.candidate, author.deployment_id, price_factor)
        metered = meter.read(record, served, answer.reading)
    is_cache_hit = answer is not None and answer.is_cache_hit
    return CallRecord(
        call_id=end.call_id,
        request_id=record.request_id,
        ended_at=end.ended_at,
        role=end.role,
        status=CallStatus.FAILURE if answer is None else CallStatus.SUCCESS,
        **asdict(author),
        response_id=None if answer is None else answer.response_id,
        **{name: getattr(metered.usage, name, None) for name in TOKENS},
        cost=0.0 if is_cache_hit else metered.cost,
        cost_source=CostSource.MEASURED if is_cache_hit else metered.source,
        seconds=end.seconds,
        is_cache_hit=is_cache_hit,
        error=None if end.error is None else error_words(end.error),
        answer=None if answer is None else answer.reading.answer,
        failure=end.failure,
        answer_surface=looks,
        answer_version=None if looks is None else ANSWER_VERSION,
        prompt_said=None if end.reading is None else end.reading.prompt,
        answer_said=None if end.reading is None else end.reading.answer,
    )


# The call that the user saw: from LiteLLM's hooks at its end to the log, and to the headers.


@dataclass(eq=False, repr=False)
class ServedCalls:
    """The handler of calls that serve requests: it finds the open request of a hook, and reports
    how its call ended."""

    open_requests: OpenRequests
    authors: Authors
    index: DeploymentIndex
    sink: CallSink
    counters: Counters

    async def headers(
        self, data: dict[str, Any], response: object, call_info: Mapping[str, Any]
    ) -> dict[str, str] | None:
        """Return the headers for the client, and note the author of the answer: the next request of
        the conversation may come before this one is logged. None for a request that is not routed;
        ``response`` is None if every model has failed."""
        opened = self.open_requests.of_hook(data, data)
        if opened is None:
            return None
        second = opened.second
        if response is None:
            author = UNKNOWN
        elif answers.is_repeated(data, response):
            author = await self._author_of_repetition(opened, response)
        else:
            given_id = answers.response_id(response)
            if given_id:
                opened.response_id = plain_response_id(given_id)
            author = self._server(opened, call_info) if second is None else second.author
        if opened.place is not None and author.deployment_id is not None:
            self.sink.holds.called(opened.place, opened.record.zoo, author.deployment_id)
        first = None if second is None else opened.record.chosen
        return response_headers(opened.record, author.name, first)

    async def succeeded(self, kwargs: dict[str, Any], response: object) -> None:
        """Handle LiteLLM's log event of an answer: it comes once, after retries and fallbacks, and
        for a stream at its end."""
        opened = self.open_requests.of_hook(kwargs.get("litellm_params") or {}, kwargs)
        if opened is None:
            return
        payload = kwargs["standard_logging_object"]
        author = await self._author(opened, payload, response)
        opened.ensure_logged()
        end = answered_end(opened, payload, response, author)
        if opened.first is None:
            if self.sink.scores.is_on(opened.record.zoo) and not opened.is_scored:
                end = replace(end, looks=opened.looks)
                opened.looks = (await self.sink.read(opened.record, opened.judged, end)).looks
            self._answered(opened, end)
        else:  # it may still be replaced
            opened.waiting = partial(self._answered, opened, end)

    def _answered(self, opened: OpenRequest, end: CallEnd) -> None:
        """Record the end of an answered call: of the one that the user saw, or of the first one and
        then of the second."""
        second = opened.second
        if opened.reading is not None or opened.looks is not None:
            end = replace(end, reading=opened.reading, looks=opened.looks)
        if second is not None:
            self.sink.ended(opened.record, second.judged, replaced_end(end))
            second.log()
            return
        call = self.sink.ended(opened.record, opened.release_judged(), end)
        # The headers of a stream went out before its id was known.
        opened.response_id = opened.response_id or call.response_id
        self.authors.wrote(opened.record.zoo, call)

    def attempt_failed(self, kwargs: Mapping[str, Any]) -> None:
        """Handle LiteLLM's log event of an attempt that failed."""
        opened = self.open_requests.of_hook(kwargs.get("litellm_params") or {}, kwargs)
        if opened is not None:
            payload = kwargs.get("standard_logging_object") or {}
            error = kwargs.get("exception")
            self.sink.gates.failed(payload.get("model_id"), error, opened.needs)

    def failed(self, data: dict[str, Any], error: BaseException) -> None:
        """End a request whose user got an error, after every retry and fallback."""
        opened = self.open_requests.of_hook(data, data)
        if opened is not None:
            opened.ensure_logged()
            opened.settle()
            self.sink.ended(opened.record, opened.release_judged(), failed_end(opened, error))

    def _server(self, opened: OpenRequest, call_info: Mapping[str, Any]) -> Author:
        """Return the author that LiteLLM names before the answer goes out."""
        info = call_info.get("model_info") or {}
        deployment = call_info.get("model_id") or info.get("id")
        if deployment is None:
            return UNKNOWN
        candidate = self.index.candidate(opened.record.zoo, deployment)
        return Author(candidate, str(deployment), None)

    async def _author_of_repetition(self, opened: OpenRequest, response: object) -> Author:
        """Find the author of an answer from LiteLLM's cache; ``UNKNOWN`` if it is not known."""
        with self.counters.tolerated("header_failures", "an answer went without its author"):
            opened.response_id = await answers.repeated_id(response)
            opened.author = await self.authors.of(opened.record.zoo, opened.response_id)
        return opened.author or UNKNOWN

    async def _author(
        self, opened: OpenRequest, payload: Mapping[str, Any], response: object
    ) -> Author:
        """Find the author of an answer: of this call, or of the one repeated by the cache."""
        if not payload.get("cache_hit"):
            return served_by(payload, opened.record.zoo, self.index)
        if opened.author is not None:
            return opened.author
        with self.counters.tolerated("cached_answers_unknown", "the log did not say who wrote one"):
            repeated = opened.response_id or await answers.repeated_id(response)
            found = await self.authors.of(opened.record.zoo, repeated)
            if found is None:
                self.counters.add("cached_answers_unknown")
            return found or UNKNOWN
        return UNKNOWN


def served_by(payload: Mapping[str, Any], zoo: str, index: DeploymentIndex) -> Author:
    """Return the author of an answer not from LiteLLM's cache: the deployment that served last."""
    deployment = payload.get("model_id")
    return Author(index.candidate(zoo, deployment), deployment, payload.get("model"))


def answered_end(
    opened: OpenRequest, payload: Mapping[str, Any], response: object, author: Author
) -> CallEnd:
    """Build the end of a call that was answered; ``payload`` is LiteLLM's standard logging
    object."""
    record, seconds = opened.record, _seconds(payload)
    reading = ReportedCall(
        _usage(payload),
        SURFACES[record.asker.call_type].text(response),
        payload.get("response_cost"),
        seconds,
        is_stream=record.asker.is_stream,
    )
    response_id = opened.response_id or _response_id(payload, response)
    return CallEnd(
        call_id=served_call_id(record.request_id),
        role=CallRole.SERVED,
        author=author,
        ended_at=_ended_at(payload),
        seconds=seconds,
        answer=EndedAnswer(
            response, response_id, reading, is_cache_hit=bool(payload.get("cache_hit"))
        ),
        needs=opened.needs,
        place=opened.place,
    )


def replaced_end(end: CallEnd) -> CallEnd:
    """Return the end of a call whose answer the user did not see, because another replaced it."""
    answer = None if end.answer is None else replace(end.answer, response_id=None)
    call_id = replaced_call_id(request_of(end.call_id))
    return replace(end, call_id=call_id, role=CallRole.REPLACED, answer=answer, place=None)


def failed_end(opened: OpenRequest, error: BaseException) -> CallEnd:
    """Build the end of a request without an answer. The candidate is None if LiteLLM refused it
    with no deployment left, so none was called, and if LiteLLM itself chose, so it is unknown."""
    is_refused = isinstance(error, NO_DEPLOYMENT_LEFT) and not opened.tried
    is_unknown = is_refused or is_of_litellm(opened.record.chosen)
    return CallEnd(
        call_id=served_call_id(opened.record.request_id),
        role=CallRole.SERVED,
        author=Author(None if is_unknown else opened.record.chosen, None, None),
        ended_at=datetime.now(UTC),
        error=error,
        failure=who_failed(error, is_called=bool(opened.tried)),
    )


def _response_id(payload: Mapping[str, Any], response: object) -> str | None:
    """Return the id that the client got: for a repeated answer, the payload's id has a suffix of
    its own."""
    given_id = answers.response_id(response) if payload.get("cache_hit") else payload.get("id")
    return None if given_id is None else plain_response_id(given_id)


def _usage(payload: Mapping[str, Any]) -> object:
    """Return the usage, with details if LiteLLM kept them; the bare numbers are in the payload
    itself."""
    return (payload.get("metadata") or {}).get("usage_object") or payload


def _seconds(payload: Mapping[str, Any]) -> float | None:
    """Compute the seconds to the end of the answer; for a stream, LiteLLM's own `response_time`
    covers only the time to its start."""
    started, ended = payload.get("startTime"), payload.get("endTime")
    return None if started is None or ended is None else ended - started


def _ended_at(payload: Mapping[str, Any]) -> datetime:
    """Return when the answer ended: LiteLLM's event comes some time later."""
    ended = payload.get("endTime")
    return datetime.now(UTC) if ended is None else datetime.fromtimestamp(ended, UTC)
