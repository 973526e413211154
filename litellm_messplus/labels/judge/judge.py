"""The judge as a label source: gathers the answers to a request, and has them labelled in the
background, within bounds."""

import asyncio
import logging
import random
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import Context
from dataclasses import dataclass, field

from litellm_messplus.labels.agreement import LEAST, Agreement
from litellm_messplus.labels.judge.asking import Grades, JudgeCost, Outcome, ShownAnswer, ToGrade
from litellm_messplus.labels.judge.budget import JudgeBudget, Spent
from litellm_messplus.labels.source import AnsweredCall, Asked
from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.tasks import Tasks

# Gathering the answers to one request, so that they are graded together.

GATHER_SECONDS = 60.0
"""How long the answers that have come wait for the others: some calls never end."""
REMEMBERED = 4096
"""Requests of which a late answer is recognised as such."""


@dataclass(slots=True)
class _Gathered:
    asked: Asked
    since: float
    timer: asyncio.TimerHandle
    ended: int = 0
    answers: list[ShownAnswer] = field(default_factory=list)


class Gatherer:
    """The requests whose answers are gathered. Each is handed over to ``ready`` once, when all of
    its calls have ended or the time is up.

    Failed calls have nothing to show, and a request of which all calls failed is not handed over.
    """

    def __init__(self, ready: Callable[[ToGrade], None]) -> None:
        self._ready = ready
        self._open: dict[str, _Gathered] = {}
        self._done: Bounded[str, None] = Bounded(REMEMBERED)

    def __len__(self) -> int:
        """Count the requests that wait for answers."""
        return len(self._open)

    def expects(self, request_id: str) -> bool:
        """Tell whether an answer to it would be put to others."""
        return request_id in self._open

    def is_done(self, request_id: str) -> bool:
        """Tell whether it was handed over or left out, so that a late answer comes to nothing."""
        return request_id in self._done

    def add(self, call: AnsweredCall) -> None:
        """Add a call that has ended, in the running event loop."""
        request_id = call.asked.request_id
        gathered = self._open.get(request_id) or self._begin(call.asked)
        gathered.ended += 1
        if call.answer is not None:
            gathered.answers.append(ShownAnswer(call.call_id, call.answer, call.candidate))
        if gathered.ended >= call.calls:
            self._hand_over(request_id)

    def leave_out(self, request_id: str) -> None:
        """Leave a request out: answers to come are late."""
        self._done[request_id] = None

    def close(self) -> None:
        """Forget what waits."""
        for gathered in self._open.values():
            gathered.timer.cancel()
        self._open.clear()

    def _begin(self, asked: Asked) -> _Gathered:
        loop = asyncio.get_running_loop()
        # A fresh context: that of the user's request is not kept alive for a minute.
        timer = loop.call_later(
            GATHER_SECONDS, self._hand_over, asked.request_id, context=Context()
        )
        gathered = _Gathered(asked, loop.time(), timer)
        self._open[asked.request_id] = gathered
        return gathered

    def _hand_over(self, request_id: str) -> None:
        gathered = self._open.pop(request_id)
        gathered.timer.cancel()
        self.leave_out(request_id)
        if gathered.answers:
            self._ready(ToGrade(gathered.asked, tuple(gathered.answers), gathered.since))


# Requests that wait to be graded: so many, and for so long.


class Backlog:
    """A queue of requests to grade, in the order of arrival; one that failed goes behind the
    others, so that it holds none of them up. ``left_out`` is called for each that has waited too
    long."""

    def __init__(self, patience_seconds: float, left_out: Callable[[], None]) -> None:
        self._patience_seconds = patience_seconds
        self._left_out = left_out
        self._waiting: deque[ToGrade] = deque()
        self._filled = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, request: ToGrade) -> None:
        """Put it behind all others."""
        self._waiting.append(request)
        self._filled.set()

    async def filled(self) -> None:
        """Wait until there is one to take."""
        while not self._waiting:
            self._filled.clear()
            await self._filled.wait()

    def take(self) -> ToGrade | None:
        """Take the first that has not waited too long; None where there is none."""
        while self._waiting:
            request = self._waiting.popleft()
            if self._has_time(request):
                return request
            self._left_out()
        return None

    def leave_out_the_late(self) -> None:
        """Make room."""
        in_time = deque(request for request in self._waiting if self._has_time(request))
        for _ in range(len(self._waiting) - len(in_time)):
            self._left_out()
        self._waiting = in_time

    def clear(self) -> None:
        """Forget them all."""
        self._waiting.clear()

    def _has_time(self, request: ToGrade) -> bool:
        return asyncio.get_running_loop().time() - request.since <= self._patience_seconds


# Whether a judge answers. While it does not, it is asked again rarely, and once at a time.

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0


class Availability:
    """The availability of a judge. Pauses double with every failure in a row; ``jitter`` in [0, 1)
    takes up to half off, so that workers do not come back together."""

    def __init__(self, jitter: Callable[[], float] = random.random) -> None:
        self._jitter = jitter
        self._failures = 0
        self._next_probe = 0.0
        self._probing = asyncio.Lock()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until the judge may be asked: at once while it answers; else alone, and after the
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


logger = logging.getLogger("litellm_messplus")

IsPaid = Callable[[Asked, float], bool]
"""Tells whether a grading of a request is paid, which is expected to cost so many dollars."""


def _always(_asked: Asked, _dollars: float) -> bool:
    return True


