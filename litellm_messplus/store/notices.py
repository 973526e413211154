"""When to look for what other workers wrote to the log: as Postgres reports it, else by the clock.

Postgres reports at once what is appended to the log, by LISTEN and NOTIFY.
A notice is sent by the transaction that appends, so it comes when the records can be read, and only
then. Nobody may build on it alone: what is said while a connection is lost is said to nobody.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from sqlalchemy import ColumnElement, Text, cast, func
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.tasks import Tasks
from litellm_messplus.store.tables import log_head

CHANNEL = "messplus_log"
CHECK_SECONDS = 30.0
"""Between two checks that notices still come: a connection may be lost without a word."""
ANSWER_SECONDS = 5.0
"""How long the database may take to connect, and a notice to come back."""
RETRY_SECONDS = 0.5
LONGEST_RETRY_SECONDS = 30.0
"""Between two attempts to connect: twice as long after each that failed."""
NAMED = {"server_settings": {"application_name": "messplus-notices"}}
"""How the connection is known in `pg_stat_activity`."""
SAY_THE_HEAD = f"SELECT pg_notify('{CHANNEL}', position::text) FROM {log_head.name}"


def notice() -> ColumnElement[Any]:
    """Tell all who listen, with the commit, where the log ends from then on."""
    return func.pg_notify(CHANNEL, cast(log_head.c.position, Text))


class NoNoticeError(Exception):
    """The connection stands, but nothing is heard on it."""


class LogNotices:
    """The notices of a database, heard on a connection of their own. ``told`` gets the position
    where the log ends, of this process's own records too; ``lost`` why nothing is heard for a
    while."""

    def __init__(
        self,
        database: AsyncEngine,
        told: Callable[[int], None],
        lost: Callable[[Exception], None],
    ) -> None:
        self.is_listening = False
        self._url = database.url
        self._told = told
        self._lost = lost
        self._heard = asyncio.Event()

    async def run(self) -> None:
        """Listen until cancelled, on one connection after another."""
        wait = RETRY_SECONDS
        while True:
            try:
                await self._listen()
            except Exception as error:
                if self.is_listening:
                    wait = RETRY_SECONDS
                self.is_listening = False
                self._lost(error)
            await asyncio.sleep(wait)
            wait = min(2.0 * wait, LONGEST_RETRY_SECONDS)

    async def _listen(self) -> None:
        """Listen for as long as notices come. Raises what ended it."""
        engine = create_async_engine(self._url, poolclass=NullPool, connect_args=NAMED)
        ended = asyncio.Event()
        async with asyncio.timeout(ANSWER_SECONDS):
            connection = await engine.connect()
        try:
            driver: Any = (await connection.get_raw_connection()).driver_connection
            driver.add_termination_listener(lambda _: ended.set())
            await driver.add_listener(CHANNEL, self._hear)
            while not ended.is_set():
                await self._check(driver)
                self.is_listening = True
                with suppress(TimeoutError):
                    async with asyncio.timeout(CHECK_SECONDS):
                        await ended.wait()
            raise ConnectionError("the connection that listens was closed")
        finally:
            await connection.close()

    async def _check(self, driver: Any) -> None:
        """Hear where the log ends now: what was said before anybody listened is made up for."""
        self._heard.clear()
        await driver.execute(SAY_THE_HEAD, timeout=ANSWER_SECONDS)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._heard.wait()
        except TimeoutError as error:
            raise NoNoticeError(
                "the database sends no notices (a pooler that shares connections between "
                "transactions drops them): connect to it directly"
            ) from error

    def _hear(self, connection: Any, process: int, channel: str, said: str) -> None:
        self._heard.set()
        self._told(int(said))


# When to look.

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
