"""One grading: ask the judge once, log that it was asked, report what it said."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import Enum, auto
from typing import Any, Protocol, TypeVar

from litellm_messplus.labels.judge.gathering import ShownAnswer, ToGrade, shuffled
from litellm_messplus.labels.judge.prompt import (
    Grade,
    Message,
    NonsenseError,
    grades,
    messages,
    schema,
)
from litellm_messplus.labels.purchasing import own_share
from litellm_messplus.labels.source import Finding, ReportFinding
from litellm_messplus.records import GradingRecord, new_id
from litellm_messplus.runtime import Counters
from litellm_messplus.settings.labels import GradingSettings
from litellm_messplus.vocabulary import GradingStatus, LabelKind, Preferred

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


# What a judge may spend in a day (UTC).


@dataclass(frozen=True, slots=True)
class Spent:
    """The spending of a day on grading: how often the judge was asked, and the dollars known of."""

    day: date
    gradings: int = 0
    dollars: float = 0.0


class DailyBudget:
    """The budget of a day: it counts what is spent here, and what the log says was spent by
    everybody; a new day begins at zero. The workers share what is left at a look at the log, for
    none sees what the others spend until the next."""

    def __init__(self, *, gradings: int, dollars: float | None) -> None:
        self._most_gradings = gradings
        self._most_dollars = dollars
        self._spent = Spent(date.min)
        self._at_look = Spent(date.min)
        self._workers = 1

    def has_room(self, today: date) -> bool:
        """Tell whether the judge may be asked once more. The last grading of each worker may go
        beyond its share: what it costs is known when it is paid."""
        spent, before = self._of(today), _on(today, self._at_look)
        if not self._is_left(self._most_gradings, spent.gradings, before.gradings):
            return False
        most = self._most_dollars
        return most is None or self._is_left(most, spent.dollars, before.dollars)

    def count_grading(self, today: date) -> None:
        """Count that the judge is asked once more, whatever comes of it."""
        spent = self._of(today)
        self._spent = Spent(today, spent.gradings + 1, spent.dollars)

    def paid(self, today: date, dollars: float) -> None:
        """Count the dollars that a grading cost."""
        spent = self._of(today)
        self._spent = Spent(today, spent.gradings, spent.dollars + dollars)

    def learn(self, logged: Spent, workers: int = 1) -> None:
        """Learn what the log holds of a day: it knows other workers, and not yet all of our own.
        So many workers look at it."""
        self._workers = workers
        if logged.day < self._spent.day:  # read just before midnight
            return
        spent = self._of(logged.day)
        self._spent = Spent(
            logged.day,
            max(spent.gradings, logged.gradings),
            max(spent.dollars, logged.dollars),
        )
        self._at_look = self._spent

    def _is_left(self, most: float, spent: float, at_look: float) -> bool:
        return own_share(most - at_look, spent - at_look, self._workers) > 0.0

    def _of(self, today: date) -> Spent:
        return _on(today, self._spent)


def _on(today: date, spent: Spent) -> Spent:
    return spent if spent.day == today else Spent(today)


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
    """The asking of one judge: once, within its budget, and logged."""

    def __init__(
        self,
        model: str,
        settings: GradingSettings,
        ask: Ask,
        budget: DailyBudget,
        sinks: JudgeSinks,
    ) -> None:
        self.model = model
        self._limit = settings.timeout_seconds
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
        self._budget.count_grading(datetime.now(UTC).date())
        try:
            async with asyncio.timeout(self._limit):
                reply = await self._ask(prompt, schema, self._limit)
        except asyncio.CancelledError:
            log.failed("the proxy stopped")
            raise
        except Exception as error:
            log.failed(f"{type(error).__name__}: {error}")
            told = f"{self.model} did not grade: {error!r}"
            self._sinks.counters.failure("judge_failures", told)
            is_refused = isinstance(error, JudgeRefusedError)
            return Outcome.REFUSED if is_refused else Outcome.NOT_REACHED
        self._pay(reply)
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

    def _pay(self, reply: Reply) -> None:
        if reply.cost is None:
            self._sinks.counters.add("judge_cost_unknown")
        else:
            self._budget.paid(datetime.now(UTC).date(), reply.cost)


class Grades(Protocol):
    """Labels the answers to one request by asking a judge; ``weight`` is what its findings count
    now, 0 where they do not."""

    weight: float

    def at_once(self, request: ToGrade) -> ToGrade | None:
        """Say what can be said without a judge; what is left to ask it, None where nothing is."""
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
        weight: float,
        report: ReportFinding,
        *,
        seed: int,
    ) -> None:
        self.weight = weight
        self._asking = asking
        self._rubric = rubric
        self._report = report
        self._seed = seed

    def at_once(self, request: ToGrade) -> ToGrade | None:
        """Leave the request to the judge: nothing can be said without it."""
        return request

    async def grade(self, request: ToGrade) -> Outcome:
        """Ask once, about all answers. Reports a finding for each answer, or none at all."""
        shown = shuffled(self._seed, request.answers)
        answers = [answer.answer for answer in shown]
        prompt = messages(self._rubric, request.asked, answers)
        found = await self._asking.put(
            request,
            prompt,
            schema(len(shown)),
            len(shown),
            lambda reply: grades(reply, len(shown)),
        )
        if isinstance(found, Outcome):
            return found
        for answer, grade in zip(shown, found, strict=True):
            self._report(self._finding(request, answer, grade))
        return Outcome.ANSWERED

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
