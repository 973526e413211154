"""The judge as a label source: gathers the answers to a request, and labels them in the background,
within limits."""

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import Context
from dataclasses import KW_ONLY, dataclass, field

from litellm_messplus.labels.agreement import LEAST, Agreement
from litellm_messplus.labels.judge.asking import Grades, JudgeCost, Outcome, ShownAnswer, ToGrade
from litellm_messplus.labels.judge.budget import JudgeBudget, Spent
from litellm_messplus.labels.source import AnsweredCall, JudgedRequest
from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.runtime.counters import Counters, logger
from litellm_messplus.runtime.tasks import Tasks

# Gathering the answers to one request, so that they are graded together.

GATHER_SECONDS = 60.0
"""Longest wait of answers for the others of their request: some calls never end."""
REMEMBERED = 4096
"""Newest requests whose late answers are recognised."""


@dataclass(slots=True)
class _Gathered:
    request: JudgedRequest
    since: float
    timer: asyncio.TimerHandle
    ended: int = 0
    answers: list[ShownAnswer] = field(default_factory=list)


class Gatherer:
    """The requests whose answers are gathered. Each is passed to ``ready`` once, when all of its
    calls have ended or the time is up.

    Failed calls are left out, and a request whose calls all failed is not passed on.
    """

    def __init__(self, ready: Callable[[ToGrade], None]) -> None:
        self._ready = ready
        self._open: dict[str, _Gathered] = {}
        self._done: Bounded[str, None] = Bounded(REMEMBERED)

    def __len__(self) -> int:
        """Count the requests that wait for answers."""
        return len(self._open)

    def expects(self, request_id: str) -> bool:
        """Tell whether a request is still gathering answers."""
        return request_id in self._open

    def is_done(self, request_id: str) -> bool:
        """Tell whether a request was passed on or left out, so that a late answer is dropped."""
        return request_id in self._done

    def add(self, call: AnsweredCall) -> None:
        """Add a call that has ended, in the running event loop."""
        request_id = call.request.request_id
        gathered = self._open.get(request_id) or self._begin(call.request)
        gathered.ended += 1
        if call.answer is not None:
            gathered.answers.append(ShownAnswer(call.call_id, call.answer, call.candidate))
        if gathered.ended >= call.calls:
            self._hand_over(request_id)

    def leave_out(self, request_id: str) -> None:
        """Leave a request out: answers to come are late."""
        self._done[request_id] = None

    def close(self) -> None:
        """Drop the requests that wait."""
        for gathered in self._open.values():
            gathered.timer.cancel()
        self._open.clear()

    def _begin(self, request: JudgedRequest) -> _Gathered:
        loop = asyncio.get_running_loop()
        # A fresh context: that of the user's request is not kept alive for a minute.
        timer = loop.call_later(
            GATHER_SECONDS, self._hand_over, request.request_id, context=Context()
        )
        gathered = _Gathered(request, loop.time(), timer)
        self._open[request.request_id] = gathered
        return gathered

    def _hand_over(self, request_id: str) -> None:
        gathered = self._open.pop(request_id)
        gathered.timer.cancel()
        self.leave_out(request_id)
        if gathered.answers:
            self._ready(ToGrade(gathered.request, tuple(gathered.answers), gathered.since))


# Requests that wait to be graded, limited in number and time.


class Backlog:
    """A queue of requests to grade, in the order of arrival; one that failed is appended again, so
    that it does not block the others. ``left_out`` is called for each that has waited too long."""

    def __init__(self, patience_seconds: float, left_out: Callable[[], None]) -> None:
        self._patience_seconds = patience_seconds
        self._left_out = left_out
        self._waiting: deque[ToGrade] = deque()
        self._filled = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, to_grade: ToGrade) -> None:
        """Append a request."""
        self._waiting.append(to_grade)
        self._filled.set()

    async def filled(self) -> None:
        """Wait until a request is queued."""
        while not self._waiting:
            self._filled.clear()
            await self._filled.wait()

    def take(self) -> ToGrade | None:
        """Take the first request that has not waited too long; None without any."""
        while self._waiting:
            to_grade = self._waiting.popleft()
            if self._has_time(to_grade):
                return to_grade
            self._left_out()
        return None

    def leave_out_the_late(self) -> None:
        """Leave out the requests that have waited too long, to make room."""
        in_time = deque(to_grade for to_grade in self._waiting if self._has_time(to_grade))
        for _ in range(len(self._waiting) - len(in_time)):
            self._left_out()
        self._waiting = in_time

    def clear(self) -> None:
        """Drop all requests."""
        self._waiting.clear()

    def _has_time(self, to_grade: ToGrade) -> bool:
        return asyncio.get_running_loop().time() - to_grade.since <= self._patience_seconds


# Whether a judge answers. While it does not, it is retried rarely, with one call at a time.

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0


