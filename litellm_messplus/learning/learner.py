"""The learner: appends records to the log, and folds the log into the state that is decided from.

A database has one learner. It runs in the process that serves (then the journal hands it records
by reference), or in a process of its own (`learning/process.py`), which takes them from the inbox.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass

from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.backlog import Arrivals, Unlogged
from litellm_messplus.deciding.decider import Engine, fold
from litellm_messplus.records import Record, RequestRecord
from litellm_messplus.restore import keep, restore
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.state.entries import Entry
from litellm_messplus.store import log, snapshots
from litellm_messplus.store.entries import EVERY_KIND, Kinds, RecentRequests, read_entries
from litellm_messplus.store.history import arrived_ids
from litellm_messplus.store.notices import Following

TURN_SECONDS = 0.002
"""The longest time for which folding blocks the event loop before requests get their turn."""
SNAPSHOT_EVERY = 10_000
"""Records between two snapshots of about a megabyte each: a start folds the records after the
newest one, some 2,500 a second."""

Also = Callable[[AsyncConnection], Awaitable[None]]
"""What a transaction does in addition to appending records."""


def _nothing() -> None:
    """Do nothing: nothing waits before the start."""


@dataclass(eq=False, repr=False)
class Learner:
    """The writer of the log. The state of each engine is the fold of the log up to ``position``.

    ``arrivals`` is notified of ids read from the log, ``followed`` is called with the position up
    to which records of other writers are folded in; ``snapshot_position`` is that of the newest
    snapshot.
    """

    database: AsyncEngine
    engines: Mapping[str, Engine]
    counters: Counters
    _: KW_ONLY
    followed: Callable[[int], None] | None = None
    snapshot_every: int = SNAPSHOT_EVERY
    position: int = 0

    def __post_init__(self) -> None:
        self.arrivals = Arrivals()
        self.has_state = asyncio.Event()
        self.has_state.set()
        self.snapshot_position = self.position
        self._log_start = 0
        self._recent = RecentRequests()
        self._unlogged = Unlogged()
        self._turn_ends = 0.0
        self._wake: Callable[[], None] = _nothing
        self._following = Following(self.database, self.counters, lambda: self._wake())

    def begin_at(self, position: int) -> None:
        """Begin at a position, up to which the engines were restored after this was made."""
        self.position = self.snapshot_position = position

    def start(self, wake: Callable[[], None]) -> None:
        """Begin to listen for records of other writers, in the running event loop; ``wake`` is
        called when there are some."""
        self._wake = wake
        self._following.start()

    @property
    def state_seconds(self) -> float:
        """The age of the state, in seconds: 0, since it is in this process."""
        return 0.0

    @property
    def look_seconds(self) -> float:
        """The longest time between two readings of the log's end, in seconds."""
        return self._following.seconds

    async def close(self, *, is_written: bool) -> None:
        """Stop listening; if everything is written, save snapshots."""
        await self._following.close()
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
                await self._fold(appended.last, {type(record) for record in records})
            elif not await self._begun_anew(appended.start):
                await self._follow(appended.last)
        finally:  # they are committed: what was not read back is folded in later
            self.arrivals.came(records)
        await self._save_due_snapshots()

    async def settled(self) -> None:
        """Return when all that was written is folded in: at once, since `fold_written` is awaited
        with each batch."""

    async def look(self) -> None:
        """Read the end of the log, and fold in what other writers wrote."""
        ends = await log.ends(self.database)
        if not await self._begun_anew(ends.start):
            await self._follow(ends.head)
        await self._save_due_snapshots()

    async def look_up_to_notice(self) -> None:
        """Fold in what notices have announced. Notices of own records are ignored."""
        if self._following.upto > self.position:
            await self._follow(self._following.upto)
            await self._save_due_snapshots()

    async def _follow(self, upto: int) -> None:
        """Read the log, with other writers' records, up to a position, and call ``followed``."""
        is_new = upto > self.position
        await self._fold(upto)
        if is_new and self.followed is not None:
            self.followed(self.position)

    async def _begun_anew(self, start: int) -> bool:
        """Tell whether the engines had to be restored, because records that they had not read were
        pruned: this happens to a worker that was away for longer than a prune takes."""
        if start == self._log_start:
            return False
        bases = await snapshots.base_positions(self.database)
        is_behind = any(bases.get(name, 0) > self.position for name in self.engines)
        if is_behind:
            self.counters.failure(
                "restored_after_pruning", "the log was pruned beyond what this worker had read"
            )
            self.position = await restore(self.database, self.engines)
        self._log_start = start
        return is_behind

    async def _fold(self, upto: int, kinds: Kinds = EVERY_KIND) -> None:
        """Read the log up to a position, and fold it in."""
        before = self.position
        self._turn_ends = time.perf_counter() + TURN_SECONDS
        async for entry in read_entries(self.database, self.position, upto, kinds):
            self._recent.saw(entry)
            await self._apply(entry)
        self._following.looked()
        if expected := self.arrivals.expected:  # records of other workers do not notify
            self.arrivals.arrived(await arrived_ids(self.database, expected, before, upto))
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

    async def _save_due_snapshots(self) -> None:
        if self.position - self.snapshot_position >= self.snapshot_every:
            await self.save_snapshots()

    async def save_snapshots(self) -> None:
        """Save a snapshot of every zoo, as of now."""
        position = self.position
        for engine in self.engines.values():
            await keep(self.database, engine, position)
        self.snapshot_position = position
