"""The lines read from the log: those of other workers, and those from before a start."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.brain.holds import Holds
from litellm_messplus.brain.pinboard import Pinboard, pinboard_path
from litellm_messplus.core.engine import Engine
from litellm_messplus.core.line import LoggedTurn, Warm, warm_after
from litellm_messplus.core.lines import UNUSED_SECONDS
from litellm_messplus.costs.price import Usage
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.tasks import Tasks
from litellm_messplus.store.answered import LoggedLine, logged_lines, read_conversation_key
from litellm_messplus.store.log import head

LOOKED_BACK = 20_000
"""Positions in the log that are read back at a start."""
AT_ONCE = 50
"""Lines that are learned per turn of the event loop, which also serves requests."""
RETRY_SECONDS = 5.0
"""Pause before a database that does not answer is queried again."""


@dataclass(eq=False, repr=False)
class LineLog:
    """The reader of lines from the log, in its own task: no request waits for it. The key
    of the digests is read from the database unless `begin` gave it."""

    database: AsyncEngine
    holds: Holds
    engines: Mapping[str, Engine]
    counters: Counters

    def __post_init__(self) -> None:
        self._upto = 0
        self._read = 0
        self._has_more = asyncio.Event()

    def begin(self, key: bytes) -> None:
        """Start to hold before the first request, with the key that was read at the start."""
        if self.holds.is_on:
            self.holds.begin(key, self._board(key))

    def _board(self, key: bytes) -> Pinboard | None:
        """Build the pinboard of this machine's workers; None if there is no folder for it."""
        try:
            return Pinboard(pinboard_path(self.database.url, key), key)
        except OSError as error:
            self.counters.failure("lines_unshared", f"workers share no file: {error}")
            return None

    def start(self, tasks: Tasks) -> None:
        """Start reading, in the running event loop, if any zoo holds its conversations."""
        if self.holds.is_on:
            tasks.start(self._run(), "lines")

    def followed(self, position: int) -> None:
        """Note that the log has records of other workers up to a position."""
        self._upto = max(self._upto, position)
        self._has_more.set()

    async def _run(self) -> None:
        await self._begun()
        while True:
            try:
                if self._upto > self._read:
                    await self._learn(self._upto)
                    continue
                await self._has_more.wait()
                self._has_more.clear()
            except Exception:
                self.counters.failure("lines_unread", "lines of other workers are not known")
                await asyncio.sleep(RETRY_SECONDS)

    async def _begun(self) -> None:
        """Find the position from which the log is read, and start to hold unless `begin` did."""
        while True:
            try:
                if self.holds.lines is None:
                    self.begin(await read_conversation_key(self.database))
                self._upto = max(self._upto, await head(self.database))
                self._read = max(self._upto - LOOKED_BACK, 0)
                return
            except Exception:
                self.counters.failure("lines_unread", "the database tells of no conversation")
                await asyncio.sleep(RETRY_SECONDS)

    async def _learn(self, upto: int) -> None:
        lines = self.holds.lines
        if lines is None:
            return
        now, today = time.monotonic(), datetime.now(UTC)
        after = max(self._read, upto - LOOKED_BACK)
        for number, row in enumerate(await logged_lines(self.database, after, upto), 1):
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)
            age = (today - row.ended_at).total_seconds()
            if age <= UNUSED_SECONDS:
                lines.learn(self._logged_turn(row, now - age), now - age)
        self._read = upto

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
