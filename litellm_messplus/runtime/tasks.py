"""Tasks that run in parallel to the requests, and the closing of what runs.

A part that must be closed is kept in a `Closings` at the moment when it is made, so the order of
closing is the reverse of the order of need, and every part is closed whatever another one raises.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any, Protocol, TypeVar

from litellm_messplus.runtime.counters import Counters

MOST = 1000
"""Tasks of one part at once, unless it states another number."""


class Tasks:
    """The running tasks of one part, at most ``most`` at once."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._running: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._running)

    def start(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None] | None:
        """Run in the running event loop, in the current context; return None, and run nothing,
        where too many tasks run. ``work`` handles its own errors."""
        if len(self._running) >= self._most:
            work.close()
            return None
        task = asyncio.create_task(work, name=f"messplus-{name}")
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def close(self, seconds: float = 0.0) -> None:
        """Wait at most ``seconds`` for the tasks to end, and cancel the others."""
        if seconds and self._running:
            await asyncio.wait(self._running, timeout=seconds)
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


class Periodic(Tasks):
    """The jobs of a worker that are done again and again, until they are all closed at once."""

    def __init__(self, counters: Counters) -> None:
        super().__init__()
        self._counters = counters

    def every(
        self,
        seconds: float,
        job: Callable[[], Awaitable[object]],
        counter: str,
        failed: str,
        *,
        first: float = 0.0,
        retry: float | None = None,
    ) -> None:
        """Do a job ``first`` seconds from now and then every ``seconds``. What it raises is counted
        as ``counter`` and logged as ``failed``; it is done again after ``retry`` seconds then."""

        async def repeat() -> None:
            await asyncio.sleep(first)
            while True:
                pause = seconds
                try:
                    await job()
                except Exception:
                    self._counters.failure(counter, failed)
                    pause = seconds if retry is None else retry
                await asyncio.sleep(pause)

        self.start(repeat(), counter)


class Closes(Protocol):
    """A part that must be closed."""

    async def close(self) -> None:
        """End what runs, and write what is left."""
        ...


P = TypeVar("P", bound=Closes)


class Closings:
    """The parts that are to be closed, each one after all that were kept later."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._stack = AsyncExitStack()

    def keep(self, part: P) -> P:
        """Have a part closed, and return it."""
        self.then(part.close, type(part).__name__)
        return part

    def then(self, close: Callable[[], Awaitable[object]], name: str) -> None:
        """Have ``close`` called once everything kept later is closed."""
        self._stack.push_async_callback(self._close, close, name)

    async def close(self) -> None:
        """Close every part; what one raises is counted, and the next one is closed."""
        await self._stack.aclose()

    async def _close(self, close: Callable[[], Awaitable[object]], name: str) -> None:
        try:
            await close()
        except Exception:
            self._counters.failure("shutdown_failures", f"{name} was not closed")
