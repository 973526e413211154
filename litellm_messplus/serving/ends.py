"""The end of a call: its record, and the parts that are notified of it.

Every call goes to one sink: the one that the user saw and the unseen ones in parallel to it,
answered or failed."""

from dataclasses import asdict, dataclass, fields
from datetime import datetime

from litellm_messplus.brain.contract import Road
from litellm_messplus.brain.messages import Author, Continued, Ended
from litellm_messplus.core.answer import ANSWER_VERSION, AnswerReading, AnswerSurface
from litellm_messplus.costs.price import Usage
from litellm_messplus.records import CallRecord, RequestRecord
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.errors import NoAnswerError, error_words
from litellm_messplus.runtime.stand_ins import replace
from litellm_messplus.runtime.vocabulary import CallRole, CallStatus, CostSource, Failure
from litellm_messplus.serving.deployments.metering import Meter, Metered, ReportedCall, Served
from litellm_messplus.serving.open_requests import OpenRequest
from litellm_messplus.serving.scores import AnswerScores
from litellm_messplus.serving.surfaces.answers import read_usage
from litellm_messplus.serving.surfaces.identity import answer_in_next_prompt
from litellm_messplus.serving.surfaces.surface import SURFACES, Surface

EMPTY = NoAnswerError("empty")
"""The error of an answer without content."""
UNMETERED = Metered(None, None, CostSource.UNKNOWN)


@dataclass(frozen=True, slots=True)
class EndedAnswer:
    """The answer of a call, None if it cannot be read; ``reading`` is what is known of it, if
    anything. ``is_cache_hit`` if it came from LiteLLM's cache."""

    response: object
    response_id: str | None
    reading: ReportedCall | None
    is_cache_hit: bool = False


@dataclass(frozen=True, slots=True)
class CallEnd:
    """The end of a call of a request: with its ``answer``, or with an ``error`` and who failed; or
    with all three, where the answer is empty or incomplete and has its price.
    ``reading`` is set if the answer was read to keep or replace it, and ``looks`` if its surface
    was read before.
    ``served_not_chosen`` if LiteLLM called another deployment than the router left to it."""

    call_id: str
    role: CallRole
    author: Author
    ended_at: datetime
    seconds: float | None = None
    answer: EndedAnswer | None = None
    error: BaseException | None = None
    failure: Failure | None = None
    reading: AnswerReading | None = None
    looks: AnswerSurface | None = None
    served_not_chosen: bool = False

    @property
    def response(self) -> object:
        """The answer, if there is one that can be read."""
        return None if self.answer is None or self.failure is not None else self.answer.response


@dataclass(eq=False, repr=False)
class CallSink:
    """The sink of ended calls: it meters each and passes it to the log, its conversation, and the
    sources of labels."""

    meter: Meter
    road: Road
    scores: AnswerScores
    counters: Counters

    def ended(self, opened: OpenRequest, end: CallEnd) -> CallRecord:
        """Have the call logged and learned from, and return its record."""
        record, order, response = opened.record, opened.order, end.response
        call = call_record(record, end, self.meter, self._looks(record, end))
        surface = SURFACES[record.asker.call_type]
        is_answered = call.status is CallStatus.SUCCESS
        continued, answer, is_shown = None, None, order.is_judged
        if order.is_placed and is_answered and end.role is CallRole.SERVED:
            with self.counters.tolerated("identity_failures", "an answer is not known again"):
                continued = _continued(surface, call, response)
        if is_shown and is_answered and response is None:
            self.counters.failure("answers_hidden", "LiteLLM hid an answer: it gets no label")
            is_shown = False
        elif is_shown and is_answered:
            with self.counters.tolerated("answers_unread", "an answer gets no label"):
                answer = surface.read_answer(response)
            is_shown = answer is not None
        self.road.ended(Ended(call, is_shown, answer, continued, record))
        return call

    async def read(self, opened: OpenRequest, end: CallEnd) -> CallEnd:
        """Return the end of a call with what its answer looks like, and the score of its zoo."""
        if end.response is None:
            return end
        record = opened.record
        surface, looks = SURFACES[record.asker.call_type], self._looks(record, end)
        looks = await self.scores.scored(opened.scored, surface, end.response, looks)
        return replace(end, looks=looks)

    def _looks(self, record: RequestRecord, end: CallEnd) -> AnswerSurface | None:
        """Read what a new answer looks like; None if that fails, which is counted."""
        answer = end.answer
        if end.looks is not None:
            return end.looks
        if end.response is None or (answer is not None and answer.is_cache_hit):
            return None
        with self.counters.tolerated("answers_unread", "an answer's surface was not read"):
            return SURFACES[record.asker.call_type].looks(end.response)
        return None


def _continued(surface: Surface, call: CallRecord, response: object) -> Continued:
    """Read what the next request of the conversation will hold of an answer."""
    usage = None
    if call.written_tokens:  # for five minutes, or for an hour: the record does not say
        usage = read_usage(surface.used(response))
    elif call.prompt_tokens is not None:
        usage = Usage(call.prompt_tokens, call.completion_tokens or 0, call.cached_tokens or 0)
    return Continued(*answer_in_next_prompt(response), usage)


TOKENS = {each.name for each in fields(Usage)} & {each.name for each in fields(CallRecord)}
"""The numbers of tokens that a call is logged with."""


def call_record(
    record: RequestRecord,
    end: CallEnd,
    meter: Meter,
    looks: AnswerSurface | None = None,
) -> CallRecord:
    """Build the record of a call, attributed to the author of the answer; ``looks`` is the answer's
    surface."""
    author, answer = end.author, end.answer
    metered = UNMETERED
    if answer is not None and answer.reading is not None:
        served = Served(author.candidate, author.deployment_id)
        metered = meter.read(record, served, answer.reading)
    is_cache_hit = answer is not None and answer.is_cache_hit
    return CallRecord(
        call_id=end.call_id,
        request_id=record.request_id,
        ended_at=end.ended_at,
        role=end.role,
        status=CallStatus.SUCCESS if answer and end.failure is None else CallStatus.FAILURE,
        **asdict(author),
        response_id=None if answer is None else answer.response_id,
        **{name: getattr(metered.usage, name, None) for name in TOKENS},
        cost=0.0 if is_cache_hit else metered.cost,
        cost_source=CostSource.MEASURED if is_cache_hit else metered.source,
        cost_largest=metered.largest,
        seconds=end.seconds,
        is_cache_hit=is_cache_hit,
        served_not_chosen=end.served_not_chosen,
        error=None if end.error is None else error_words(end.error),
        answer=None if answer is None or answer.reading is None else answer.reading.answer,
        failure=end.failure,
        answer_surface=looks,
        answer_version=None if looks is None else ANSWER_VERSION,
        prompt_said=None if end.reading is None else end.reading.prompt,
        answer_said=None if end.reading is None else end.reading.answer,
    )
