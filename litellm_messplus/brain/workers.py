"""The workers of the proxy: what the brain asks of them, and what they have counted."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from litellm_messplus.brain.contract import Hands
from litellm_messplus.runtime.counters import UNROUTED, Counters
from litellm_messplus.runtime.errors import MessplusError

MEASURED = "encoder."
"""Prefix of the names of the encoder's counts."""
DISTRIBUTED = "distribution."
"""Prefix of the names of the histograms' bucket counts."""
Counts = Mapping[str, float]


class NoWorkerError(MessplusError):
    """No worker is connected that could make a call."""


@dataclass(eq=False, slots=True)
class _Worker:
    hands: Hands
    started: datetime
    counts: Counts = field(default_factory=dict)


class Sums(NamedTuple):
    """The sums of counts by name: of all workers since the brain started, and of those that are
    connected."""

    everyone: Counts
    running: Counts


class Workers:
    """The connected workers by their ids. ``measured`` returns the encoder's counts by name,
    ``distributed`` those of the histograms' buckets."""

    def __init__(
        self,
        own: Counters,
        measured: Callable[[], Counts],
        distributed: Callable[[], Counts],
    ) -> None:
        self._own, self._measured, self._distributed = own, measured, distributed
        self._connected: dict[str, _Worker] = {}
        self._gone: Counter[str] = Counter()
        self.joined = asyncio.Event()
        """Set once a worker has connected."""

    def join(self, worker: str, hands: Hands, started: datetime) -> None:
        """Note that a worker is connected, which ``started`` then."""
        self._connected[worker] = _Worker(hands, started)
        self.joined.set()

    @property
    def first_started(self) -> datetime | None:
        """When the first of the connected workers started; None without one."""
        return min((each.started for each in self._connected.values()), default=None)

    @property
    def count(self) -> int:
        """The number of connected workers."""
        return len(self._connected)

    def leave(self, worker: str) -> None:
        """Note that a worker is gone; what it counted stays in the sum of all."""
        found = self._connected.pop(worker, None)
        if found is not None:
            self._gone.update(found.counts)

    def counted(self, worker: str, counts: Counts) -> None:
        """Take what a worker has counted since it connected."""
        found = self._connected.get(worker)
        if found is not None:
            found.counts = counts

    def hands_of(self, worker: str) -> Hands:
        """Return the hands of a worker. Raises NoWorkerError if it is gone."""
        found = self._connected.get(worker)
        if found is None:
            raise NoWorkerError(f"worker {worker} is gone")
        return found.hands

    def any(self) -> Hands:
        """Return the hands of the worker that connected last. Raises NoWorkerError without one."""
        for found in reversed(self._connected.values()):
            return found.hands
        raise NoWorkerError("no worker is connected")

    def sums(self) -> Sums:
        """Add up what the brain and the workers have counted."""
        running = Counter(self._own.as_dict())
        for worker in self._connected.values():
            running.update(worker.counts)
        for prefix, counts in ((MEASURED, self._measured()), (DISTRIBUTED, self._distributed())):
            running.update({f"{prefix}{name}": value for name, value in counts.items()})
        everyone = Counter(running)
        everyone.update(self._gone)
        return Sums(everyone, running)


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


class Readiness(StrEnum):
    """Whether requests are routed.

    ``DEGRADED``: they are, and records wait in memory, since the database does not take them.
    ``ABSENT``: the database or the brain is waited for, and LiteLLM serves as without the plugin.
    """

    ROUTING = "routing"
    DEGRADED = "degraded"
    ABSENT = "absent"
