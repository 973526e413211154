"""The lines from before a start, read from the log."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.brain.holds import Holds
from litellm_messplus.core.engine import Engine
from litellm_messplus.core.line import LoggedTurn, Warm, warm_after
from litellm_messplus.core.lines import UNUSED_SECONDS
from litellm_messplus.costs.price import Usage
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.tasks import Tasks
from litellm_messplus.store.answered import LoggedLine, logged_lines
from litellm_messplus.store.log import head

LOOKED_BACK = 20_000
"""Positions in the log that are read back at a start."""
AT_ONCE = 50
"""Lines that are learned per turn of the event loop, which also serves requests."""
RETRY_SECONDS = 5.0
"""Pause before a database that does not answer is queried again."""


@dataclass(eq=False, repr=False)
class LineLog:
    """The reader of lines from the log, in its own task: no request waits for it."""

    database: AsyncEngine
    holds: Holds
    engines: Mapping[str, Engine]
    counters: Counters

    def begin(self, key: bytes) -> None:
        """Start to hold before the first request, with the key that was read at the start."""
        if self.holds.is_on:
            self.holds.begin(key)

    def start(self, tasks: Tasks) -> None:
        """Start reading, in the running event loop, if any zoo holds its conversations."""
        if self.holds.is_on:
            tasks.start(self._run(), "lines")

    async def _run(self) -> None:
        while True:
            with self.counters.tolerated("lines_unread", "lines from before are not known"):
                await self._learn(await head(self.database))
                return
            await asyncio.sleep(RETRY_SECONDS)

    async def _learn(self, upto: int) -> None:
        lines = self.holds.lines
        if lines is None:
            return
        now, today = time.monotonic(), datetime.now(UTC)
        after = max(upto - LOOKED_BACK, 0)
        for number, row in enumerate(await logged_lines(self.database, after, upto), 1):
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)
            age = (today - row.ended_at).total_seconds()
            if age <= UNUSED_SECONDS:
                lines.learn(self._logged_turn(row, now - age), now - age)

    def _logged_turn(self, row: LoggedLine, at: float) -> LoggedTurn:
        return LoggedTurn(
            row.line,
            row.conversation,
            bytes.fromhex(row.prefix),
            row.turn,
            row.candidate,
            row.deployment_id,
            row.prompt_characters,
            float(row.prompt_tokens or 0),
            self._warm(row, at),
        )

    def _warm(self, row: LoggedLine, at: float) -> Warm | None:
        engine = self.engines.get(row.zoo)
        price = None if engine is None else engine.zoo.prices.get(row.candidate)
        if price is None or row.prompt_tokens is None or row.is_cache_hit:
            return None
        read, written = row.cached_tokens or 0, row.written_tokens or 0
        usage = Usage(row.prompt_tokens, 0, read, written_tokens=written)
        return warm_after(usage, price, row.prompt_characters, at)
