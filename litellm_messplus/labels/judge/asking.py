"""One grading: what it is expected to cost, asking the judge once, and logging what it said."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
from litellm_messplus.labels.source import Answer, Asked, Finding, ReportFinding
from litellm_messplus.records import GradingRecord, new_id
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.draws import uniform
from litellm_messplus.runtime.vocabulary import GradingStatus, LabelKind, Preferred

# What asking a judge costs, in dollars, as it is expected before: by what the judge reads.

REST = 2_500
"""Bytes that a judge reads beside the conversation (instructions and answers), before it has been
asked."""


class JudgeCost:
    """The expected cost of asking one judge: its price, for the tokens of what it reads and for as
    many as it usually writes. None while its price is unknown.

    Tokens are estimated from the bytes of a text: how many bytes a token has differs far less
    between scripts than how many characters.
    """

    def __init__(self, price: Price | None = None) -> None:
        self.price = price
        self._tokens = TokenEstimator()
        self._rest = RecentMean(REST)

    def of_request(self, prompt: str) -> float | None:
        """Expect the cost for a request whose answers are unknown yet: they will be as long as
        usual."""
        return self._of(_shown(prompt) + self._rest.value)

    def of_messages(self, messages: Sequence[Message]) -> float | None:
        """Expect the cost for what the judge is about to read."""
        return self._of(_read(messages))

    def learn(
        self,
        prompt: str,
        messages: Sequence[Message],
        prompt_tokens: int | None,
        completion_tokens: int | None,
    ) -> None:
        """Learn from what the judge has read for a request, and has written, in tokens; None where
        none were reported."""
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
    """Count the bytes of a conversation that a judge gets to see: long ones are shortened."""
    return _bytes(prompt) * min(CONVERSATION_CHARACTERS / max(len(prompt), 1), 1.0)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


# What is asked about: the answers to one request.


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """An answer that the judge gets to see; whose it is stays here."""

    call_id: str
    answer: Answer
    candidate: str | None = None


@dataclass(frozen=True, slots=True)
class ToGrade:
    """A request with the answers that came in time; ``since`` is the loop's time of the first."""

    asked: Asked
    answers: tuple[ShownAnswer, ...]
    since: float


# In which order the answers to a request are shown.
#
# It hangs on ids alone, so whichever worker sees a request comes to the same, and neither the
# client nor the answers have a say in it.


def shuffled(seed: int, answers: Sequence[ShownAnswer]) -> tuple[ShownAnswer, ...]:
    """Put the answers to one request in an order that says nothing of where they come from."""
    return tuple(sorted(answers, key=lambda shown: uniform(seed, "order", shown.call_id)))


# How a judge is asked: whoever calls models hands this in.


@dataclass(frozen=True, slots=True)
class Reply:
    """The text that a judge wrote, and what it took; ``cost`` in dollars, None where nobody knows
    it."""

    text: str
    cost: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class JudgeRefusedError(Exception):
    """The judge is there, and will never take this request: it is too long, or not allowed."""


class Ask(Protocol):
    """A call that asks one judge once, without retries."""

    async def __call__(
        self, messages: Sequence[Message], schema: Mapping[str, Any], timeout_seconds: float
    ) -> Reply:
        """Return the reply, by the JSON schema where the judge can be held to one.

        Raises JudgeRefusedError, or any other Exception where asking later may do.
        """
        ...


WriteGrading = Callable[[GradingRecord], None]
LONGEST_ERROR = 2000


class Outcome(Enum):
    """The results of asking: the judge answered, it will never take this request, or it was not
    reached."""

    ANSWERED = auto()
    REFUSED = auto()
    NOT_REACHED = auto()


@dataclass(frozen=True, slots=True)
class JudgeSinks:
    """The places where a judge's results go: verdicts as findings, gradings with their cost, and
    counts."""

    report: ReportFinding
    write: WriteGrading
    counters: Counters


T = TypeVar("T")


