"""Whether a judge answers. While it does not, it is asked again seldom, and once at a time."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0


class Availability:
    """Pauses double with every failure in a row; ``jitter`` in [0, 1) takes up to half off, so that
    workers do not come back together."""

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

    def answered(self) -> None:
        """It is there."""
        self._failures, self._next_probe = 0, 0.0

    def failed(self) -> None:
        """It did not answer, or in time."""
        longest = FIRST_PAUSE_SECONDS * 2.0 ** min(self._failures, 30)
        self._failures += 1
        pause = min(LONGEST_PAUSE_SECONDS, longest) * (1.0 - 0.5 * self._jitter())
        self._next_probe = asyncio.get_running_loop().time() + pause
