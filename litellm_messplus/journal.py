"""The journal: writes records in batches, and folds the committed ones into the engines."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.backlog import LONGEST, Arrivals, Backlog, Waiting
from litellm_messplus.deciding.decider import Engine, fold
from litellm_messplus.records import Record, RequestRecord
from litellm_messplus.restore import keep, restore
from litellm_messplus.rows import without_words
from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.errors import JournalFullError, UnloggedRequestError, UnsettledError
from litellm_messplus.state.entries import Entry
from litellm_messplus.store import log, snapshots
from litellm_messplus.store.database import DatabaseFileGoneError, is_the_records_fault
from litellm_messplus.store.entries import EVERY_KIND, Kinds, RecentRequests, read_entries
from litellm_messplus.store.history import arrived_ids
from litellm_messplus.store.notices import Following

logger = logging.getLogger("litellm_messplus")

RETRY_SECONDS = 0.5
SETTLE_SECONDS = 10.0
"""How long a caller that gave a record up waits for the transaction that may be writing it."""
TURN_SECONDS = 0.002
"""The longest time for which folding blocks the event loop before requests get their turn."""
SNAPSHOT_EVERY = 10_000
"""Records between two snapshots of about a megabyte each: a start folds the records after the
newest one, some 2,500 a second."""
REMEMBERED = 4096
"""The number of newest dropped requests remembered: as many as may be open."""
CLOSE_SECONDS = 10.0
"""The longest wait of a stop for a database that does not answer."""


class Journal:
    """The only writer of this process. An engine's state is the fold up to ``position``;
    ``arrivals`` is notified of records written and folded in. If ``store_text`` is false, texts of
    users are dropped from every record; ``saw`` is called with each accepted record, ``followed``
    with the position up to which records of other workers are folded in. It ``is_failing`` if the
    last attempt to write or read the database failed."""

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
        snapshot_every: int = SNAPSHOT_EVERY,
        position: int,
    ) -> None:
        self.position = position
        self.is_failing = False
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
        self._turn_ends = 0.0
        self._backlog = Backlog()
        self._unlogged: Bounded[str, None] = Bounded(REMEMBERED)
        self._wake = asyncio.Event()
        self._is_due = False
        self._following = Following(database, counters, self._wake.set)
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._closing = False

    def begin_at(self, position: int) -> None:
        """Begin at a position, up to which the engines were restored after the journal was made."""
        self.position = self._snapshot_position = position

    def start(self) -> None:
        """Start writing, in the running event loop."""
        self._task = asyncio.create_task(self._run(), name="messplus-journal")
        self._following.start()

    def follow(self) -> None:
        """Have the log read soon: something was written without this journal."""
        self._write_now()

    def write(self, record: Record) -> None:
        """Queue a record; it is written within the flush interval."""
        self._add(record)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(
                self._flush_seconds, self._write_now
            )

    async def write_durably(self, record: Record, patience: float | None = None) -> None:
        """Return when the record, and all earlier ones about its request, are committed and folded
        in; after ``patience`` seconds, as soon as it is committed.

        If it is not committed by then, it is withdrawn: raises NotWrittenError if it never will be
        written, and UnsettledError if a transaction that writes it does not end. Raises
        sqlalchemy.exc.SQLAlchemyError if the database refuses it, and DatabaseFileGoneError if its
        file was deleted.
        """
        written = asyncio.get_running_loop().create_future()
        waiting = self._add(record, written)
        self._write_now()
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await asyncio.shield(written)
        if waiting.is_committed:
            return
        self._backlog.give_up(waiting)
        with suppress(TimeoutError):
            async with asyncio.timeout(SETTLE_SECONDS):
                await asyncio.shield(written)
        if not waiting.is_committed:
            raise UnsettledError("a transaction that writes it does not end")

    async def flush(self) -> None:
        """Return when every record queued so far is written."""
        flushed = self._backlog.flushed()
        if not flushed.done():
            self._write_now()
        await flushed

    async def close(self) -> None:
        """Write everything, take a snapshot, and stop; if it was never started, stop at once."""
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
        except SQLAlchemyError:  # the log is written: the next start folds it
            self._counters.failure("snapshot_failures", "no snapshot was taken at the stop")

    def _add(self, record: Record, written: asyncio.Future[None] | None = None) -> Waiting:
        """Queue a record, without texts not to be stored. With a future, the commit waits for
        disk."""
        kept, is_full = record if self._store_text else without_words(record), self._backlog.is_full
        waiting = self._backlog.add(kept, written)
        if is_full:
            self._drop(waiting, JournalFullError(f"{LONGEST} records are waiting"))
        elif self._saw is not None:
            self._saw(kept)
        return waiting

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
                self.is_failing = False
            except DatabaseFileGoneError as error:
                self.is_failing = True
                self._refuse_durable(error)
                await asyncio.sleep(RETRY_SECONDS)
                self._write_now()
            except Exception:
                self.is_failing = True
                waiting = len(self._backlog)
                self._counters.failure(
                    "journal_failures", f"the log cannot be written; {waiting} records wait"
                )
                await asyncio.sleep(RETRY_SECONDS)
                self._write_now()

    async def _woken(self) -> bool:
        """Wait for work, and tell whether it is only records of other workers.

        A notice causes no write: waiting records keep their flush interval.
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
        """Fold in records of other workers. Notices of its own records are ignored."""
        if upto > self.position:
            await self._follow(upto)
            await self._save_due_snapshots()

    async def _follow(self, upto: int) -> None:
        """Read the log, with other workers' records, up to a position, and call ``followed``."""
        is_new = upto > self.position
        await self._fold(upto)
        if is_new and self._followed is not None:
            self._followed(self.position)

    def _refuse_durable(self, error: DatabaseFileGoneError) -> None:
        """Refuse the durable records, so that no client waits for a file that may never come back;
        the others are kept for it."""
        self._counters.failure("database_file_gone", str(error))
        for waiting in self._backlog.durable:
            self._backlog.end(waiting, error)

    async def _flush(self) -> None:
        """Write the waiting records. Later ones get their own flush interval: written at once, in
        transactions of one or two records, they cost the proxy a quarter of its throughput."""
        upto = self._backlog.newest
        if not self._backlog:
            ends = await log.ends(self._database)
            if not await self._begun_anew(ends.start):
                await self._follow(ends.head)
        while self._backlog.has_upto(upto):
            with self._backlog.batch(upto) as batch:
                await self._write_batch(batch)
        await self._save_due_snapshots()

    async def _write_batch(self, batch: Sequence[Waiting]) -> None:
        """Write one transaction. Its records stay in the backlog until it is committed."""
        try:
            appended = await self._append(batch)
        except Exception as error:
            if not is_the_records_fault(error):
                raise
            await self._write_singly(batch)
            return
        await self._fold_written(batch, appended)

    async def _write_singly(self, batch: Sequence[Waiting]) -> None:
        """Write records one by one: one that the database never accepts must not hold up the
        others."""
        for waiting in batch:
            try:
                appended = await self._append([waiting])
            except Exception as error:
                if not is_the_records_fault(error):
                    raise
                await self._refused(waiting, error)
                continue
            await self._fold_written([waiting], appended)

    async def _refused(self, waiting: Waiting, error: Exception) -> None:
        """Drop a record that the database refuses, unless it is there already: the answer to a
        commit may have been lost."""
        is_twice = isinstance(error, IntegrityError)
        if is_twice and await log.is_logged(self._database, waiting.record):
            waiting.is_committed = True
        else:
            self._drop(waiting, error)

    async def _append(self, batch: Sequence[Waiting]) -> log.Appended:
        """Append a batch. Raises UnloggedRequestError if a record of it is about a dropped
        request."""
        for waiting in batch if self._unlogged else ():
            if getattr(waiting.record, "request_id", None) in self._unlogged:
                raise UnloggedRequestError(
                    "the request was not logged, so that nothing is logged about it; the proxy's "
                    "log says why"
                )
        appended = await log.append(
            self._database,
            [waiting.record for waiting in batch],
            is_durable=any(waiting.is_durable for waiting in batch),
        )
        for waiting in batch:
            waiting.is_committed = True
        return appended

    async def _fold_written(self, batch: Sequence[Waiting], appended: log.Appended) -> None:
        records = [waiting.record for waiting in batch]
        entries = self._recent.entries(records, appended.before)
        is_next = appended.before == self.position  # else other workers wrote in between
        try:
            if is_next and entries is not None:
                await self._fold_known(entries, appended.last)
            elif is_next:
                await self._fold(appended.last, {type(record) for record in records})
            elif not await self._begun_anew(appended.start):
                await self._follow(appended.last)
        finally:  # they are committed: what was not read back is folded in later
            self.arrivals.came(records)

    def _drop(self, waiting: Waiting, error: Exception) -> None:
        record = waiting.record
        self._counters.add("records_dropped")
        # Only the type is logged: the record may hold a user's text.
        logger.error("dropped a %s that cannot be written: %s", type(record).__name__, error)
        if isinstance(record, RequestRecord):
            self._engines[record.zoo].forget(record.request_id)
            self._unlogged[record.request_id] = None
        self._backlog.end(waiting, error)

    async def _begun_anew(self, start: int) -> bool:
        """Tell whether the engines had to be restored, because records that they had not read were
        pruned: this happens to a worker that was away for longer than a prune takes."""
        if start == self._log_start:
            return False
        bases = await snapshots.base_positions(self._database)
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
        if expected := self.arrivals.expected:  # records of other workers do not notify
            self.arrivals.arrived(await arrived_ids(self._database, expected, before, upto))
        self.position = max(self.position, upto)

    async def _fold_known(self, entries: Sequence[Entry], upto: int) -> None:
        """Fold in entries that this process wrote, up to a position, without reading them back."""
        self._turn_ends = time.perf_counter() + TURN_SECONDS
        for entry in entries:
            await self._apply(entry)
        self.position = upto

    async def _apply(self, entry: Entry) -> None:
        """Fold one entry in, and yield to the event loop at intervals."""
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
