"""Tasks that run in parallel to the requests, and the closing of running parts.

A part that must be closed is registered in a `Closings` when it is made, so parts are closed in
reverse order of dependency, and every part is closed even if another one raises.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from typing import Any, Protocol, TypeVar

from litellm_messplus.runtime.counters import Counters

Result = TypeVar("Result")


def apart(work: Coroutine[Any, Any, Result]) -> Result:
    """Wait for ``work`` in a thread with an event loop of its own, while one runs here.

    LiteLLM imports its callbacks in a plain function that its event loop runs: nothing can be
    awaited there, and no second loop can run in the same thread.
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(asyncio.run, work).result()


MOST = 1000
"""The default for the most tasks of one part at once."""


class Tasks:
    """The running tasks of one part, at most ``most`` at once."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._running: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._running)

    def start(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None] | None:
        """Run ``work``, which handles its own errors, in the running event loop and the current
        context; return None, and run nothing, if too many tasks run."""
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
    """The periodic jobs of a worker, closed together."""

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
        """Do a job ``first`` seconds from now and then every ``seconds``. An exception is counted
        as ``counter``, logged as ``failed``, and the job repeated after ``retry`` seconds. A first
        TimeoutError is not: the event loop may have stood still, and not what was waited for."""

        async def repeat() -> None:
            is_late = False
            await asyncio.sleep(first)
            while True:
                pause = seconds
                try:
                    await job()
                    is_late = False
                except Exception as error:
                    was_late, is_late = is_late, isinstance(error, TimeoutError)
                    if was_late or not is_late:
                        self._counters.failure(counter, failed)
                    pause = seconds if retry is None else retry
                await asyncio.sleep(pause)

        self.start(repeat(), counter)


class Closes(Protocol):
    """A part that must be closed."""

    async def close(self) -> None:
        """End its tasks, and write what is left."""


P = TypeVar("P", bound=Closes)


class Closings:
    """The parts to close, in reverse order of registration."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._stack = AsyncExitStack()

    def keep(self, part: P) -> P:
        """Register a part to be closed, and return it."""
        self.then(part.close, type(part).__name__)
        return part

    def then(self, close: Callable[[], Awaitable[object]], name: str) -> None:
        """Register ``close``, called once everything registered later is closed."""
        self._stack.push_async_callback(self._close, close, name)

    async def close(self) -> None:
        """Close every part; an exception of one is counted, and the next one is closed."""
        await self._stack.aclose()

    async def _close(self, close: Callable[[], Awaitable[object]], name: str) -> None:
        with self._counters.tolerated("shutdown_failures", f"{name} was not closed"):
            await close()
