"""The loop of a learner in a process of its own: inbox to log, log to state, state to workers."""

import asyncio
import math
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.core.engine import Engine, fingerprints
from litellm_messplus.core.published import Publication, View, view_of
from litellm_messplus.learning.learner import SNAPSHOT_EVERY, Learner
from litellm_messplus.learning.lease import adjacent_path
from litellm_messplus.learning.outlet import Outlet
from litellm_messplus.records import Record
from litellm_messplus.runtime.counters import Counters, logger
from litellm_messplus.runtime.tasks import Tasks
from litellm_messplus.store import inbox
from litellm_messplus.store.database import DatabaseFileGoneError, is_the_records_fault
from litellm_messplus.store.inbox import Batch, DeposedError
from litellm_messplus.store.worker_counters import LEARNER, WorkerCounters, running

PUBLISH_SECONDS = 0.1
PUBLISH_REQUESTS = 100
"""Records after which a state is published before ``PUBLISH_SECONDS`` are over."""
SIGN_SECONDS = 1.0
"""Seconds between two signs of life."""
LOOK_SECONDS = 0.02
"""Seconds between two looks at the size of SQLite's write-ahead log, each some microseconds."""
IDLE_SECONDS = 0.5
"""Seconds between two readings of the inbox although SQLite's file is as it was."""
INBOX_SECONDS = 0.05
"""Seconds between two readings of the inbox on Postgres: a query that mostly returns no row."""
COUNT_SECONDS = 5.0
"""Seconds between two counts of the workers, and two saves of the learner's counters."""
SNAPSHOT_SECONDS = 15.0
"""Seconds between two snapshots, if anything was folded: the status reads the newest."""
RETRY_SECONDS = 0.5
BATCHES = 64
"""Batches moved in one transaction."""
ROUNDS = 64
"""Transactions between two counts, however many batches arrive; a learner that is to end moves as
many as that, and leaves later ones to the next learner."""
FORGET_SECONDS = 600.0
"""Seconds between two looks for workers that are silent for long, and are forgotten."""