WAITING = 1000
"""Requests that may wait to be graded, in one worker; more are left out, and counted."""
PATIENCE_SECONDS = 1800.0
"""How long a request waits for a judge that fails, before it is left out: a longer outage is a
day's, and its labels would come too late to matter."""
CLOSE_SECONDS = 5.0
"""How long a stop waits for the gradings under way."""


class Judge:
    """The judge of one zoo: puts the answers to a request together, and has ``grades`` label them.

    It grades requests whose labels are bought, and nothing before it has learned what the day has
    cost so far. ``cost`` is what asking it is expected to cost.
    """

    name = "judge"

    def __init__(
        self,
        zoo: str,
        model: str,
        grades: Grades,
        budget: JudgeBudget,
        cost: JudgeCost,
        counters: Counters,
        *,
        concurrent: int,
        most_waiting: int = WAITING,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self.model = model
        self.cost = cost
        self._zoo = zoo
        self._concurrent = concurrent
        self._most_waiting = most_waiting
        self._counters = counters
        self._budget = budget
        self._grades = grades
        self._availability = Availability()
        self._backlog = Backlog(patience_seconds, self._left_out)
        self._gatherer = Gatherer(self._gathered)
        self._is_paid: IsPaid = _always
        self._has_learned = asyncio.Event()
        self._counts = True
        self._busy = Tasks()
        self._workers = Tasks()

    @property
    def waiting(self) -> int:
        """Requests that wait, for their answers or for the judge."""
        return len(self._gatherer) + len(self._backlog)

    @property
    def counts(self) -> bool:
        """Whether its labels count."""
        return self._counts

    def has_budget(self, dollars: float) -> bool:
        """Tell whether it may be asked once more today, at that expected cost."""
        return self._budget.has_room(dollars)

    def money(self) -> tuple[float, float] | None:
        """Return the dollars that are left today for this worker, and those of the whole day for
        all; None without a budget."""
        day = self._budget.dollars
        return None if day is None else (self._budget.left, day)

    def ask_before(self, is_paid: IsPaid) -> None:
        """Ask ``is_paid`` before each request is graded."""
        self._is_paid = is_paid

    def start(self) -> None:
        """Begin grading, in the running event loop."""
        for number in range(self._concurrent):
            self._workers.start(self._work(), f"judge-{self._zoo}-{number}")

    def learn(self, spent: Spent, agreement: Agreement, read_at: float, workers: int = 1) -> None:
        """Learn what the log said at ``read_at``: what the day has cost so far, how the judge
        agrees with users, and how many workers share what is left of the day."""
        self._budget.learn(spent, read_at, workers)
        counts = agreement.may_be(LEAST)
        if counts != self._counts:
            self._log_change(counts, agreement)
        self._counts = counts
        self._grades.weight = float(counts)
        self._has_learned.set()

    def ended(self, call: AnsweredCall) -> None:
        """Put the call to the others of its request, if its labels are bought."""
        request_id = call.asked.request_id
        if call.asked.label_probability is None:
            return
        if self._gatherer.is_done(request_id):
            self._counters.add("judge_late_answers")
        elif self._gatherer.expects(request_id) or self._has_room():
            self._gatherer.add(call)
        else:
            self._gatherer.leave_out(request_id)
            self._counters.add("judge_queue_full")

    async def close(self) -> None:
        """Let the gradings under way end, within moments; what waits is not graded."""
        if self.waiting:
            logger.info("%s: %d requests are left ungraded at the stop", self._zoo, self.waiting)
        self._gatherer.close()
        self._backlog.clear()
        await self._workers.close()  # nothing new; what they wait for goes on
        await self._busy.close(CLOSE_SECONDS)

    def _has_room(self) -> bool:
        if self.waiting >= self._most_waiting:
            self._backlog.leave_out_the_late()
        return self.waiting < self._most_waiting

    def _gathered(self, request: ToGrade) -> None:
        rest = self._grades.at_once(request)
        if rest is not None:
            self._backlog.add(rest)

    async def _work(self) -> None:
        await self._has_learned.wait()
        while True:
            await self._backlog.filled()
            async with self._availability.turn():
                grading = self._busy.start(self._grade_next(), f"grading-{self._zoo}")
                if grading is not None:  # always: as many run as there are workers
                    await asyncio.wait([grading])

    async def _grade_next(self) -> None:
        """Settle one request, or put it back."""
        request = self._next()
        if request is None:
            return
        try:
            outcome = await self._grades.grade(request)
        except Exception:  # ours: the judge's own are outcomes
            self._counters.failure("label_failures", f"the judge of {self._zoo} failed")
            return
        if outcome is Outcome.NOT_REACHED:
            self._availability.failed()
            self._backlog.add(request)
            return
        self._availability.succeeded()
        if outcome is Outcome.REFUSED:
            self._left_out()

    def _next(self) -> ToGrade | None:
        """Take the next request that can be paid for, now that its answers are known."""
        while (request := self._backlog.take()) is not None:
            cost = self._grades.cost(request)
            if self.has_budget(cost) and self._is_paid(request.asked, cost):
                return request
            self._counters.add("judge_over_budget")
        return None

    def _left_out(self) -> None:
        self._counters.add("judge_left_out")

    def _log_change(self, counts: bool, agreement: Agreement) -> None:
        now = "count again" if counts else "stop counting"
        logger.warning(
            "%s: the labels of the judge %s %s: its agreement with users is %s, and must reach %g",
            self._zoo,
            self.model,
            now,
            agreement,
            LEAST,
        )
