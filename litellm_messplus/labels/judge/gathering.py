"""Gathering the answers to one request, so that they are graded together."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context
from dataclasses import dataclass, field

from litellm_messplus.bounded import Bounded
from litellm_messplus.draws import uniform
from litellm_messplus.labels.source import Answer, AnsweredCall, Asked

GATHER_SECONDS = 60.0
"""How long the answers that have come wait for the others: some calls never end."""
REMEMBERED = 4096
"""Requests of which a late answer is recognised as such."""


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


# In which order the answers to a request are shown.
#
# It hangs on ids alone, so whichever worker sees a request comes to the same, and neither the
# client nor the answers have a say in it.


def shuffled(seed: int, answers: Sequence[ShownAnswer]) -> tuple[ShownAnswer, ...]:
    """Put the answers to one request in an order that says nothing of where they come from."""
    return tuple(sorted(answers, key=lambda shown: uniform(seed, "order", shown.call_id)))


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
