"""The learner: appends records to the log, and folds the log into the state that is decided from.

A database has one learner, that of its brain. Others may write to the log too, such as commands.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass

from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.backlog import Arrivals, Unlogged
from litellm_messplus.core.engine import Engine
from litellm_messplus.core.entries import Entry
from litellm_messplus.records import Record, RequestRecord
from litellm_messplus.restore import fold, keep
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.store import hours, log
from litellm_messplus.store.entries import EVERY_KIND, Kinds, RecentRequests, read_entries

FOLLOW_SECONDS = 1.0
"""Seconds between two looks for records of other writers."""
TURN_SECONDS = 0.002
"""The longest time for which folding blocks the event loop before requests get their turn."""
SNAPSHOT_EVERY = 10_000
"""Records between two snapshots of about a megabyte each: a start folds the records after the
newest one, some 2,500 a second."""

SUM_SECONDS = 300.0
"""Seconds between two movements of `log_head.summed`, to where the log ended at the one before: by
then most requests have ended and are judged, and need not be taken out again."""

Also = Callable[[AsyncConnection], Awaitable[None]]
"""What a transaction does in addition to appending records."""


@dataclass(eq=False, repr=False)
class Learner:
    """The writer of the log. The state of each engine is the fold of the log up to ``position``.

    ``arrivals`` is notified of ids that are in the log; ``snapshot_position`` is that of the newest
    snapshot.
    """

    database: AsyncEngine
    engines: Mapping[str, Engine]
    counters: Counters
    _: KW_ONLY
    snapshot_every: int = SNAPSHOT_EVERY
    position: int = 0

    def __post_init__(self) -> None:
        self.look_seconds, self.arrivals = FOLLOW_SECONDS, Arrivals()
        self.snapshot_position = self._to_sum = self.position
        self._summed_at = -math.inf
        self._recent = RecentRequests()
        self._unlogged = Unlogged()
        self._turn_ends = 0.0

    def begin_at(self, position: int) -> None:
        """Begin at a position, up to which the engines were restored after this was made."""
        self.position = self.snapshot_position = self._to_sum = position

    async def close(self, *, is_written: bool) -> None:
        """If everything is written, save snapshots."""
        if is_written:
            await self.save_snapshots()

    async def append(
        self, records: Sequence[Record], *, is_durable: bool = False, also: Also | None = None
    ) -> log.Appended:
        """Append records to the log in one transaction, which ``also`` takes part in.

        Raises UnloggedRequestError if one is about a dropped request, and the errors of
        `log.append`; then nothing is written.
        """
        self._unlogged.check(records)
        return await log.append(self.database, records, is_durable=is_durable, also=also)

    async def is_logged(self, record: Record, error: Exception) -> bool:
        """Tell whether a record was refused only because it is in the log already: the answer to a
        commit may have been lost."""
        return isinstance(error, IntegrityError) and await log.is_logged(self.database, record)

    def dropped(self, record: Record) -> None:
        """Note a record that is never written."""
        if isinstance(record, RequestRecord):
            self._unlogged.add(record)
            engine = self.engines.get(record.zoo)
            if engine is not None:
                engine.forget(record.request_id)

    async def fold_written(self, records: Sequence[Record], appended: log.Appended) -> None:
        """Fold in the records just appended, and those of other writers before them."""
        entries = self._recent.entries(records, appended.before)
        is_next = appended.before == self.position  # else others wrote in between
        try:
            if is_next and entries is not None:
                await self._fold_known(entries, appended.last)
            elif is_next:
                await self._fold(appended.last, {type(each) for each in records}, is_own=True)
            else:
                await self._fold(appended.last)
        finally:  # they are committed: what was not read back is folded in later
            self.arrivals.came(records)
        await self._do_what_is_due()

    async def look(self) -> None:
        """Read the end of the log, and fold in what other writers wrote."""
        await self._fold(await log.head(self.database))
        await self._do_what_is_due()

    async def _fold(self, upto: int, kinds: Kinds = EVERY_KIND, *, is_own: bool = False) -> None:
        """Read the log up to a position, and fold it in. Only this process wrote it if it
        ``is_own``."""
        self._turn_ends = time.perf_counter() + TURN_SECONDS
        async for entry in read_entries(self.database, self.position, upto, kinds):
            if not is_own:
                self._recent.forget(entry)
            await self._apply(entry)
        self.position = max(self.position, upto)

    async def _fold_known(self, entries: Sequence[Entry], upto: int) -> None:
        """Fold in entries that this process wrote, up to a position, without reading them back."""
        self._turn_ends = time.perf_counter() + TURN_SECONDS
        for entry in entries:
            await self._apply(entry)
        self.position = upto

    async def _apply(self, entry: Entry) -> None:
        """Fold one entry in, and yield to the event loop at intervals."""
        if not fold(self.engines, entry):
            self.counters.add("fold_failures")
        self.position = entry.position
        if time.perf_counter() > self._turn_ends:
            await asyncio.sleep(0)
            self._turn_ends = time.perf_counter() + TURN_SECONDS

    async def _do_what_is_due(self) -> None:
        """Save snapshots every so many records, and move the sums on every so many seconds."""
        if self.position - self.snapshot_position >= self.snapshot_every:
            await self.save_snapshots()
        if time.monotonic() - self._summed_at > SUM_SECONDS:
            await hours.settle(self.database, self._to_sum)
            self._summed_at, self._to_sum = time.monotonic(), self.position

    async def save_snapshots(self) -> None:
        """Save a snapshot of every zoo, as of now."""
        position = self.position
        for engine in self.engines.values():
            await keep(self.database, engine, position)
        self.snapshot_position = position