class Availability:
    """The availability of a judge. Pauses double with every failure in a row; ``jitter`` in [0, 1)
    takes up to half off, so that workers do not retry together."""

    def __init__(self, jitter: Callable[[], float] = random.random) -> None:
        self._jitter = jitter
        self._failures = 0
        self._next_probe = 0.0
        self._probing = asyncio.Lock()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until the judge may be called: at once while it answers; else alone, after the
        pause."""
        async with self._probing:
            await asyncio.sleep(max(0.0, self._next_probe - asyncio.get_running_loop().time()))
            if self._failures:
                yield
                return
        yield

    def succeeded(self) -> None:
        """Note that the judge answered."""
        self._failures, self._next_probe = 0, 0.0

    def failed(self) -> None:
        """Note that the judge did not answer, or not in time."""
        longest = FIRST_PAUSE_SECONDS * 2.0 ** min(self._failures, 30)
        self._failures += 1
        pause = min(LONGEST_PAUSE_SECONDS, longest) * (1.0 - 0.5 * self._jitter())
        self._next_probe = asyncio.get_running_loop().time() + pause


IsPaid = Callable[[JudgedRequest, float], bool]
"""Predicate of whether a grading of a request is paid, at its expected cost in dollars."""

CONCURRENT = 2
"""Gradings under way at once, in one worker."""
WAITING = 1000
"""Most requests that wait to be graded in one worker; more are left out, and counted."""
PATIENCE_SECONDS = 1800.0
"""Longest wait of a request for a failing judge: longer outages may last a day, and labels would
come too late to matter."""
CLOSE_SECONDS = 5.0
"""Longest wait of a stop for the gradings in progress."""


@dataclass(eq=False, repr=False)
class Judge:
    """The judge of one zoo: gathers the answers to a request, and labels them by ``grades``.

    It grades requests whose labels are bought, and none before it has learned the cost of the day
    so far. ``cost`` is the expected cost of a call, and ``counts`` whether its labels count.
    """

    name = "judge"

    zoo: str
    model: str
    grades: Grades
    budget: JudgeBudget
    cost: JudgeCost
    counters: Counters
    _: KW_ONLY
    concurrent: int = CONCURRENT
    most_waiting: int = WAITING
    patience_seconds: float = PATIENCE_SECONDS

    def __post_init__(self) -> None:
        self._availability = Availability()
        self._backlog = Backlog(self.patience_seconds, self._left_out)
        self._gatherer = Gatherer(self._gathered)
        self.is_paid: IsPaid = lambda request, dollars: True
        self._has_learned = asyncio.Event()
        self.counts = True
        self._busy = Tasks()
        self._workers = Tasks()

    @property
    def waiting(self) -> int:
        """The number of requests that wait for their answers or for the judge."""
        return len(self._gatherer) + len(self._backlog)

    def has_budget(self, dollars: float) -> bool:
        """Tell whether it may be called once more today, at that expected cost in dollars."""
        return self.budget.has_room(dollars)

    def money(self) -> tuple[float, float] | None:
        """Return the dollars left today for this worker, and those of the whole day for all
        workers; None without a budget."""
        day = self.budget.dollars
        return None if day is None else (self.budget.left, day)

    def start(self) -> None:
        """Start grading, in the running event loop."""
        for number in range(self.concurrent):
            self._workers.start(self._work(), f"judge-{self.zoo}-{number}")

    def learn(self, spent: Spent, agreement: Agreement, read_at: float) -> None:
        """Learn from the log at ``read_at``: the day's cost so far, the judge's agreement with
        users, and the number of workers that share the rest of the day's budget."""
        self.budget.learn(spent, read_at)
        counts = agreement.may_be(LEAST)
        if counts != self.counts:
            self._log_change(counts, agreement)
        self.counts = counts
        self.grades.weight = float(counts)
        self._has_learned.set()

    def ended(self, call: AnsweredCall) -> None:
        """Add the call to the others of its request, if its labels are bought."""
        request_id = call.request.request_id
        if call.request.label_probability is None:
            return
        if self._gatherer.is_done(request_id):
            self.counters.add("judge_late_answers")
        elif self._gatherer.expects(request_id) or self._has_room():
            self._gatherer.add(call)
        else:
            self._gatherer.leave_out(request_id)
            self.counters.add("judge_queue_full")

    async def close(self) -> None:
        """Let the gradings in progress end, within `CLOSE_SECONDS`; drop waiting requests."""
        if self.waiting:
            logger.info("%s: %d requests are left ungraded at the stop", self.zoo, self.waiting)
        self._gatherer.close()
        self._backlog.clear()
        await self._workers.close()  # no new gradings; those in progress go on
        await self._busy.close(CLOSE_SECONDS)

    def _has_room(self) -> bool:
        if self.waiting >= self.most_waiting:
            self._backlog.leave_out_the_late()
        return self.waiting < self.most_waiting

    def _gathered(self, to_grade: ToGrade) -> None:
        rest = self.grades.at_once(to_grade)
        if rest is not None:
            self._backlog.add(rest)

    async def _work(self) -> None:
        await self._has_learned.wait()
        while True:
            await self._backlog.filled()
            async with self._availability.turn():
                grading = self._busy.start(self._grade_next(), f"grading-{self.zoo}")
                if grading is not None:  # always: one per worker
                    await asyncio.wait([grading])

    async def _grade_next(self) -> None:
        """Grade one request, or put it back."""
        to_grade = self._next()
        if to_grade is None:
            return
        try:
            outcome = await self.grades.grade(to_grade)
        except Exception:  # our own: those of the judge are outcomes
            self.counters.failure("label_failures", f"the judge of {self.zoo} failed")
            return
        if outcome is Outcome.NOT_REACHED:
            self._availability.failed()
            self._backlog.add(to_grade)
            return
        self._availability.succeeded()
        if outcome is Outcome.REFUSED:
            self._left_out()

    def _next(self) -> ToGrade | None:
        """Take the next request that can be paid for, at its expected cost with the answers."""
        while (to_grade := self._backlog.take()) is not None:
            cost = self.grades.cost(to_grade)
            if self.has_budget(cost) and self.is_paid(to_grade.request, cost):
                return to_grade
            self.counters.add("judge_over_budget")
        return None

    def _left_out(self) -> None:
        self.counters.add("judge_left_out")

    def _log_change(self, counts: bool, agreement: Agreement) -> None:
        now = "count again" if counts else "stop counting"
        logger.warning(
            "%s: the labels of the judge %s %s: its agreement with users is %s, and must reach %g",
            self.zoo,
            self.model,
            now,
            agreement,
            LEAST,
        )
