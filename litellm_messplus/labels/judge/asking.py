"""One grading: its expected cost, one call of the judge, and a log record of the result."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime
from enum import Enum, auto
from typing import Any, Protocol, TypeVar

from litellm_messplus.costs.price import Price
from litellm_messplus.costs.usage import RecentMean, TokenEstimator
from litellm_messplus.labels.judge.budget import JudgeBudget
from litellm_messplus.labels.judge.prompts import (
    CONVERSATION_CHARACTERS,
    Grade,
    Message,
    NonsenseError,
    grades,
    messages,
    schema,
)
from litellm_messplus.labels.source import Answer, Finding, JudgedRequest, ReportFinding
from litellm_messplus.records import GradingRecord, new_id
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.draws import uniform
from litellm_messplus.runtime.vocabulary import GradingStatus, LabelKind, Preferred

# The expected cost of a call of a judge, in dollars, from the text that it will read.

REST = 2_500
"""Initial estimate of the bytes that a judge reads besides the conversation: instructions and
answers."""


class JudgeCost:
    """The expected cost of a call of one judge: its price, for the tokens that it reads and those
    that it usually writes. None while its price is unknown.

    Tokens are estimated from the bytes of a text: bytes per token differ far less between scripts
    than characters per token.
    """

    def __init__(self, price: Price | None = None) -> None:
        self.price = price
        self._tokens = TokenEstimator()
        self._rest = RecentMean(REST)

    def of_request(self, prompt: str) -> float | None:
        """Expect the cost for a request with answers of the usual length, as they are unknown
        yet."""
        return self._of(_shown(prompt) + self._rest.value)

    def of_messages(self, messages: Sequence[Message]) -> float | None:
        """Expect the cost of these messages."""
        return self._of(_read(messages))

    def learn(
        self,
        prompt: str,
        messages: Sequence[Message],
        prompt_tokens: int | None,
        completion_tokens: int | None,
    ) -> None:
        """Learn from a grading's messages and its tokens read and written; None if not reported."""
        read = _read(messages)
        self._rest.add(max(read - _shown(prompt), 0.0))
        if prompt_tokens is not None and completion_tokens is not None:
            self._tokens.observe(read, prompt_tokens, completion_tokens)

    def _of(self, read: float) -> float | None:
        if self.price is None:
            return None
        tokens = read / self._tokens.characters_per_token.value
        return self.price.of(tokens, self._tokens.completion_tokens.value)


def _read(messages: Sequence[Message]) -> int:
    return sum(_bytes(message["content"]) for message in messages)


def _shown(prompt: str) -> float:
    """Count the bytes of a conversation that a judge is shown: long ones are shortened."""
    return _bytes(prompt) * min(CONVERSATION_CHARACTERS / max(len(prompt), 1), 1.0)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


# The answers to one request that are graded.


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """An answer that is shown to the judge, and its candidate, which is not shown."""

    call_id: str
    answer: Answer
    candidate: str | None = None


@dataclass(frozen=True, slots=True)
class ToGrade:
    """A request with the answers that came in time; ``since`` is the loop time of the first."""

    request: JudgedRequest
    answers: tuple[ShownAnswer, ...]
    since: float


# The order in which the answers to a request are shown.
#
# It depends on ids only, so it is the same on each worker, and neither the client nor the answers
# influence it.


def shuffled(seed: int, answers: Sequence[ShownAnswer]) -> tuple[ShownAnswer, ...]:
    """Put the answers to one request in an order independent of their candidates."""
    return tuple(sorted(answers, key=lambda shown: uniform(seed, "order", shown.call_id)))


# The interface of a call of a judge, implemented outside this package.


@dataclass(frozen=True, slots=True)
class Reply:
    """The text that a judge wrote, with its cost and tokens; ``cost`` in dollars, None if
    unknown."""

    text: str
    cost: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class JudgeRefusedError(Exception):
    """Error of a judge that is up, and will never take this request: too long, or not allowed."""


class Ask(Protocol):
    """A single call of one judge, without retries."""

    async def __call__(
        self, messages: Sequence[Message], schema: Mapping[str, Any], timeout_seconds: float
    ) -> Reply:
        """Return the reply, constrained to the JSON schema if the judge supports one.

        Raises JudgeRefusedError, or any other Exception if a later call may succeed.
        """


WriteGrading = Callable[[GradingRecord], None]
LONGEST_ERROR = 2000


class Outcome(Enum):
    """The results of a call: the judge answered, will never take this request, or was not
    reached."""

    ANSWERED = auto()
    REFUSED = auto()
    NOT_REACHED = auto()


@dataclass(frozen=True, slots=True)
class JudgeSinks:
    """The receivers of a judge's results: of verdicts as findings, of gradings with their cost, and
    of counts."""

    report: ReportFinding
    write: WriteGrading
    counters: Counters


GRADING_SECONDS = 60.0
"""How long one grading may take."""

T = TypeVar("T")


