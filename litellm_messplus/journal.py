"""The journal: hands records to the learner in batches, and acknowledges those that clients wait
for."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass

from sqlalchemy.exc import SQLAlchemyError

from litellm_messplus.backlog import LONGEST, Arrivals, Backlog, Waiting
from litellm_messplus.learning.learner import Learner
from litellm_messplus.records import Record
from litellm_messplus.rows import without_words
from litellm_messplus.runtime.counters import Counters, logger
from litellm_messplus.runtime.errors import JournalFullError, UnsettledError
from litellm_messplus.store.database import DatabaseFileGoneError, is_the_records_fault

RETRY_SECONDS = 0.5
SETTLE_SECONDS = 10.0
"""How long a caller that gave a record up waits for the transaction that may be writing it."""
LONGEST_REST = 0.1
"""The longest pause between two commits, in seconds: a pause is as long as the write before it."""
CLOSE_SECONDS = 10.0
"""The longest wait of a stop for a database that does not answer."""


@dataclass(eq=False, repr=False)
class Journal:
    """The writer of this process's records. If ``store_text`` is false, texts of users are dropped
    from every record; ``saw`` is called with each accepted record. It ``is_failing`` if the last
    attempt to write or read the database failed."""

    learner: Learner
    counters: Counters
    _: KW_ONLY
    store_text: bool
    saw: Callable[[Record], None] | None = None
    flush_seconds: float

    def __post_init__(self) -> None:
        self.is_failing = False
        self._backlog = Backlog()
        self._wake = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._closing = False

    @property
    def position(self) -> int:
        """The position in the log of the state that this process decides from."""
        return self.learner.position

    @property
    def arrivals(self) -> Arrivals:
        """The look-ups that wait for a record to be in the log."""
        return self.learner.arrivals

    def start(self) -> None:
        """Start writing, in the running event loop."""
        self._task = asyncio.create_task(self._run(), name="messplus-journal")

    def follow(self) -> None:
        """Have the log read soon: something was written without this journal."""
        self._wake.set()

    def write(self, record: Record) -> None:
        """Queue a record; it is written within the flush interval."""
        self._add(record)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self.flush_seconds, self._wake.set)

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
        self._wake.set()
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
        """Return when every record queued so far is written and folded in."""
        flushed = self._backlog.flushed()
        if not flushed.done():
            self._wake.set()
        await flushed

    async def close(self) -> None:
        """Write everything, take a snapshot, and stop; if it was never started, stop at once."""
        self._closing = True
        self._wake.set()
        if self._task is None:
            return
        try:
            await asyncio.wait_for(self._task, CLOSE_SECONDS)
        except TimeoutError:
            logger.error("closed with %d records unwritten", len(self._backlog))
        try:
            await self.learner.close(is_written=self._task.done() and not self._backlog)
        except SQLAlchemyError:  # the log is written: the next start folds it
            self.counters.failure("snapshot_failures", "no snapshot was taken at the stop")

    def _add(self, record: Record, written: asyncio.Future[None] | None = None) -> Waiting:
        """Queue a record, without texts not to be stored. With a future, the commit waits for
        disk."""
        kept, is_full = record if self.store_text else without_words(record), self._backlog.is_full
        waiting = self._backlog.add(kept, written)
        if is_full:
            self._drop(waiting, JournalFullError(f"{LONGEST} records are waiting"))
        elif self.saw is not None:
            self.saw(kept)
        return waiting

    async def _run(self) -> None:
        while self._backlog or not self._closing:
            await self._woken()
            began = time.monotonic()
            try:
                await self._flush()
                self.is_failing = False
                # Decisions get half of a busy brain; records that come meanwhile share a commit.
                await asyncio.sleep(min(time.monotonic() - began, LONGEST_REST))
            except DatabaseFileGoneError as error:
                self.is_failing = True
                self._refuse_durable(error)
                await asyncio.sleep(RETRY_SECONDS)
                self._wake.set()
            except Exception:
                self.is_failing = True
                waiting = len(self._backlog)
                self.counters.failure(
                    "journal_failures", f"the log cannot be written; {waiting} records wait"
                )
                await asyncio.sleep(RETRY_SECONDS)
                self._wake.set()

    async def _woken(self) -> None:
        """Wait until records are due, or others' are to be looked for."""
        with suppress(TimeoutError):
            # Not wait_for: Python 3.11's swallows a cancel that comes as the event is set.
            async with asyncio.timeout(self.learner.look_seconds):
                await self._wake.wait()
        self._wake.clear()
        self._timer = None

    def _refuse_durable(self, error: DatabaseFileGoneError) -> None:
        """Refuse the durable records, so that no client waits for a file that may never come back;
        the others are kept for it."""
        self.counters.failure("database_file_gone", str(error))
        for waiting in self._backlog.durable:
            self._backlog.end(waiting, error)

    async def _flush(self) -> None:
        """Write the waiting records. Later ones get their own flush interval: written at once, in
        transactions of one or two records, they cost the proxy a quarter of its throughput."""
        upto = self._backlog.newest
        if not self._backlog:
            await self.learner.look()
        while self._backlog.has_upto(upto):
            with self._backlog.batch(upto) as batch:
                await self._write_batch(batch)

    async def _write_batch(self, batch: Sequence[Waiting]) -> None:
        """Write one transaction. Its records stay in the backlog until it is committed."""
        try:
            await self._write(batch)
        except Exception as error:
            if any(waiting.is_committed for waiting in batch) or not is_the_records_fault(error):
                raise
            await self._write_singly(batch)

    async def _write_singly(self, batch: Sequence[Waiting]) -> None:
        """Write records one by one: one that the database never accepts must not hold up the
        others."""
        for waiting in batch:
            try:
                await self._write([waiting])
            except Exception as error:
                if waiting.is_committed or not is_the_records_fault(error):
                    raise
                await self._refused(waiting, error)

    async def _write(self, batch: Sequence[Waiting]) -> None:
        records = [waiting.record for waiting in batch]
        is_durable = any(waiting.is_durable for waiting in batch)
        appended = await self.learner.append(records, is_durable=is_durable)
        for waiting in batch:
            waiting.is_committed = True
        await self.learner.fold_written(records, appended)

    async def _refused(self, waiting: Waiting, error: Exception) -> None:
        """Drop a record that the database refuses, unless it is there already."""
        if await self.learner.is_logged(waiting.record, error):
            waiting.is_committed = True
        else:
            self._drop(waiting, error)

    def _drop(self, waiting: Waiting, error: Exception) -> None:
        record = waiting.record
        self.counters.add("records_dropped")
        # Only the type is logged: the record may hold a user's text.
        logger.error("dropped a %s that cannot be written: %s", type(record).__name__, error)
        self.learner.dropped(record)
        self._backlog.end(waiting, error)
