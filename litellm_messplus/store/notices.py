"""When to read what other workers wrote to the log: when Postgres notifies, else at intervals.

Postgres reports appended records at once, by LISTEN and NOTIFY. The appending transaction sends the
notice, so it arrives when the records can be read, and only then. Notices alone are not enough:
those sent while a connection is lost are lost too.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Text, cast, func
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.tasks import Tasks
from litellm_messplus.store.tables import log_head

CHANNEL = "messplus_log"
CHECK_SECONDS = 30.0
"""Seconds between two checks that notices still arrive: a connection may be lost silently."""
ANSWER_SECONDS = 5.0
"""The most seconds for connecting, and for a notice to come back."""
RETRY_SECONDS = 0.5
LONGEST_RETRY_SECONDS = 30.0
"""Seconds between two attempts to connect: doubled after each failure, up to this."""
NAMED = {"server_settings": {"application_name": "messplus-notices"}}
"""The connection's name in `pg_stat_activity`."""
NOTIFY_HEAD = f"SELECT pg_notify('{{channel}}', position::text) FROM {log_head.name}"


def notice() -> ColumnElement[Any]:
    """Notify all listeners, with the commit, of the new end of the log."""
    return func.pg_notify(CHANNEL, cast(log_head.c.position, Text))


class NoNoticeError(Exception):
    """The connection is open, but no notice arrives on it."""


@dataclass(eq=False, repr=False)
class LogNotices:
    """The notices of a database, received on a dedicated connection. ``notified`` is called with
    the number in each, on the log's ``channel`` the position of its end, also after this process's
    own records; ``lost`` with the error, when notices stop."""

    database: AsyncEngine
    notified: Callable[[int], None]
    lost: Callable[[Exception], None]
    channel: str = CHANNEL

    def __post_init__(self) -> None:
        self.is_listening = False
        self._received = asyncio.Event()

    async def run(self) -> None:
        """Listen until cancelled, reconnecting after each failure."""
        wait = RETRY_SECONDS
        while True:
            try:
                await self._listen()
            except Exception as error:
                if self.is_listening:
                    wait = RETRY_SECONDS
                self.is_listening = False
                self.lost(error)
            await asyncio.sleep(wait)
            wait = min(2.0 * wait, LONGEST_RETRY_SECONDS)

    async def _listen(self) -> None:
        """Listen while notices arrive. Raises the error that ended it."""
        engine = create_async_engine(self.database.url, poolclass=NullPool, connect_args=NAMED)
        ended = asyncio.Event()
        async with asyncio.timeout(ANSWER_SECONDS):
            connection = await engine.connect()
        try:
            driver: Any = (await connection.get_raw_connection()).driver_connection
            driver.add_termination_listener(lambda _: ended.set())
            await driver.add_listener(self.channel, self._receive)
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
        """Have a notice sent, of the log's end, which makes up for those sent before this
        listened."""
        self._received.clear()
        statement = NOTIFY_HEAD.format(channel=self.channel)
        await driver.execute(statement, timeout=ANSWER_SECONDS)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._received.wait()
        except TimeoutError as error:
            raise NoNoticeError(
                "the database sends no notices (a pooler that shares connections between "
                "transactions drops them): connect to it directly"
            ) from error

    def _receive(self, connection: Any, process: int, channel: str, payload: str) -> None:
        self._received.set()
        self.notified(int(payload))


# When to read the log.

FOLLOW_SECONDS = 1.0
"""Seconds between two readings without notices: on SQLite, and while the notices are lost."""
SELDOM_SECONDS = 5.0
"""Seconds between two readings while notices arrive."""
GAP_SECONDS = 0.1
"""The least seconds between two readings caused by notices: each takes some milliseconds of the
event loop, and a busy worker commits up to a hundred times a second."""


class Following:
    """The wait for records of other workers, one per journal, which ``wake`` wakes. ``upto`` is the
    newest position notified."""

    def __init__(self, database: AsyncEngine, counters: Counters, wake: Callable[[], None]) -> None:
        self.upto = 0
        self._counters = counters
        self._wake = wake
        self._may_look_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._tasks = Tasks()
        self._notices: LogNotices | None = None
        if database.dialect.name == "postgresql":
            self._notices = LogNotices(database, self._notified, self._lost)

    @property
    def seconds(self) -> float:
        """The seconds to wait before reading without a notice."""
        is_notified = self._notices is not None and self._notices.is_listening
        return SELDOM_SECONDS if is_notified else FOLLOW_SECONDS

    def start(self) -> None:
        """Start listening, in the running event loop."""
        if self._notices is not None:
            self._tasks.start(self._notices.run(), "notices")

    async def close(self) -> None:
        """Stop listening."""
        if self._timer is not None:
            self._timer.cancel()
        await self._tasks.close()

    def looked(self) -> None:
        """Let some time pass before the next reading, however many notices arrive."""
        self._may_look_at = asyncio.get_running_loop().time() + GAP_SECONDS

    def _notified(self, position: int) -> None:
        self.upto = max(self.upto, position)
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(self._may_look_at, loop.time()), self._due)

    def _due(self) -> None:
        self._timer = None
        self.looked()  # from now on: the reading itself takes a while
        self._wake()

    def _lost(self, error: Exception) -> None:
        self._counters.failure(
            "log_notices_lost", f"records of other workers are noticed late: {error!r}"
        )
