"""What every worker process counted, in one table, so that any of them can tell the sum.

A worker that is gone is added to the row `ended`: the sum does not fall, and the rows do not grow.
The lock on that row lets one worker at a time change the table: none is added twice.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Update, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.store.tables import worker_counters

ENDED = "ended"
"""In place of a worker: all that are gone. The migration made the row."""
SILENT = timedelta(seconds=60)
"""After which a worker that says nothing is gone. One that was only slow begins a new row."""

Counts = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums of counts by name: of all since the first of those that run now began, and of those
    that run alone."""

    everyone: Counts
    running: Counts


class WorkerCounters:
    """The row of one worker process, named by an id that no other has."""

    def __init__(self, database: AsyncEngine, worker: str) -> None:
        self._database = database
        self._worker = worker
        self._row: Counts | None = None
        self._given_away: Counts = {}

    async def exchange(self, counts: Counts, now: datetime) -> Sums:
        """Save what this worker counted since its start; returns what there is with it.

        Raises sqlalchemy.exc.SQLAlchemyError where the database does not take it.
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
        """Read what of its counts is in the row `ended`: all that it had saved, where it was taken
        for gone. The first worker where none runs begins anew."""
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
    """Count the workers that were heard of lately: at least the one that asks, which may not have
    its row yet."""
    query = select(func.count()).where(
        worker_counters.c.worker != ENDED, worker_counters.c.updated_at >= now - SILENT
    )
    return max(int((await connection.execute(query)).scalar_one()), 1)


async def _lock(connection: AsyncConnection, now: datetime) -> None:
    """Hold the table until the commit."""
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
