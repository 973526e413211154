"""A task that runs beside the requests, from the start of the plugin to its stop."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress


class Background:
    """Holds the task; one that was never started is closed at once."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    def start(self, work: Coroutine[None, None, None], name: str) -> None:
        """Begin, in the running event loop."""
        self._task = asyncio.create_task(work, name=name)

    async def close(self) -> None:
        """Cancel it, and wait until it is over."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
