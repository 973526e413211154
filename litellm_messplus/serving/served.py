"""The end of the call that the user saw: once, whatever LiteLLM tells and in which order.

The answer is taken where the client gets it: a whole one at the last hook before it goes out, a
stream at its end. LiteLLM's log event adds usage, price and times, if it comes soon and is of that
answer: a client can suppress it, a setting redact it, and LiteLLM may have discarded what it
reports. Where no client waits, the event is the end."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from litellm_messplus.brain.messages import UNKNOWN, Author
from litellm_messplus.records import replaced_call_id, request_of, served_call_id
from litellm_messplus.runtime.counters import UNROUTED, Counters
from litellm_messplus.runtime.errors import LOST, NoAnswerError
from litellm_messplus.runtime.stand_ins import replace
from litellm_messplus.runtime.tasks import Periodic, Tasks
from litellm_messplus.runtime.vocabulary import CallRole, Failure
from litellm_messplus.serving.deployments.deployment import Failing
from litellm_messplus.serving.deployments.index import DeploymentIndex
from litellm_messplus.serving.deployments.metering import ReportedCall
from litellm_messplus.serving.ends import EMPTY, CallEnd, CallSink, EndedAnswer
from litellm_messplus.serving.failures import who_failed
from litellm_messplus.serving.litellm_seam import (
    REDACTED,
    aliased,
    attempted,
    hidden_params,
    identity_of,
    is_unread,
    patience_of,
    served_deployment,
)
from litellm_messplus.serving.open_requests import (
    Handed,
    OpenRequest,
    OpenRequests,
    Report,
)
from litellm_messplus.serving.surfaces import answers
from litellm_messplus.serving.surfaces.answers import plain_response_id
from litellm_messplus.serving.surfaces.surface import SURFACES
from litellm_messplus.serving.visibility import response_headers
from litellm_messplus.switching.modes import is_of_litellm

REPORT_SECONDS = 2.0
"""Seconds after an answer in which LiteLLM's report of it is waited for."""
SWEEP_SECONDS = 0.5


