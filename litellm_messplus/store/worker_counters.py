"""The counters of all worker processes, in one table, so that each of them can report the sums.

A worker that is gone is added to the row `ended`, so the sum does not fall and the number of rows
stays bounded. The lock on that row lets one worker at a time change the table: none is added twice.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Update, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.store.tables import worker_counters

ENDED = "ended"
"""The id of the row of all workers that are gone, which the migration created."""
LEARNER = "learner-"
"""The beginning of the id of a learner, which counts but decides nothing."""
SILENT = timedelta(seconds=60)
"""The time after which a silent worker counts as gone. One that was only slow begins a new row."""

Counts = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums of counts by name: ``everyone`` of all workers since the first of those now running
    started, ``running`` of those now running."""

    everyone: Counts
    running: Counts


class WorkerCounters:
    """The row of one worker process, under a unique id."""

    def __init__(self, database: AsyncEngine, worker: str) -> None:
        self._database = database
        self._worker = worker
        self._row: Counts | None = None
        self._given_away: Counts = {}

    async def exchange(self, counts: Counts, now: datetime) -> Sums:
        """Save what this worker counted since its start, and return the sums including it.

        Raises sqlalchemy.exc.SQLAlchemyError if the database refuses.
        """
        async with self._database.begin() as connection:
            await _lock(connection, now)
            is_silent = worker_counters.c.updated_at < now - SILENT
            others = worker_counters.c.worker.not_in([ENDED, self._worker])
            await _end(connection, others & is_silent)
            given_away = await self._given_away_by_now(connection, now)
            row = {name: count - given_away.get(name, 0) for name, count in counts.items()}
            changed = await connection.execute(
                update(worker_counters)
                .where(worker_counters.c.worker == self._worker)
                .values(counts=row, updated_at=now)
            )
            if changed.rowcount == 0:
                await connection.execute(
                    insert(worker_counters).values(
                        worker=self._worker, started_at=now, updated_at=now, counts=row
                    )
                )
            sums = await _sums(connection)
        self._row, self._given_away = row, given_away
        return sums

    async def end(self, counts: Counts, now: datetime) -> None:
        """Add this worker to those that are gone."""
        await self.exchange(counts, now)
        async with self._database.begin() as connection:
            await _lock(connection, now)
            await _end(connection, worker_counters.c.worker == self._worker)

    async def _given_away_by_now(self, connection: AsyncConnection, now: datetime) -> Counts:
        """Read which of its counts are in the row `ended`: all that it had saved, if it was taken
        for gone. If no other worker runs, a new one resets that row."""
        others = select(worker_counters.c.worker).where(worker_counters.c.worker != ENDED)
        running = set((await connection.execute(others)).scalars())
        if self._row is None:
            if not running:
                await connection.execute(_write_ended({}))
            return {}
        if self._worker in running:
            return self._given_away
        return Counter(self._given_away) + Counter(self._row)


async def running(connection: AsyncConnection, now: datetime) -> int:
    """Count the workers updated lately: at least 1, because the caller may not have its row yet."""
    query = select(func.count()).where(
        worker_counters.c.worker != ENDED,
        worker_counters.c.worker.not_like(f"{LEARNER}%"),
        worker_counters.c.updated_at >= now - SILENT,
    )
    return max(int((await connection.execute(query)).scalar_one()), 1)


async def _lock(connection: AsyncConnection, now: datetime) -> None:
    """Lock the table until the commit."""
    ended = worker_counters.c.worker == ENDED
    await connection.execute(update(worker_counters).where(ended).values(updated_at=now))


async def _end(connection: AsyncConnection, whose: ColumnElement[bool]) -> None:
    """Move what these workers counted to the row of those that are gone."""
    gone = await connection.execute(
        delete(worker_counters).where(whose).returning(worker_counters.c.counts)
    )
    counted = gone.scalars().all()
    if not counted:
        return
    query = select(worker_counters.c.counts).where(worker_counters.c.worker == ENDED)
    before = (await connection.execute(query)).scalar_one()
    await connection.execute(_write_ended(_sum([before, *counted])))


def _write_ended(counts: Counts) -> Update:
    return update(worker_counters).where(worker_counters.c.worker == ENDED).values(counts=counts)


async def _sums(connection: AsyncConnection) -> Sums:
    query = select(worker_counters.c.worker, worker_counters.c.counts)
    rows = (await connection.execute(query)).all()
    return Sums(
        everyone=_sum([counts for _, counts in rows]),
        running=_sum([counts for worker, counts in rows if worker != ENDED]),
    )


def _sum(counted: Sequence[Counts]) -> Counts:
    total: Counter[str] = Counter()
    for counts in counted:
        total.update(counts)
    return total