class LearnerLoop:
    """The work of the learner in office in ``epoch``, on a database that it alone writes."""

    def __init__(
        self,
        database: AsyncEngine,
        engines: Mapping[str, Engine],
        outlet: Outlet,
        epoch: int,
        position: int,
        *,
        snapshot_every: int = SNAPSHOT_EVERY,
    ) -> None:
        self.counters = Counters()
        self.learner = Learner(
            *(database, engines, self.counters), position=position, snapshot_every=snapshot_every
        )
        self._database = database
        self._engines = engines
        self._fingerprints = fingerprints(engines)
        self._outlet = outlet
        self._epoch = epoch
        self._taken: dict[str, int] = {}
        self._workers = 1
        self._published = -1
        self._is_published = False
        self._is_sure = True
        self._published_at = self._signed_at = self._counted_at = self._read_at = 0.0
        self._forgot_at = time.monotonic()
        self._snapshot_at = -math.inf  # the first comes with the first records
        self._row = WorkerCounters(database, f"{LEARNER}{epoch}")
        self._woken = asyncio.Event()
        self._tasks = Tasks()
        self._stopping = False

    def stop(self) -> None:
        """End `run` once the inbox is empty, or after ``ROUNDS`` transactions."""
        self._stopping = True
        self._woken.set()

    async def begin(self) -> None:
        """Publish the state as restored. Raises SQLAlchemyError."""
        await self._read_taken()
        await self._count()
        await self._publish()
        if self._database.dialect.name == "sqlite":
            self._tasks.start(self._watch_file(), "inbox")

    async def run(self) -> None:
        """Learn until stopped. Raises DeposedError once another learner is elected."""
        while True:
            stopping = self._stopping
            try:
                await self._step()
                if stopping:
                    break
                await self._wait()
            except DeposedError:
                raise
            except Exception as error:
                self._is_sure = False
                is_gone = isinstance(error, DatabaseFileGoneError)
                counter = "database_file_gone" if is_gone else "journal_failures"
                self.counters.failure(counter, "the inbox waits: it cannot be moved into the log")
                if stopping:
                    break
                await asyncio.sleep(RETRY_SECONDS)

    async def close(self) -> None:
        """Save snapshots. Raises SQLAlchemyError."""
        await self._tasks.close()
        await self.learner.close(is_written=True)
        await self._row.end(self.counters.as_dict(), datetime.now(UTC))

    async def _step(self) -> None:
        """Move what is in the inbox into the log, fold it in, and publish what is due."""
        self._woken.clear()
        if not self._is_sure or time.monotonic() - self._forgot_at > FORGET_SECONDS:
            await self._read_taken()
        for _ in range(ROUNDS):
            batches = await inbox.waiting(self._database, BATCHES)
            if not batches:
                break
            await self._move(batches)
            await self._publish_if_due()
        else:
            self._woken.set()
        now = time.monotonic()
        if now - self._read_at >= self.learner.look_seconds:
            self._read_at = now
            await self.learner.look()
        await self._publish_if_due()
        if time.monotonic() - self._counted_at > COUNT_SECONDS:
            await self._count()
        await self._save_if_due()

    async def _read_taken(self) -> None:
        """Read how far the batches of each worker are taken: after a failure it is not known
        whether the last ones were, nor folded in, since the answer to a commit may be lost."""
        self._taken = await inbox.taken(self._database, datetime.now(UTC))
        self._is_sure, self._is_published, self._read_at = True, False, 0.0
        self._forgot_at = time.monotonic()

    async def _wait(self) -> None:
        """Wait for a batch; a state that may not be published yet is waited for too."""
        seconds = IDLE_SECONDS if self._database.dialect.name == "sqlite" else INBOX_SECONDS
        if self._is_unpublished:
            seconds = PUBLISH_SECONDS / 4.0
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()

    async def _move(self, batches: Sequence[Batch]) -> None:
        records = [record for batch in batches for record in self._decoded(batch)]
        try:
            await self._append(records, batches)
        except Exception as error:
            if isinstance(error, DeposedError) or not is_the_records_fault(error):
                raise
            for record in records:
                await self._append_singly(record)
            await self._append([], batches)
        self._taken |= {batch.worker: batch.number for batch in batches}
        self._is_published = False  # although the position may be the same

    def _decoded(self, batch: Batch) -> list[Record]:
        with self.counters.tolerated("records_dropped", f"a batch of {batch.worker} is unreadable"):
            return inbox.decode(batch.records)
        return []

    async def _append(self, records: Sequence[Record], batches: Sequence[Batch] = ()) -> None:
        async def also(connection: AsyncConnection) -> None:
            await inbox.take(connection, batches, self._epoch, datetime.now(UTC))

        appended = await self.learner.append(records, also=also)
        await self.learner.fold_written(records, appended)

    async def _append_singly(self, record: Record) -> None:
        try:
            await self._append([record])
        except Exception as error:
            if isinstance(error, DeposedError) or not is_the_records_fault(error):
                raise
            if await self.learner.is_logged(record, error):
                return
            # Only the type is logged: the record may hold a user's text.
            kind = type(record).__name__
            logger.error("dropped a %s that cannot be written: %s", kind, error)
            self.counters.add("records_dropped")
            self.learner.dropped(record)

    @property
    def _is_unpublished(self) -> bool:
        return not self._is_published or self.learner.position != self._published

    async def _publish_if_due(self) -> None:
        now = time.monotonic()
        is_due = now - self._published_at >= PUBLISH_SECONDS
        is_due |= self.learner.position - self._published >= PUBLISH_REQUESTS
        if self._is_unpublished and is_due:
            await self._publish()
        elif now - self._signed_at >= SIGN_SECONDS:
            self._signed_at = now
            if not await self._outlet.sign(self._epoch):
                await self._publish()

    async def _publish(self) -> None:
        views = {
            name: View(self._fingerprints[name], *view_of(engine.state))
            for name, engine in self._engines.items()
        }
        found = Publication(
            self.learner.position, self._epoch, self._workers, dict(self._taken), views
        )
        await self._outlet.publish(found.pack(), self._epoch)
        self._published, self._is_published = found.position, True
        self._published_at = self._signed_at = time.monotonic()

    async def _count(self) -> None:
        """Count the workers, and save the counters. Raises DeposedError."""
        self._counted_at, now = time.monotonic(), datetime.now(UTC)
        async with self._database.connect() as connection:
            await inbox.check(connection, self._epoch)
            workers = await running(connection, now)
        if workers != self._workers:
            self._workers, self._is_published = workers, False
        await self._row.exchange(self.counters.as_dict(), now)

    async def _save_if_due(self) -> None:
        is_due = time.monotonic() - self._snapshot_at > SNAPSHOT_SECONDS
        if is_due and self.learner.position != self.learner.snapshot_position:
            self._snapshot_at = time.monotonic()
            await self.learner.save_snapshots()

    async def _watch_file(self) -> None:
        """Wake the loop when another process has committed to SQLite."""
        path, before = adjacent_path(self._database, "-wal"), None
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            with suppress(OSError):
                found = os.stat(path)
                now = found.st_mtime_ns, found.st_size
                if now != before:
                    before = now
                    self._woken.set()
