"""The counters of all workers as one sum, whichever of them is asked.

Behind one port any worker may answer, so what one counts alone would rise and fall from one scrape
to the next. Each saves its own now and then; what is shown was saved first, so whoever answers next
shows no less. Without a database a worker shows its own, and what it last knew of the others.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import StrEnum

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.journal import Journal
from litellm_messplus.records import new_id
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.tasks import Periodic
from litellm_messplus.store.worker_counters import Counts, Sums, WorkerCounters

SAVE_SECONDS = 2.0
"""How often to save what was counted: so much a worker that is killed may forget."""
SIGN_OF_LIFE_SECONDS = 20.0
"""How often to save though nothing failed: a worker that is silent for a minute counts as gone."""
ANSWER_SECONDS = 2.0
"""How long who asks for the sum waits for the database."""
MEASURED = "encoder."
"""Begins the names of what the encoder did. That changes with every request, so it is saved with
the signs of life, and when somebody asks."""
DISTRIBUTED = "distribution."
"""Begins the names of what fell into the buckets of histograms; saved as the encoder's."""


class SharedCounters:
    """One a worker; ``measured`` gives what the encoder did since the start, by name, and
    ``distributed`` what fell into which bucket. It ``is_failing`` where the database did not take
    the counts when it last tried."""

    def __init__(
        self,
        database: AsyncEngine,
        counters: Counters,
        measured: Callable[[], Mapping[str, float]],
        distributed: Callable[[], Mapping[str, float]] = dict,
    ) -> None:
        self._counters = counters
        self._measured = measured
        self._distributed = distributed
        self._row = WorkerCounters(database, new_id())
        self._turn = asyncio.Lock()
        self.is_started = False
        self.is_failing = False
        self._saved: Counts = {}
        self._saved_at = 0.0
        self._others = Sums({}, {})

    def start(self, periodic: Periodic) -> None:
        """Begin saving, in the running event loop: the database is there."""
        self.is_started = True
        failed = "the counters were not saved"
        periodic.every(SAVE_SECONDS, self.save, "counters_unsaved", failed)

    async def save(self) -> None:
        """Save what was counted since, where that is due. Raises SQLAlchemyError or
        TimeoutError."""
        if not self._is_due():
            return
        try:
            async with asyncio.timeout(SIGN_OF_LIFE_SECONDS):
                await self._exchange()
        except Exception:
            self.is_failing = True
            raise

    async def close(self) -> None:
        """Save for the last time: what this worker counted stays in the sum of those that go on."""
        if not self.is_started:
            return
        try:
            async with asyncio.timeout(ANSWER_SECONDS), self._turn:
                await self._row.end(self._counts(), datetime.now(UTC))
        except Exception:  # the others will do it when this worker is silent
            self._counters.failure("counters_unsaved", "the counters were not saved at the stop")

    async def sums(self) -> Sums:
        """Return the sums of everyone, this worker as it is now."""
        if self.is_started:
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    return await self._exchange()
            except Exception:
                self.is_failing = True
                self._counters.failure("counters_unsaved", "other workers' counters were not read")
        counts = self._counts()
        return Sums(_sum(self._others.everyone, counts), _sum(self._others.running, counts))

    def _is_due(self) -> bool:
        is_silent = time.monotonic() - self._saved_at >= SIGN_OF_LIFE_SECONDS
        return is_silent or self._counters.as_dict() != counters_of(self._saved)

    async def _exchange(self) -> Sums:
        async with self._turn:
            counts = self._counts()
            sums = await self._row.exchange(counts, datetime.now(UTC))
            self._saved, self._saved_at = counts, time.monotonic()
            self.is_failing = False
            self._others = Sums(_less(sums.everyone, counts), _less(sums.running, counts))
            return sums

    def _counts(self) -> Counts:
        measured = {f"{MEASURED}{name}": value for name, value in self._measured().items()}
        distributed = {f"{DISTRIBUTED}{name}": count for name, count in self._distributed().items()}
        return {**self._counters.as_dict(), **measured, **distributed}


def counters_of(counts: Counts) -> dict[str, int]:
    """Return what failed or was left out, by name."""
    others = (MEASURED, DISTRIBUTED)
    named = {name: count for name, count in counts.items() if not name.startswith(others)}
    return {name: int(named[name]) for name in sorted(named) if named[name]}


def measured_of(counts: Counts) -> dict[str, float]:
    """Return what the encoders did, by name."""
    return _below(counts, MEASURED)


def distributions_of(counts: Counts) -> dict[str, float]:
    """Return what fell into the buckets of histograms, by name."""
    return _below(counts, DISTRIBUTED)


def _below(counts: Counts, prefix: str) -> dict[str, float]:
    return {
        name.removeprefix(prefix): value
        for name, value in counts.items()
        if name.startswith(prefix)
    }


def _sum(first: Counts, second: Counts) -> Counts:
    total = Counter(first)
    total.update(second)
    return total


def _less(first: Counts, second: Counts) -> Counts:
    rest = Counter(first)
    rest.subtract(second)
    return rest


# Whether this worker routes now, from memory alone: no database is read, so anybody may ask.


class Readiness(StrEnum):
    """The states of a worker that serves.

    ``DEGRADED``: it routes, and what it decides waits in memory, for the database does not take it.
    ``ABSENT``: it has waited for the database since its start, and serves as without the plugin.
    """

    ROUTING = "routing"
    DEGRADED = "degraded"
    ABSENT = "absent"


def readiness(journal: Journal, shared: SharedCounters) -> Readiness:
    """Tell the state of the worker whose parts these are, as of what each last tried."""
    if not shared.is_started:
        return Readiness.ABSENT
    is_degraded = journal.is_failing or shared.is_failing
    return Readiness.DEGRADED if is_degraded else Readiness.ROUTING
