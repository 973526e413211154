"""The journal: writes records in batches, and folds into the engines what has become durable."""

import asyncio
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress

from sqlalchemy.exc import DataError, IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.counters import Counters
from litellm_messplus.engine import Engine
from litellm_messplus.learning import snapshot
from litellm_messplus.learning.entries import Entry
from litellm_messplus.records import Record, RequestRecord
from litellm_messplus.store import log, snapshots
from litellm_messplus.store.entries import read_entries

logger = logging.getLogger(__name__)

BATCH = 500
"""Records written in one transaction."""
LONGEST_BACKLOG = 100_000
"""Records held while the database is away; beyond, the oldest are dropped and counted."""
FOLLOW_SECONDS = 1.0
"""How often to look for what other workers wrote."""
RETRY_SECONDS = 0.5
CLOSE_SECONDS = 10.0
"""How long a stop waits for a database that does not answer."""

_Waiting = tuple[Record, asyncio.Future[None] | None]


class Journal:
    """The only writer of this process. An engine's state is the fold up to ``position``."""

    def __init__(
        self,
        database: AsyncEngine,
        engines: Mapping[str, Engine],
        counters: Counters,
        *,
        flush_seconds: float,
        snapshot_every: int,
        position: int,
    ) -> None:
        self.position = position
        self._database = database
        self._engines = engines
        self._counters = counters
        self._flush_seconds = flush_seconds
        self._snapshot_every = snapshot_every
        self._snapshot_position = position
        self._backlog: deque[_Waiting] = deque()
        self._wake = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._turn = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._closing = False

    def start(self) -> None:
        """Begin writing, in the running event loop."""
        self._task = asyncio.create_task(self._run(), name="messplus-journal")

    def write(self, record: Record) -> None:
        """Hand over a record; it is written within the flush interval."""
        self._add(record, None)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._flush_seconds, self._wake.set)

    async def write_durably(self, records: Sequence[Record]) -> None:
        """Return when the records, and all handed over before, are committed and folded in.

        Raises sqlalchemy.exc.SQLAlchemyError where the database refuses one of them.
        """
        loop = asyncio.get_running_loop()
        written = [loop.create_future() for _ in records]
        for record, future in zip(records, written, strict=True):
            self._add(record, future)
        self._wake.set()
        await asyncio.gather(*written)

    async def close(self) -> None:
        """Write everything, take a snapshot, and stop."""
        self._closing = True
        self._wake.set()
        if self._task is not None:
            try:
                await asyncio.wait_for(self._task, CLOSE_SECONDS)
            except TimeoutError:
                logger.error("closed with %d records unwritten", len(self._backlog))
                return
        await self._save_snapshots()

    def _add(self, record: Record, written: asyncio.Future[None] | None) -> None:
        self._backlog.append((record, written))
        if len(self._backlog) > LONGEST_BACKLOG:
            dropped, waiter = self._backlog.popleft()
            self._drop(dropped, waiter, RuntimeError("the journal's backlog is full"))

    async def _run(self) -> None:
        while self._backlog or not self._closing:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), FOLLOW_SECONDS)
            self._wake.clear()
            self._timer = None
            try:
                async with self._turn:
                    await self._flush()
            except Exception:
                self._counters.add("journal_failures")
                logger.exception("the log could not be written; %d waiting", len(self._backlog))
                await asyncio.sleep(RETRY_SECONDS)
                self._wake.set()

    async def _flush(self) -> None:
        if not self._backlog:
            await self._fold(upto=await log.head(self._database))
        while self._backlog:
            await self._write_batch()
        if self.position - self._snapshot_position >= self._snapshot_every:
            await self._save_snapshots()

    async def _write_batch(self) -> None:
        """One transaction. What it holds stays in the backlog until it is committed."""
        batch = [self._backlog[index] for index in range(min(BATCH, len(self._backlog)))]
        try:
            appended = await log.append(self._database, [record for record, _ in batch])
        except (IntegrityError, DataError):
            await self._write_singly(batch)
            return
        for _ in batch:
            self._backlog.popleft()
        await self._fold_written(batch, appended)

    async def _write_singly(self, batch: Sequence[_Waiting]) -> None:
        """One record that the database will never take must not hold up the others."""
        for record, written in batch:
            try:
                appended = await log.append(self._database, [record])
            except (IntegrityError, DataError) as error:
                self._backlog.popleft()
                self._drop(record, written, error)
                continue
            self._backlog.popleft()
            await self._fold_written([(record, written)], appended)

    async def _fold_written(self, batch: Sequence[_Waiting], appended: log.Appended) -> None:
        try:
            await self._fold(upto=appended.last)
        finally:  # committed is committed: what could not be read back now is folded in later
            for _, written in batch:
                if written is not None and not written.done():
                    written.set_result(None)

    def _drop(self, record: Record, written: asyncio.Future[None] | None, error: Exception) -> None:
        self._counters.add("records_dropped")
        logger.error("dropped a record that cannot be written: %s (%r)", error, record)
        if isinstance(record, RequestRecord):
            self._engines[record.zoo].forget(record.request_id)
        if written is not None and not written.done():
            written.set_exception(error)

    async def _fold(self, upto: int) -> None:
        async for entry in read_entries(self._database, self.position, upto):
            self._apply(entry)
            self.position = entry.position
        self.position = max(self.position, upto)

    def _apply(self, entry: Entry) -> None:
        engine = self._engines.get(entry.zoo)
        if engine is None:  # a zoo that was configured once
            return
        try:
            engine.apply(entry)
        except Exception:
            self._counters.add("fold_failures")
            logger.exception("an entry of the log could not be folded in: %r", entry)

    async def _save_snapshots(self) -> None:
        for name, engine in self._engines.items():
            await snapshots.save(
                self._database,
                snapshots.Snapshot(
                    zoo=name,
                    position=self.position,
                    fingerprint=snapshot.fingerprint(engine.zoo, engine.encoder.name),
                    state=snapshot.dump(engine.state),
                ),
            )
        self._snapshot_position = self.position


async def restore(database: AsyncEngine, engines: Mapping[str, Engine]) -> int:
    """Bring fresh engines to the head of the log; returns its position.

    Each goes on from the newest snapshot that fits its settings, or folds the whole log.
    """
    reached = {name: await _load_snapshot(database, engine) for name, engine in engines.items()}
    head = await log.head(database)
    async for entry in read_entries(database, min(reached.values(), default=head), head):
        if entry.position > reached.get(entry.zoo, head):
            engines[entry.zoo].apply(entry)
    return head


async def _load_snapshot(database: AsyncEngine, engine: Engine) -> int:
    fingerprint = snapshot.fingerprint(engine.zoo, engine.encoder.name)
    found = await snapshots.newest(database, engine.zoo.name, fingerprint)
    if found is None:
        return 0
    try:
        engine.state = snapshot.load(found.state, engine.empty_state())
    except (ValueError, KeyError, OSError):
        logger.exception("the snapshot at %d is unreadable; folding the whole log", found.position)
        engine.state = engine.empty_state()
        return 0
    return found.position
