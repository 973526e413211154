"""The counters of all workers as one sum, whichever worker answers.

Behind one port any worker may answer, so the counts of one alone would rise and fall from one
scrape to the next. Each worker saves its counts periodically, and before it shows them, so the next
to answer shows no less. Without a database it shows its own, and the last known of the others.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.journal import Journal
from litellm_messplus.learning.spool import LATE_SECONDS
from litellm_messplus.records import new_id
from litellm_messplus.runtime.counters import UNROUTED, Counters
from litellm_messplus.runtime.tasks import Periodic
from litellm_messplus.store.worker_counters import Counts, Sums, WorkerCounters

SAVE_SECONDS = 2.0
"""Seconds between two saves of the counts: a worker that is killed may lose as much."""
SIGN_OF_LIFE_SECONDS = 20.0
"""Seconds between two saves if nothing failed: a worker silent for a minute counts as gone."""
ANSWER_SECONDS = 2.0
"""Seconds that a caller of the sum waits for the database."""
MEASURED = "encoder."
"""Prefix of the names of the encoder's counts. They change with every request, so they are saved
with the signs of life, and when the sum is read."""
DISTRIBUTED = "distribution."
"""Prefix of the names of the histograms' bucket counts; saved like the encoder's."""


@dataclass(eq=False, repr=False)
class SharedCounters:
    """The shared counters, one instance per worker; ``measured`` returns the encoder's counts since
    the start, by name, and ``distributed`` those of the buckets. ``is_failing`` if the last try to
    save the counts failed."""

    database: AsyncEngine
    counters: Counters
    measured: Callable[[], Mapping[str, float]]
    distributed: Callable[[], Mapping[str, float]] = dict

    def __post_init__(self) -> None:
        self._row = WorkerCounters(self.database, new_id())
        self._turn = asyncio.Lock()
        self.is_started = False
        self.is_failing = False
        self._saved: Counts = {}
        self._saved_at = 0.0
        self._others = Sums({}, {})

    def start(self, periodic: Periodic) -> None:
        """Begin saving, in the running event loop, now that the database is reachable."""
        self.is_started = True
        failed = "the counters were not saved"
        periodic.every(SAVE_SECONDS, self.save, "counters_unsaved", failed)

    async def save(self) -> None:
        """Save the counts, if that is due. Raises SQLAlchemyError or TimeoutError."""
        if not self._is_due():
            return
        try:
            async with asyncio.timeout(SIGN_OF_LIFE_SECONDS):
                await self._exchange()
        except Exception:
            self.is_failing = True
            raise

    async def close(self) -> None:
        """Save for the last time: this worker's counts stay in the sum of the remaining ones."""
        if not self.is_started:
            return
        try:
            async with asyncio.timeout(ANSWER_SECONDS), self._turn:
                await self._row.end(self._counts(), datetime.now(UTC))
        except Exception:  # the others do it once this worker is silent
            self.counters.failure("counters_unsaved", "the counters were not saved at the stop")

    async def sums(self) -> Sums:
        """Return the sums over all workers, with the current counts of this one."""
        if self.is_started:
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    return await self._exchange()
            except Exception:
                self.is_failing = True
                self.counters.failure("counters_unsaved", "other workers' counters were not read")
        counts = self._counts()
        return Sums(_sum(self._others.everyone, counts), _sum(self._others.running, counts))

    def _is_due(self) -> bool:
        is_silent = time.monotonic() - self._saved_at >= SIGN_OF_LIFE_SECONDS
        return is_silent or counters_of(self.counters.as_dict()) != counters_of(self._saved)

    async def _exchange(self) -> Sums:
        async with self._turn:
            counts = self._counts()
            sums = await self._row.exchange(counts, datetime.now(UTC))
            self._saved, self._saved_at = counts, time.monotonic()
            self.is_failing = False
            self._others = Sums(_less(sums.everyone, counts), _less(sums.running, counts))
            return sums

    def _counts(self) -> Counts:
        measured = {f"{MEASURED}{name}": value for name, value in self.measured().items()}
        distributed = {f"{DISTRIBUTED}{name}": count for name, count in self.distributed().items()}
        return {**self.counters.as_dict(), **measured, **distributed}


def counters_of(counts: Counts) -> dict[str, int]:
    """Return the counts of failures and omissions, by name."""
    others = (MEASURED, DISTRIBUTED, UNROUTED)
    named = {name: count for name, count in counts.items() if not name.startswith(others)}
    return {name: int(named[name]) for name in sorted(named) if named[name]}


def below(counts: Counts, prefix: str) -> dict[str, float]:
    """Return the counts whose names have the prefix, by what follows it."""
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


# Whether this worker routes now, from memory alone: no database is read, so any client may ask.


class Readiness(StrEnum):
    """The states of a worker that serves.

    ``DEGRADED``: it routes, and its records wait in memory, since the database does not take them,
    or the state that it decides from is late.
    ``ABSENT``: it has waited for the database since its start, and serves as without the plugin.
    """

    ROUTING = "routing"
    DEGRADED = "degraded"
    ABSENT = "absent"


def readiness(
    journal: Journal, shared: SharedCounters, state_seconds: Callable[[], float]
) -> Readiness:
    """Return the state of the worker with these parts, by the last try of each to write and the age
    of the state that it decides from."""
    if not shared.is_started:
        return Readiness.ABSENT
    is_degraded = journal.is_failing or shared.is_failing or state_seconds() >= LATE_SECONDS
    return Readiness.DEGRADED if is_degraded else Readiness.ROUTING