class Asking:
    """The asking of one judge: once, counted in its budget, and logged. ``cost`` learns from each
    time."""

    def __init__(
        self,
        model: str,
        ask: Ask,
        budget: JudgeBudget,
        cost: JudgeCost,
        sinks: JudgeSinks,
        *,
        timeout_seconds: float,
    ) -> None:
        self.model = model
        self.cost = cost
        self._limit = timeout_seconds
        self._ask = ask
        self._budget = budget
        self._sinks = sinks

    async def put(
        self,
        request: ToGrade,
        prompt: Sequence[Message],
        schema: Mapping[str, Any],
        answers: int,
        read: Callable[[str], T],
    ) -> T | Outcome:
        """Ask the judge, and return what ``read`` makes of the reply; an outcome where it makes
        nothing of it, or there is none. ``answers`` is how many are shown."""
        log = _GradingLog(request, self.model, answers, self._sinks.write)
        grading, dollars = self._budget.begin(self.cost.of_messages(prompt) or 0.0), 0.0
        try:
            async with asyncio.timeout(self._limit):
                reply = await self._ask(prompt, schema, self._limit)
            dollars = reply.cost or 0.0
        except asyncio.CancelledError:
            log.failed("the proxy stopped")
            raise
        except Exception as error:
            log.failed(f"{type(error).__name__}: {error}")
            told = f"{self.model} did not grade: {error!r}"
            self._sinks.counters.failure("judge_failures", told)
            is_refused = isinstance(error, JudgeRefusedError)
            return Outcome.REFUSED if is_refused else Outcome.NOT_REACHED
        finally:
            self._budget.end(grading, dollars)
        self._learn(request, prompt, reply)
        try:
            found = read(reply.text)
        except NonsenseError as error:
            log.answered(GradingStatus.NONSENSE, reply, error=str(error))
            told = f"{self.model} is of no use: {error}"
            self._sinks.counters.failure("judge_nonsense", told)
            return Outcome.ANSWERED
        preferred = found if isinstance(found, Preferred) else None
        log.answered(GradingStatus.GRADED, reply, preferred=preferred)
        return found

    def _learn(self, request: ToGrade, prompt: Sequence[Message], reply: Reply) -> None:
        if reply.cost is None:
            self._sinks.counters.add("judge_cost_unknown")
        conversation = request.asked.conversation.text
        self.cost.learn(conversation, prompt, reply.prompt_tokens, reply.completion_tokens)


class Grades(Protocol):
    """Labels the answers to one request by asking a judge; ``weight`` is what its findings count
    now, 0 where they do not."""

    weight: float

    def at_once(self, request: ToGrade) -> ToGrade | None:
        """Say what can be said without a judge; what is left to ask it, None where nothing is."""
        ...

    def cost(self, request: ToGrade) -> float:
        """Expect what asking about a request costs, in dollars; 0 while the price is unknown."""
        ...

    async def grade(self, request: ToGrade) -> Outcome:
        """Ask. Reports a finding for each answer, or none at all."""
        ...


class Grader:
    """Grades each answer by the rubric."""

    def __init__(
        self,
        asking: Asking,
        rubric: str,
        report: ReportFinding,
        *,
        seed: int,
    ) -> None:
        self.weight = 1.0
        self._asking = asking
        self._rubric = rubric
        self._report = report
        self._seed = seed

    def at_once(self, request: ToGrade) -> ToGrade | None:
        """Leave the request to the judge: nothing can be said without it."""
        return request

    def cost(self, request: ToGrade) -> float:
        """Expect the cost of one prompt with all answers."""
        return self._asking.cost.of_messages(self._prompt(request, request.answers)) or 0.0

    async def grade(self, request: ToGrade) -> Outcome:
        """Ask once, about all answers. Reports a finding for each answer, or none at all."""
        shown = shuffled(self._seed, request.answers)
        found = await self._asking.put(
            request,
            self._prompt(request, shown),
            schema(len(shown)),
            len(shown),
            lambda reply: grades(reply, len(shown)),
        )
        if isinstance(found, Outcome):
            return found
        for answer, grade in zip(shown, found, strict=True):
            self._report(self._finding(request, answer, grade))
        return Outcome.ANSWERED

    def _prompt(self, request: ToGrade, shown: Sequence[ShownAnswer]) -> list[Message]:
        return messages(self._rubric, request.asked, [answer.answer for answer in shown])

    def _finding(self, request: ToGrade, shown: ShownAnswer, grade: Grade) -> Finding:
        return Finding(
            call_id=shown.call_id,
            request_id=request.asked.request_id,
            kind=LabelKind.JUDGE,
            source=LabelKind.JUDGE.value,
            value=grade.value,
            weight=self.weight,
            comment=grade.reason,
            probability=request.asked.label_probability,
        )


class _GradingLog:
    """The record of one time that a judge was asked."""

    def __init__(self, request: ToGrade, judge: str, answers: int, write: WriteGrading) -> None:
        self._request = request
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
                request_id=self._request.asked.request_id,
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
