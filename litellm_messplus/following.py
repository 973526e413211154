"""When to look at the log for what other workers wrote: when Postgres tells of it, else by the
clock."""

import asyncio
from collections.abc import Callable

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.runtime import Counters
from litellm_messplus.store.notices import LogNotices
from litellm_messplus.tasks import Tasks

FOLLOW_SECONDS = 1.0
"""How often to look where nothing tells of it: on SQLite, and while the notices are lost."""
SELDOM_SECONDS = 5.0
"""How often to look all the same while notices come."""
GAP_SECONDS = 0.1
"""From one look to the next that a notice causes: each takes some milliseconds of the event loop,
and a busy worker commits up to a hundred times a second."""


class Following:
    """The wait for what others write, one a journal, which ``wake`` wakes. ``upto`` is the newest
    position that was told of."""

    def __init__(self, database: AsyncEngine, counters: Counters, wake: Callable[[], None]) -> None:
        self.upto = 0
        self._counters = counters
        self._wake = wake
        self._may_look_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._tasks = Tasks()
        self._notices: LogNotices | None = None
        if database.dialect.name == "postgresql":
            self._notices = LogNotices(database, self._told, self._lost)

    @property
    def seconds(self) -> float:
        """The seconds to wait before looking without having been told."""
        is_told = self._notices is not None and self._notices.is_listening
        return SELDOM_SECONDS if is_told else FOLLOW_SECONDS

    def start(self) -> None:
        """Begin to listen, in the running event loop."""
        if self._notices is not None:
            self._tasks.start(self._notices.run(), "notices")

    async def close(self) -> None:
        """Listen no more."""
        if self._timer is not None:
            self._timer.cancel()
        await self._tasks.close()

    def looked(self) -> None:
        """Let some time pass before the next look, however much is told."""
        self._may_look_at = asyncio.get_running_loop().time() + GAP_SECONDS

    def _told(self, position: int) -> None:
        self.upto = max(self.upto, position)
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(self._may_look_at, loop.time()), self._due)

    def _due(self) -> None:
        self._timer = None
        self.looked()  # from now on too: the look itself takes a while
        self._wake()

    def _lost(self, error: Exception) -> None:
        self._counters.failure(
            "log_notices_lost", f"records of other workers are noticed late: {error!r}"
        )
