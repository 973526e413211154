"""Long readings of the log, shared by all who ask: one at a time, whoever gives up waiting.

Reading the status of a long log takes seconds. Prometheus asks every 15 of them, gives up after
10, and asks again; people press reload. Each reading of its own would take one connection more,
until feedback finds none. So there is one reading at a time, all who ask for it wait for the same
one, and what it found serves those who ask within as long as it took: reading never takes more than
half of the time, and on a short log everyone sees what is there now.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

from litellm_messplus.store.one_moment import ReadingTakesTooLongError

T = TypeVar("T")

KEPT = 8
"""Findings of different readings that are kept, the newest."""
LONGEST_SECONDS = 60.0
"""Of one reading; then all who wait are told that it takes too long."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What a reading came to, and until when it serves."""

    value: Any
    until: float


class SharedReadings:
    """One a worker, used from its event loop."""

    def __init__(
        self,
        *,
        longest_seconds: float = LONGEST_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._longest_seconds = longest_seconds
        self._clock = clock
        self._turn = asyncio.Lock()
        self._found: OrderedDict[Hashable, _Found] = OrderedDict()
        self._under_way: dict[Hashable, asyncio.Task[Any]] = {}

    async def get(self, key: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        """What ``read`` gives, gave a moment ago, or is about to give somebody else.

        Raises what it raises, and ReadingTakesTooLongError after ``longest_seconds``.
        """
        found = self._found.get(key)
        if found is not None and self._clock() < found.until:
            value: T = found.value
            return value
        task = self._under_way.get(key)
        if task is None:
            task = asyncio.create_task(self._read(key, read))
            self._under_way[key] = task
            task.add_done_callback(lambda done: self._ended(key, done))
        result: T = await asyncio.shield(task)  # who gives up ends it for nobody else
        return result

    async def close(self) -> None:
        """End what is under way; whoever waits gets a CancelledError."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, key: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        try:
            async with asyncio.timeout(self._longest_seconds):
                async with self._turn:
                    started = self._clock()
                    value = await read()
        except TimeoutError as error:
            raise ReadingTakesTooLongError(self._longest_seconds) from error
        ended = self._clock()
        self._found[key] = _Found(value, ended + (ended - started))
        self._found.move_to_end(key)
        if len(self._found) > KEPT:
            self._found.popitem(last=False)
        return value

    def _ended(self, key: Hashable, task: asyncio.Task[Any]) -> None:
        self._under_way.pop(key, None)
        if not task.cancelled():
            task.exception()  # looked at, though nobody may be waiting any more
