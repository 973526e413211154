"""The journal: writes records in batches, and folds into the engines what has become durable."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.arrivals import Arrivals
from litellm_messplus.engine import Engine, fold
from litellm_messplus.errors import JournalFullError
from litellm_messplus.following import Following
from litellm_messplus.records import Record, RequestRecord, without_text
from litellm_messplus.restore import keep, restore
from litellm_messplus.runtime import Counters
from litellm_messplus.state.entries import Entry
from litellm_messplus.store import base, log
from litellm_messplus.store.database import DatabaseFileGoneError, is_the_records_fault
from litellm_messplus.store.entries import EVERY_KIND, Kinds, read_entries
from litellm_messplus.store.history import arrived_ids
from litellm_messplus.store.log import Numbering
from litellm_messplus.store.recent_requests import RecentRequests

logger = logging.getLogger(__name__)

BATCH = 500
"""Records written in one transaction."""
LONGEST_BACKLOG = 100_000
"""Records held while the database is away; what comes on top is dropped and counted."""
RETRY_SECONDS = 0.5
TURN_SECONDS = 0.002
"""How long folding keeps the event loop before requests get their turn."""
CLOSE_SECONDS = 10.0
"""How long a stop waits for a database that does not answer."""


@dataclass(slots=True)
class _Waiting:
    """A record in the backlog, and what to resolve when it is written."""

    record: Record
    written: asyncio.Future[None] | None = None
    is_durable: bool = False

    def resolve(self) -> None:
        if self.written is not None and not self.written.done():
            self.written.set_result(None)

    def refuse(self, error: Exception) -> None:
        if self.written is not None and not self.written.done():
            self.written.set_exception(error)


class Journal:
    """The only writer of this process. An engine's state is the fold up to ``position``;
    ``arrivals`` are told of what it has written and folded in. Where ``store_text`` is false, no
    words of a user go past its door, whoever hands them over; ``saw`` is told of what did.
    ``followed`` is told up to where it has folded in what others wrote too."""

    def __init__(
        self,
        database: AsyncEngine,
        engines: Mapping[str, Engine],
        counters: Counters,
        *,
        store_text: bool,
        saw: Callable[[Record], None] | None = None,
        followed: Callable[[int], None] | None = None,
        flush_seconds: float,
        snapshot_every: int,
        position: int,
    ) -> None:
        self.position = position
        self.arrivals = Arrivals()
        self._database = database
        self._engines = engines
        self._counters = counters
        self._store_text = store_text
        self._saw = saw
        self._followed = followed
        self._flush_seconds = flush_seconds
        self._snapshot_every = snapshot_every
        self._snapshot_position = position
        self._log_start = 0
        self._recent = RecentRequests()
        self._numbering = Numbering()
        self._turn_ends = 0.0
        self._backlog: deque[_Waiting] = deque()
        self._wake = asyncio.Event()
        self._is_due = False
        self._following = Following(database, counters, self._wake.set)
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._closing = False

    def begin_at(self, position: int) -> None:
        """Begin at a position: the engines have been restored up to there, since the journal was
        made."""
        self.position = self._snapshot_position = position

    def start(self) -> None:
        """Begin writing, in the running event loop."""
        self._task = asyncio.create_task(self._run(), name="messplus-journal")
        self._following.start()

    def follow(self) -> None:
        """Have the log looked at soon: something was written past this journal."""
        self._write_now()

    def write(self, record: Record) -> None:
        """Hand over a record; it is written within the flush interval."""
        self._add(record)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(
                self._flush_seconds, self._write_now
            )

    async def write_durably(self, record: Record) -> None:
        """Return when the record, and all handed over before, are committed and folded in.

        Raises sqlalchemy.exc.SQLAlchemyError where the database refuses it, and
        DatabaseFileGoneError where its file was deleted.
        """
        written = asyncio.get_running_loop().create_future()
        self._add(record, written)
        self._write_now()
        await asyncio.shield(written)

    async def flush(self) -> None:
        """Return when everything handed over so far is written."""
        if not self._backlog:
            return
        last = self._backlog[-1]
        if last.written is None:
            last.written = asyncio.get_running_loop().create_future()
        self._write_now()
        await asyncio.shield(last.written)

    async def close(self) -> None:
        """Write everything, take a snapshot, and stop; one that was never started stops at once."""
        self._closing = True
        self._write_now()
        if self._task is None:
            return
        await self._following.close()
        try:
            await asyncio.wait_for(self._task, CLOSE_SECONDS)
        except TimeoutError:
            logger.error("closed with %d records unwritten", len(self._backlog))
            return
        try:
            await self._save_snapshots()
        except SQLAlchemyError:  # the log is written; a start will fold it
            self._counters.failure("snapshot_failures", "no snapshot was taken at the stop")

    def _add(self, record: Record, written: asyncio.Future[None] | None = None) -> None:
        """Queue a record, as it may be kept. Whoever hands over a future waits for the disk."""
        kept = record if self._store_text else without_text(record)
        waiting = _Waiting(kept, written, is_durable=written is not None)
        if len(self._backlog) >= LONGEST_BACKLOG:
            self._drop(waiting, JournalFullError(f"{LONGEST_BACKLOG} records are waiting"))
        else:
            self._backlog.append(waiting)
            if self._saw is not None:
                self._saw(kept)

    def _write_now(self) -> None:
        self._is_due = True
        self._wake.set()

    async def _run(self) -> None:
        while self._backlog or not self._closing:
            is_told = await self._woken()
            try:
                if is_told:
                    await self._follow_to(self._following.upto)
                else:
                    await self._flush()
            except DatabaseFileGoneError as error:
                self._refuse_durable(error)
                await asyncio.sleep(RETRY_SECONDS)
                self._write_now()
            except Exception:
                waiting = len(self._backlog)
                self._counters.failure(
                    "journal_failures", f"the log cannot be written; {waiting} records wait"
                )
                await asyncio.sleep(RETRY_SECONDS)
                self._write_now()

    async def _woken(self) -> bool:
        """Wait for something to do, and tell whether that is no more than what others wrote.

        A notice writes nothing: records that wait keep their flush interval.
        """
        is_told = False
        with suppress(TimeoutError):
            # Not wait_for: Python 3.11's swallows a cancel that comes as the event is set.
            async with asyncio.timeout(self._following.seconds):
                await self._wake.wait()
            is_told = not self._is_due
        self._wake.clear()
        if not is_told:
            self._is_due, self._timer = False, None
        return is_told

    async def _follow_to(self, upto: int) -> None:
        """Fold in what others wrote. Of its own records, too, a worker is told: they are in."""
        if upto > self.position:
            await self._follow(upto)
            await self._save_due_snapshots()

    async def _follow(self, upto: int) -> None:
        """Read the log up to a position, where others wrote, and tell of it."""
        is_new = upto > self.position
        await self._fold(upto)
        if is_new and self._followed is not None:
            self._followed(self.position)

    def _refuse_durable(self, error: DatabaseFileGoneError) -> None:
        """Refuse the durable records: nobody waits for a file that may never come back; what was
        handed over is kept for it."""
        self._counters.failure("database_file_gone", str(error))
        for waiting in self._backlog:
            if waiting.is_durable:
                waiting.refuse(error)

    async def _flush(self) -> None:
        """Write what waits now. What comes in meanwhile has its own flush interval: written at
        once, in transactions of a record or two, it cost the proxy a quarter of its throughput."""
        due = len(self._backlog)
        if due == 0:
            ends = await log.ends(self._database)
            if not await self._begun_anew(ends.start):
                await self._follow(ends.head)
        while due > 0:
            size = min(BATCH, due)
            await self._write_batch(size)
            due -= size
        await self._save_due_snapshots()

    async def _write_batch(self, size: int) -> None:
        """Write one transaction. What it holds stays in the backlog until it is committed."""
        batch = [self._backlog[index] for index in range(size)]
        try:
            appended = await self._append(batch)
        except Exception as error:
            if not is_the_records_fault(error):
                raise
            await self._write_singly(batch)
            return
        for _ in batch:
            self._backlog.popleft()
        await self._fold_written(batch, appended)

    async def _write_singly(self, batch: Sequence[_Waiting]) -> None:
        """Write records one by one: one that the database will never take must not hold up the
        others."""
        for waiting in batch:
            try:
                appended = await self._append([waiting])
            except Exception as error:
                if not is_the_records_fault(error):
                    raise
                self._backlog.popleft()
                self._drop(waiting, error)
                continue
            self._backlog.popleft()
            await self._fold_written([waiting], appended)

    async def _append(self, batch: Sequence[_Waiting]) -> log.Appended:
        return await log.append(
            self._database,
            [waiting.record for waiting in batch],
            is_durable=any(waiting.is_durable for waiting in batch),
            numbering=self._numbering,
        )

    async def _fold_written(self, batch: Sequence[_Waiting], appended: log.Appended) -> None:
        records = [waiting.record for waiting in batch]
        entries = self._recent.entries(records, appended.before)
        is_next = appended.before == self.position  # else others wrote between, who knows what
        try:
            if is_next and entries is not None:
                await self._fold_known(entries, appended.last)
            elif is_next:
                await self._fold(appended.last, {type(record) for record in records})
            elif not await self._begun_anew(appended.start):
                await self._follow(appended.last)
        finally:  # committed is committed: what could not be read back now is folded in later
            for waiting in batch:
                waiting.resolve()
            self.arrivals.came(records)

    def _drop(self, waiting: _Waiting, error: Exception) -> None:
        record = waiting.record
        self._counters.add("records_dropped")
        # Named, not shown: it may hold a user's words.
        logger.error("dropped a %s that cannot be written: %s", type(record).__name__, error)
        if isinstance(record, RequestRecord):
            self._engines[record.zoo].forget(record.request_id)
        waiting.refuse(error)

    async def _begun_anew(self, start: int) -> bool:
        """Tell whether the engines had to be restored: the log starts later now, and what they
        had yet to read of it is gone. A worker that was away for longer than a prune takes meets
        that."""
        if start == self._log_start:
            return False
        bases = await base.positions(self._database)
        is_behind = any(bases.get(name, 0) > self.position for name in self._engines)
        if is_behind:
            self._counters.failure(
                "restored_after_pruning", "the log was pruned beyond what this worker had read"
            )
            self.position = await restore(self._database, self._engines)
        self._log_start = start
        return is_behind

    async def _fold(self, upto: int, kinds: Kinds = EVERY_KIND) -> None:
        """Read the log up to a position, and fold it in."""
        before = self.position
        self._turn_ends = time.perf_counter() + TURN_SECONDS
        async for entry in read_entries(self._database, self.position, upto, kinds):
            self._recent.saw(entry)
            await self._apply(entry)
        self._following.looked()
        if expected := self.arrivals.expected:  # of other workers: nobody here is told of them
            self.arrivals.arrived(await arrived_ids(self._database, expected, before, upto))
        self.position = max(self.position, upto)

    async def _fold_known(self, entries: Sequence[Entry], upto: int) -> None:
        """Fold in what was written, up to a position, without reading it back."""
        self._turn_ends = time.perf_counter() + TURN_SECONDS
        for entry in entries:
            await self._apply(entry)
        self.position = upto

    async def _apply(self, entry: Entry) -> None:
        """Fold one entry in; requests get their turn now and then."""
        if not fold(self._engines, entry):
            self._counters.add("fold_failures")
        self.position = entry.position
        if time.perf_counter() > self._turn_ends:
            await asyncio.sleep(0)
            self._turn_ends = time.perf_counter() + TURN_SECONDS

    async def _save_due_snapshots(self) -> None:
        if self.position - self._snapshot_position >= self._snapshot_every:
            await self._save_snapshots()

    async def _save_snapshots(self) -> None:
        """Save a snapshot of every zoo, as of now."""
        position = self.position
        for engine in self._engines.values():
            await keep(self._database, engine, position)
        self._snapshot_position = position