@dataclass(eq=False, repr=False)
class ServedCalls:
    """The owner of the ends of requests: it finds the open request of a hook, notes what the client
    got and what LiteLLM reports, and ends the request once."""

    open_requests: OpenRequests
    index: DeploymentIndex
    sink: CallSink
    failing: Failing
    counters: Counters

    def __post_init__(self) -> None:
        self._ending = Tasks()

    def start(self, periodic: Periodic) -> None:
        """Begin to end what LiteLLM does not report."""
        periodic.every(SWEEP_SECONDS, self.sweep, "outcome_failures", "ends were not looked for")

    async def close(self) -> None:
        """End all: what no client has by now, none will get."""
        await self._ending.close(REPORT_SECONDS)
        for opened in self.open_requests.unended():
            await self._end(opened)

    async def headers(
        self, data: dict[str, Any], response: object, call_info: Mapping[str, Any]
    ) -> dict[str, str] | None:
        """Return the headers for the client, and note the author of the answer: the next request of
        the conversation may come before this one is logged. A whole answer goes out with them. None
        for a request that is not routed; ``response`` is None if every model has failed."""
        opened = self.open_requests.of_hook(data, data)
        if opened is None:
            return None
        second, is_repeated = opened.second, False
        if response is None:
            author = UNKNOWN
        elif is_repeated := answers.is_repeated(data, response):
            author = await self._author_of_repetition(opened, response)
        else:
            given_id = answers.response_id(response)
            if given_id:
                opened.response_id = plain_response_id(given_id)
            author = self._server(opened, data, call_info) if second is None else second.author
        if response is not None:
            request_id = opened.record.request_id
            self.sink.road.called(request_id, author.deployment_id, opened.response_id)
            model = hidden_params(response).get("model_id")
            is_whole = not hasattr(type(response), "__aiter__")
            got = Handed(author, time.monotonic(), model, response if is_whole else None)
            got.is_repeated = is_repeated
            opened.got = got
            if is_whole:
                self._hand(opened, got, is_empty=answers.is_empty(response))
        first = None if second is None else opened.record.chosen
        return response_headers(opened.record, author.name, first)

    def followed(self, data: Mapping[str, Any], stream: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Follow the stream of a routed request to its end; leave any other alone."""
        opened = self.open_requests.of_hook(data, data)
        return stream if opened is None else self._followed(opened, stream)

    async def _followed(
        self, opened: OpenRequest, stream: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        chunks: list[Any] = []
        error: BaseException | None = None
        opened.is_streaming = True
        try:
            async for chunk in stream:
                chunks.append(chunk)
                yield chunk
        except BaseException as raised:
            error = raised
            raise
        finally:
            opened.is_streaming = False
            with self.counters.tolerated("outcome_failures", "a stream's end was not read"):
                self._streamed(opened, chunks, error)

    def _streamed(
        self, opened: OpenRequest, chunks: Sequence[Any], error: BaseException | None
    ) -> None:
        """Note what the client got of a stream, and whether that is an answer."""
        told, now = answers.events(chunks), time.monotonic()
        got = opened.got or Handed(UNKNOWN, now)
        got.chunks, got.at = chunks, now
        if told and not got.is_repeated:
            opened.response_id = answers.streamed_id(told[0]) or opened.response_id
            model = hidden_params(told[-1]).get("model_id")
            if model not in (None, got.model_id):  # it failed over within the stream
                got.model_id = model
                got.author = Author(self.index.candidate(opened.record.zoo, model), model, None)
        is_left = isinstance(error, GeneratorExit | asyncio.CancelledError)
        words = next(filter(None, map(answers.error_of, told[-1:])), None)
        if is_left and not any(map(answers.has_ended, told[-2:])):
            got.failure, got.error = Failure.CLIENT_GONE, NoAnswerError("the client left")
        elif error is not None and not is_left:
            got.failure, got.error = who_failed(error), error
        elif words is not None:
            got.failure, got.error = Failure.UPSTREAM, NoAnswerError(words)
        self._hand(opened, got, is_empty=not any(map(answers.has_content, told)))

    def _hand(self, opened: OpenRequest, got: Handed, *, is_empty: bool) -> None:
        """Note what the client got: the end, as soon as LiteLLM has reported it, or does not."""
        if got.failure is None and is_empty:
            got.failure, got.error = Failure.UPSTREAM, EMPTY
        if self.open_requests.is_open(opened):
            opened.handed = got
        if _report_of(opened) is not None:
            self._ending.start(self._end(opened), "end")

    async def reported(self, details: dict[str, Any], response: object) -> None:
        """Handle LiteLLM's log event of an answer: the first that it had, if it had several."""
        opened = self.open_requests.of_hook(details.get("litellm_params") or {}, details)
        if opened is None:
            self._not_routed(details.get("standard_logging_object") or {})
            return
        if self.open_requests.is_open(opened):
            opened.report = Report(details, response)
        if not opened.has_client or (opened.handed is not None and _report_of(opened) is not None):
            await self._end(opened)

    def _not_routed(self, payload: Mapping[str, Any]) -> None:
        """Count the answer to a call of a type that is not routed."""
        zoo, call_type = aliased(payload.get("model_group")), payload.get("call_type")
        if zoo in self.sink.meter.zoos and call_type not in SURFACES:
            self.counters.add(f"{UNROUTED}{zoo}.{call_type}")

    def failed(self, data: dict[str, Any], key_hash: str | None, error: BaseException) -> None:
        """End a request of a key whose user got an error, after every retry and fallback."""
        opened = self.open_requests.of_failure(data, key_hash)
        if opened is not None:
            end = failed_end(opened, error, self.index, attempted(data))
            if self.open_requests.end(opened):
                self.failing.failed(end.author.deployment_id, end.failure, error)
                self._failed(opened, end)

    def _lost(self, opened: OpenRequest, error: BaseException) -> None:
        """Record the end of a request of which nobody told how it ended."""
        end = failed_end(opened, error, self.index, {})
        self._failed(opened, replace(end, failure=Failure.UNKNOWN))

    def _failed(self, opened: OpenRequest, end: CallEnd) -> None:
        self.sink.ended(opened, end)
        opened.forget_answer()

    async def sweep(self) -> None:
        """End the requests that LiteLLM does not report, those of which nothing comes any more, and
        the oldest if too many are open."""
        now, most = time.monotonic(), self.open_requests.most
        for left, opened in enumerate(reversed(self.open_requests.unended())):
            if (got := opened.handed) is not None:
                is_due = now - got.at >= REPORT_SECONDS
            else:
                waited = now - opened.offered_at
                is_due = not opened.is_streaming and waited >= patience_of(opened.timeout)
            if is_due or left >= most:
                await self._end(opened)

    async def _end(self, opened: OpenRequest) -> None:
        """End a request by what is known of it, unless it has ended."""
        if not self.open_requests.end(opened):
            return
        try:
            if opened.handed is None and opened.report is None:
                self._lost(opened, LOST)
            else:
                await self._answered(opened)
        except Exception as error:
            self.counters.failure("outcome_failures", "a served call was not read")
            self._lost(opened, error)

    async def _answered(self, opened: OpenRequest) -> None:
        """Record the end of an answered call: of the one that the user saw, or of the first one and
        then of the second."""
        report, second, zoo = _report_of(opened), opened.second, opened.record.zoo
        end = answered_end(opened, report, await self._author(opened, report))
        if end.served_not_chosen:
            self.counters.failure("served_not_chosen", "LiteLLM does not follow the router")
        if opened.looks is None and second is None and self.sink.scores.is_on(zoo):
            opened.looks = (await self.sink.read(opened, end)).looks
        if opened.reading is not None or opened.looks is not None:
            end = replace(end, reading=opened.reading, looks=opened.looks)
        if second is not None:
            self.sink.ended(opened, replaced_end(end))
            second.log()
            opened.forget_answer()
            return
        if end.failure is None:
            self.failing.answered(end.author.deployment_id)
        self.sink.ended(opened, end)
        opened.forget_answer()

    def _server(
        self, opened: OpenRequest, data: Mapping[str, Any], call_info: Mapping[str, Any]
    ) -> Author:
        """Return the author that LiteLLM names before the answer goes out."""
        deployment, model = served_deployment(data, call_info)
        if deployment is None:
            return UNKNOWN
        return Author(self.index.candidate(opened.record.zoo, deployment), deployment, model)

    async def _author_of_repetition(self, opened: OpenRequest, response: object) -> Author:
        """Find the author of an answer from LiteLLM's cache; ``UNKNOWN`` if it is not known."""
        with self.counters.tolerated("header_failures", "an answer went without its author"):
            opened.response_id = await answers.repeated_id(response)
            opened.author = await self.sink.road.author_of(opened.record.zoo, opened.response_id)
        return opened.author or UNKNOWN

    async def _author(self, opened: OpenRequest, report: Report | None) -> Author:
        """Find the author of an answer: of this call, or of the one repeated by the cache."""
        if not _is_repeated(opened, report):
            if report is None or (opened.handed is not None and not report.payload):
                return UNKNOWN if opened.handed is None else opened.handed.author
            return served_by(report, opened.record.zoo, self.index)
        if opened.author is not None:
            return opened.author
        with self.counters.tolerated("cached_answers_unknown", "the log did not say who wrote one"):
            repeated = opened.response_id
            if repeated is None and report is not None:
                repeated = await answers.repeated_id(report.answer)
            found = await self.sink.road.author_of(opened.record.zoo, repeated)
            if found is None:
                self.counters.add("cached_answers_unknown")
            return found or UNKNOWN
        return UNKNOWN


def served_by(report: Report, zoo: str, index: DeploymentIndex) -> Author:
    """Return the author of an answer not from LiteLLM's cache: the deployment that served last."""
    deployment = report.payload.get("model_id") or hidden_params(report.answer).get("model_id")
    info = attempted(report.details.get("litellm_params") or {})
    if info.get("id") == deployment:  # a client's own key makes another of it
        deployment = identity_of(info)
    return Author(index.candidate(zoo, deployment), deployment, report.payload.get("model"))


def _report_of(opened: OpenRequest) -> Report | None:
    """Return LiteLLM's report, if it is of the answer that the client got: of another deployment or
    with another id, it is of one that LiteLLM discarded."""
    report, got, second = opened.report, opened.handed, opened.second
    if report is None or got is None or got.is_repeated:
        return report
    given = got.answer if second is None else second.replaced
    if given is report.answer:
        return report
    model = got.model_id if second is None else hidden_params(given).get("model_id")
    if model is not None and hidden_params(report.answer).get("model_id", model) != model:
        return None
    chats = [answers.field(each, "choices") is not None for each in (given, report.answer)]
    is_same = answers.response_id(given) == answers.response_id(report.answer)
    return report if is_same or not all(chats) else None


def _is_repeated(opened: OpenRequest, report: Report | None) -> bool:
    got = opened.handed
    is_told = report is not None and bool(report.payload.get("cache_hit"))
    return is_told or (got is not None and got.is_repeated)


def _readable(opened: OpenRequest, report: Report | None) -> object | None:
    """Return the answer in a form that its surface reads; None if LiteLLM hides it."""
    got, second = opened.handed, opened.second
    if second is not None:
        return second.replaced
    if got is not None and got.answer is not None and not SURFACES[_call_type(opened)].as_chat:
        return got.answer
    if report is not None and report.details.get("messages") != REDACTED:
        return report.answer
    return answers.assembled(got.chunks) if got is not None and got.chunks else None


def _call_type(opened: OpenRequest) -> str:
    return opened.record.asker.call_type


def answered_end(opened: OpenRequest, report: Report | None, author: Author) -> CallEnd:
    """Build the end of a call that was answered, from what the client got and what LiteLLM reports
    of it, one of which there is."""
    record, got, surface = opened.record, opened.handed, SURFACES[_call_type(opened)]
    response, is_repeated = _readable(opened, report), _is_repeated(opened, report)
    payload = {} if report is None else report.payload
    started, ended = payload.get("startTime"), payload.get("endTime")
    seconds = None if started is None or ended is None else ended - started
    if got is not None and not payload:
        seconds = got.at - opened.offered_at
    # With details if LiteLLM kept them; the bare numbers are in the payload itself.
    usage = (payload.get("metadata") or {}).get("usage_object") or payload
    usage = usage or surface.used(response)
    charges = (payload, {} if report is None else report.details, hidden_params(response))
    dollars = next(filter(None, (each.get("response_cost") for each in charges)), None)
    failure = None if got is None else got.failure
    is_used = failure is None or report is not None or usage is not None
    reading = ReportedCall(
        usage, surface.text(response), dollars, seconds, is_stream=record.asker.is_stream
    )
    # The payload's id of a repeated answer has a suffix of its own.
    told_id = answers.response_id(response) if is_repeated else payload.get("id")
    response_id = opened.response_id or (told_id and plain_response_id(told_id))
    return CallEnd(
        call_id=served_call_id(record.request_id),
        role=CallRole.SERVED,
        author=author,
        ended_at=datetime.now(UTC) if ended is None else datetime.fromtimestamp(ended, UTC),
        seconds=seconds,
        answer=EndedAnswer(response, response_id, reading if is_used else None, is_repeated),
        error=None if got is None else got.error,
        failure=failure,
        served_not_chosen=not is_repeated and _is_of_another(opened, author),
    )


def _is_of_another(opened: OpenRequest, author: Author) -> bool:
    """Tell whether a deployment of the zoo answered that the router had not left to LiteLLM; after
    a fallback to another model, none of the zoo has."""
    is_of_zoo = author.candidate is not None and author.deployment_id is not None
    return is_of_zoo and bool(opened.offered) and author.deployment_id not in opened.offered


def replaced_end(end: CallEnd) -> CallEnd:
    """Return the end of a call whose answer the user did not see, because another replaced it."""
    answer = None if end.answer is None else replace(end.answer, response_id=None)
    call_id = replaced_call_id(request_of(end.call_id))
    return replace(end, call_id=call_id, role=CallRole.REPLACED, answer=answer)


def failed_end(
    opened: OpenRequest, error: BaseException, index: DeploymentIndex, last: Mapping[str, Any]
) -> CallEnd:
    """Build the end of a request without an answer; ``last`` is the `model_info` of the last
    deployment that LiteLLM chose. The candidate is None if LiteLLM refused it with no deployment
    left, so none was called, and if LiteLLM itself chose, and does not tell what."""
    is_own, is_called = "original_model_id" in last, bool(opened.tried)
    failure = who_failed(
        error, is_called=is_called, is_own=is_own, is_unread=is_unread(opened.call)
    )
    identity, author = identity_of(last), UNKNOWN
    if (candidate := index.candidate(opened.record.zoo, identity)) is not None:
        author = Author(candidate, identity, None)
    elif not is_of_litellm(opened.record.chosen):
        author = Author(opened.record.chosen, None, None)
    return CallEnd(
        call_id=served_call_id(opened.record.request_id),
        role=CallRole.SERVED,
        author=UNKNOWN if failure is Failure.NO_DEPLOYMENT else author,
        ended_at=datetime.now(UTC),
        error=error,
        failure=failure,
    )
