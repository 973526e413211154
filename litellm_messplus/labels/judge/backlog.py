"""Requests that wait to be graded: so many, and for so long."""

import asyncio
from collections import deque
from collections.abc import Callable

from litellm_messplus.labels.judge.gathering import ToGrade


class Backlog:
    """First come, first graded; one that failed goes behind the others, so that it holds none of
    them up. ``left_out`` is called for each that has waited too long."""

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
        """The first that has not waited too long; None where there is none."""
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