@dataclass(eq=False, repr=False)
class Asking:
    """Calls of one judge, counted in its budget, and logged. ``cost`` learns from each call."""

    model: str
    ask: Ask
    budget: JudgeBudget
    cost: JudgeCost
    sinks: JudgeSinks
    timeout_seconds: float = GRADING_SECONDS

    async def put(
        self,
        to_grade: ToGrade,
        prompt: Sequence[Message],
        schema: Mapping[str, Any],
        answers: int,
        read: Callable[[str], T],
    ) -> T | Outcome:
        """Call the judge, and return the reply as parsed by ``read``; an outcome if it cannot be
        parsed, or there is none. ``answers`` is the number of answers shown."""
        log = _GradingLog(to_grade, self.model, answers, self.sinks.write)
        grading, dollars = self.budget.begin(self.cost.of_messages(prompt) or 0.0), 0.0
        try:
            async with asyncio.timeout(self.timeout_seconds):
                reply = await self.ask(prompt, schema, self.timeout_seconds)
            dollars = reply.cost or 0.0
        except asyncio.CancelledError:
            log.failed("the proxy stopped")
            raise
        except Exception as error:
            log.failed(f"{type(error).__name__}: {error}")
            message = f"{self.model} did not grade: {error!r}"
            self.sinks.counters.failure("judge_failures", message)
            is_refused = isinstance(error, JudgeRefusedError)
            return Outcome.REFUSED if is_refused else Outcome.NOT_REACHED
        finally:
            self.budget.end(grading, dollars)
        self._learn(to_grade, prompt, reply)
        try:
            found = read(reply.text)
        except NonsenseError as error:
            log.answered(GradingStatus.NONSENSE, reply, error=str(error))
            message = f"{self.model} is of no use: {error}"
            self.sinks.counters.failure("judge_nonsense", message)
            return Outcome.ANSWERED
        preferred = found if isinstance(found, Preferred) else None
        log.answered(GradingStatus.GRADED, reply, preferred=preferred)
        return found

    def _learn(self, to_grade: ToGrade, prompt: Sequence[Message], reply: Reply) -> None:
        if reply.cost is None:
            self.sinks.counters.add("judge_cost_unknown")
        conversation = to_grade.request.conversation.text
        self.cost.learn(conversation, prompt, reply.prompt_tokens, reply.completion_tokens)


class Grades(Protocol):
    """The method of labelling the answers to a request by a judge; ``weight`` is the current weight
    of its findings, 0 if they do not count."""

    weight: float

    def at_once(self, to_grade: ToGrade) -> ToGrade | None:
        """Report what needs no judge; return what is left to grade, None if nothing is."""

    def cost(self, to_grade: ToGrade) -> float:
        """Expect the cost of grading a request, in dollars; 0 while the price is unknown."""

    async def grade(self, to_grade: ToGrade) -> Outcome:
        """Call the judge. Reports a finding for each answer, or none at all."""


@dataclass(eq=False, repr=False)
class Grader:
    """The grader of each answer by the rubric."""

    asking: Asking
    rubric: str
    report: ReportFinding
    _: KW_ONLY
    seed: int

    def __post_init__(self) -> None:
        self.weight = 1.0

    def at_once(self, to_grade: ToGrade) -> ToGrade | None:
        """Leave the whole request to the judge."""
        return to_grade

    def cost(self, to_grade: ToGrade) -> float:
        """Expect the cost of one prompt with all answers, in dollars."""
        return self.asking.cost.of_messages(self._prompt(to_grade, to_grade.answers)) or 0.0

    async def grade(self, to_grade: ToGrade) -> Outcome:
        """Call the judge once. Reports a finding for each answer, or none at all."""
        shown = shuffled(self.seed, to_grade.answers)
        found = await self.asking.put(
            to_grade,
            self._prompt(to_grade, shown),
            schema(len(shown)),
            len(shown),
            lambda reply: grades(reply, len(shown)),
        )
        if isinstance(found, Outcome):
            return found
        for answer, grade in zip(shown, found, strict=True):
            self.report(self._finding(to_grade, answer, grade))
        return Outcome.ANSWERED

    def _prompt(self, to_grade: ToGrade, shown: Sequence[ShownAnswer]) -> list[Message]:
        return messages(self.rubric, to_grade.request, [answer.answer for answer in shown])

    def _finding(self, to_grade: ToGrade, shown: ShownAnswer, grade: Grade) -> Finding:
        return Finding(
            call_id=shown.call_id,
            request_id=to_grade.request.request_id,
            kind=LabelKind.JUDGE,
            source=LabelKind.JUDGE.value,
            value=grade.value,
            weight=self.weight,
            comment=grade.reason,
            probability=to_grade.request.label_probability,
        )


class _GradingLog:
    """The log record of one call of a judge."""

    def __init__(self, to_grade: ToGrade, judge: str, answers: int, write: WriteGrading) -> None:
        self._to_grade = to_grade
        self._judge = judge
        self._answers = answers
        self._write = write
        self._started = asyncio.get_running_loop().time()

    def failed(self, error: str) -> None:
        self.answered(GradingStatus.FAILURE, Reply(""), error=error[:LONGEST_ERROR])

    def answered(
        self,
        status: GradingStatus,
        reply: Reply,
        *,
        error: str | None = None,
        preferred: Preferred | None = None,
    ) -> None:
        self._write(
            GradingRecord(
                grading_id=new_id(),
                request_id=self._to_grade.request.request_id,
                created_at=datetime.now(UTC),
                judge=self._judge,
                status=status,
                answers=self._answers,
                cost=reply.cost,
                prompt_tokens=reply.prompt_tokens,
                completion_tokens=reply.completion_tokens,
                seconds=asyncio.get_running_loop().time() - self._started,
                error=error,
                preferred=preferred,
            )
        )
