"""One grading: ask the judge once, log that it was asked, report what it said."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, auto

from litellm_messplus.counters import Counters
from litellm_messplus.identity import new_id
from litellm_messplus.label_kind import LabelKind
from litellm_messplus.labels.judge.asking import Ask, JudgeRefusedError, Reply
from litellm_messplus.labels.judge.budget import DailyBudget
from litellm_messplus.labels.judge.gathering import ShownAnswer, ToGrade
from litellm_messplus.labels.judge.prompt import messages, schema
from litellm_messplus.labels.judge.reading import Grade, NonsenseError, grades
from litellm_messplus.labels.judge.sampling import shuffled
from litellm_messplus.labels.source import Finding, Report
from litellm_messplus.records import GradingRecord, GradingStatus
from litellm_messplus.settings.labels import JudgeSettings

WriteGrading = Callable[[GradingRecord], None]
LONGEST_ERROR = 2000


class Outcome(Enum):
    """What became of asking: the judge answered, it will never take this request, or it was not
    reached."""

    ANSWERED = auto()
    REFUSED = auto()
    NOT_REACHED = auto()


@dataclass(frozen=True, slots=True)
class Outlets:
    """Where a judge's doings go: verdicts as findings, gradings with their cost, and counts."""

    report: Report
    write: WriteGrading
    counters: Counters


class Grader:
    """Of one judge; ``weight`` is what its findings count now, 0 where they do not."""

    def __init__(
        self,
        settings: JudgeSettings,
        ask: Ask,
        budget: DailyBudget,
        outlets: Outlets,
        *,
        seed: int,
        store_text: bool,
    ) -> None:
        self.weight = settings.weight
        self._settings = settings
        self._ask = ask
        self._budget = budget
        self._outlets = outlets
        self._seed = seed
        self._store_text = store_text

    async def grade(self, request: ToGrade) -> Outcome:
        """Ask once. Reports a finding for each answer, or none at all."""
        shown = shuffled(self._seed, request.answers)
        log = _GradingLog(request, self._settings.model, self._outlets.write)
        prompt = messages(self._settings.rubric, request.asked, [answer.answer for answer in shown])
        limit = self._settings.timeout_seconds
        self._budget.asked(datetime.now(UTC).date())
        try:
            async with asyncio.timeout(limit):
                reply = await self._ask(prompt, schema(len(shown)), limit)
        except asyncio.CancelledError:
            log.failed("the proxy stopped")
            raise
        except Exception as error:
            log.failed(f"{type(error).__name__}: {error}")
            told = f"{self._settings.model} did not grade: {error!r}"
            self._outlets.counters.failure("judge_failures", told)
            is_refused = isinstance(error, JudgeRefusedError)
            return Outcome.REFUSED if is_refused else Outcome.NOT_REACHED
        self._pay(reply)
        self._read(reply, request, shown, log)
        return Outcome.ANSWERED

    def _pay(self, reply: Reply) -> None:
        if reply.cost is None:
            self._outlets.counters.add("judge_cost_unknown")
        else:
            self._budget.paid(datetime.now(UTC).date(), reply.cost)

    def _read(
        self, reply: Reply, request: ToGrade, shown: Sequence[ShownAnswer], log: "_GradingLog"
    ) -> None:
        try:
            found = grades(reply.text, len(shown))
        except NonsenseError as error:
            log.answered(GradingStatus.NONSENSE, reply, str(error))
            told = f"{self._settings.model} is of no use: {error}"
            self._outlets.counters.failure("judge_nonsense", told)
            return
        log.answered(GradingStatus.GRADED, reply)
        for answer, grade in zip(shown, found, strict=True):
            self._outlets.report(self._finding(request, answer, grade))

    def _finding(self, request: ToGrade, shown: ShownAnswer, grade: Grade) -> Finding:
        return Finding(
            call_id=shown.call_id,
            request_id=request.asked.request_id,
            kind=LabelKind.JUDGE,
            source=LabelKind.JUDGE.value,
            value=grade.value,
            weight=self.weight,
            comment=grade.reason if self._store_text else None,  # it may quote the user
        )


class _GradingLog:
    """Writes what became of one time that a judge was asked."""

    def __init__(self, request: ToGrade, judge: str, write: WriteGrading) -> None:
        self._request = request
        self._judge = judge
        self._write = write
        self._started = asyncio.get_running_loop().time()

    def failed(self, error: str) -> None:
        self._log(GradingStatus.FAILURE, Reply(""), error[:LONGEST_ERROR])

    def answered(self, status: GradingStatus, reply: Reply, error: str | None = None) -> None:
        self._log(status, reply, error)

    def _log(self, status: GradingStatus, reply: Reply, error: str | None) -> None:
        self._write(
            GradingRecord(
                grading_id=new_id(),
                request_id=self._request.asked.request_id,
                created_at=datetime.now(UTC),
                judge=self._judge,
                status=status,
                answers=len(self._request.answers),
                cost=reply.cost,
                prompt_tokens=reply.prompt_tokens,
                completion_tokens=reply.completion_tokens,
                seconds=asyncio.get_running_loop().time() - self._started,
                error=error,
            )
        )
