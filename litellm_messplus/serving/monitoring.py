"""Watching the promises while the proxy serves: the status on demand, alerts and metrics by the
minute."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.deciding.decider import Engine
from litellm_messplus.labels.agreement import LEAST
from litellm_messplus.prediction.learned import zoo_view
from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.tasks import Periodic
from litellm_messplus.serving.metrics import exposition, figures_of, readiness_gauges
from litellm_messplus.serving.shared_counters import Readiness, SharedCounters, counters_of
from litellm_messplus.state.adaptive_policy import AdaptivePolicy
from litellm_messplus.status.alerts import AlertLog
from litellm_messplus.status.build import WINDOW, read_status
from litellm_messplus.status.gauges import Series, live_gauges
from litellm_messplus.status.learned import Learned, learned_live
from litellm_messplus.status.report import LiveLevel, LiveLevels, Status
from litellm_messplus.store.reading import ReadingTakesTooLongError

# Long readings of the log, shared by all who ask: one at a time, whoever gives up waiting.
#
# Reading the status of a long log takes seconds. Prometheus asks every 15 of them, gives up after
# 10, and asks again; people press reload. Each reading of its own would take one connection more,
# until feedback finds none. So there is one reading at a time, all who ask for it wait for the same
# one, and what it found serves those who ask within as long as it took: reading never takes more
# than half of the time, and on a short log everyone sees what is there now.

T = TypeVar("T")

KEPT = 8
"""Findings of different readings that are kept, the newest."""
LONGEST_SECONDS = 60.0
"""Of one reading; then all who wait are told that it takes too long."""


@dataclass(frozen=True, slots=True)
class _Found:
    """The result of a reading, and until when it may be used."""

    value: Any
    until: float


class SharedReadings:
    """The readings that several callers share, one store a worker, used from its event loop."""

    def __init__(
        self,
        *,
        longest_seconds: float = LONGEST_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._longest_seconds = longest_seconds
        self._clock = clock
        self._turn = asyncio.Lock()
        self._found: Bounded[Hashable, _Found] = Bounded(KEPT)
        self._under_way: dict[Hashable, asyncio.Task[Any]] = {}

    async def get(self, key: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        """Return what ``read`` gives, gave a moment ago, or is about to give somebody else.

        Raises what it raises, and ReadingTakesTooLongError after ``longest_seconds``.
        """
        found = self._found.get(key)
        if found is not None and self._clock() < found.until:
            value: T = found.value
            return value
        task = self._under_way.get(key)
        if task is None:
            task = asyncio.create_task(self._read(key, read))
            self._under_way[key] = task
            task.add_done_callback(lambda done: self._ended(key, done))
        result: T = await asyncio.shield(task)  # who gives up ends it for nobody else
        return result

    async def close(self) -> None:
        """End what is under way; whoever waits gets a CancelledError."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, key: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        try:
            async with asyncio.timeout(self._longest_seconds):
                async with self._turn:
                    started = self._clock()
                    value = await read()
        except TimeoutError as error:
            raise ReadingTakesTooLongError(self._longest_seconds) from error
        ended = self._clock()
        self._found[key] = _Found(value, ended + (ended - started))
        return value

    def _ended(self, key: Hashable, task: asyncio.Task[Any]) -> None:
        self._under_way.pop(key, None)
        if not task.cancelled():
            task.exception()  # looked at, though nobody may be waiting any more


SCRAPE_SECONDS = 7.0
"""How long a scrape waits for the status: Prometheus gives up after 10, and counters take 2."""
LOOK_SECONDS = 30.0
"""Between two looks for alerts: an outage is told of within a minute."""


class StatusWatch:
    """The watch over the status, one a worker; each alert is logged once when it comes and once
    when it is over.

    ``database`` is read by connections of its own, so that no reading takes those that feedback
    waits for. ``readiness`` tells whether this worker routes now.
    """

    def __init__(
        self,
        database: AsyncEngine,
        engines: Mapping[str, Engine],
        counters: Counters,
        shared: SharedCounters,
        readiness: Callable[[], Readiness],
    ) -> None:
        self.readiness = readiness
        self._database = database
        self._engines = engines
        self._counters = counters
        self._shared = shared
        self._alerts = AlertLog()
        self._readings = SharedReadings()

    def start(self, periodic: Periodic) -> None:
        """Begin looking for alerts, in the running event loop."""
        failed = "alerts were not looked for"
        periodic.every(LOOK_SECONDS, self.look, "watch_failures", failed, first=LOOK_SECONDS)

    async def look(self) -> None:
        """Log alerts that have come, and those that are over. Raises SQLAlchemyError."""
        self._alerts.update((await self.figures()).alerts)

    async def close(self) -> None:
        """End the readings under way."""
        await self._readings.close()

    async def read(self, window: int = WINDOW) -> Status:
        """Read every promise as it stands. Raises SQLAlchemyError where the database does not
        answer."""

        async def status() -> Status:
            return await read_status(self._database, window, self._live(), await self._running())

        return await self._readings.get(("status", window), status)

    async def figures(self) -> Status:
        """Read the status without what takes long: the calibration."""

        async def figures() -> Status:
            return await read_status(
                self._database,
                WINDOW,
                self._live(),
                await self._running(),
                with_calibration=False,
            )

        return await self._readings.get("figures", figures)

    async def learned(self) -> Learned:
        """Read what reading the prompts has taught every zoo, as it stands.

        Raises SQLAlchemyError where the database does not answer.
        """

        async def found() -> Learned:
            readings = {
                name: zoo_view(engine.state.policy.predictor)
                for name, engine in self._engines.items()
                if isinstance(engine.state.policy, AdaptivePolicy)
            }
            return await learned_live(self._database, readings)

        return await self._readings.get("learned", found)

    async def counters(self) -> dict[str, int]:
        """Return what failed or was left out at any worker, by name."""
        return counters_of((await self._shared.sums()).everyone)

    async def metrics(self) -> str:
        """Write the figures of the status, and what all workers counted, as Prometheus reads
        them; without the database, what is in memory."""
        found = await self._told_in_time()
        counts = (await self._shared.sums()).everyone
        state = readiness_gauges(self.readiness())
        return exposition({**found, **state}, self._engines, counts)

    async def _told_in_time(self) -> dict[Series, float]:
        """Read the figures of the status; those in memory where Prometheus would not wait."""
        try:
            async with asyncio.timeout(SCRAPE_SECONDS):
                return figures_of(await self.figures(), self._engines)
        except Exception:
            self._counters.failure("readings_given_up", "the metrics are told from memory alone")
        is_restored = self.readiness() is not Readiness.ABSENT
        return live_gauges(self._live()) if is_restored else {}

    async def _running(self) -> dict[str, int]:
        """Count what failed at the workers that run: an alert is over when the worker that had the
        failure is."""
        return counters_of((await self._shared.sums()).running)

    def _live(self) -> LiveLevels:
        return {
            (zoo, level): _live_level(engine, level)
            for zoo, engine in self._engines.items()
            for level in engine.zoo.levels
        }


def _live_level(engine: Engine, level: str) -> LiveLevel:
    newest = engine.newest.get(level)
    is_judged = engine.zoo.settings.buy_labels is not None
    return LiveLevel(
        queue=engine.state.policy.queue(level),
        price=newest.price if newest else None,
        is_within_reach=newest.is_within_reach if newest else None,
        alpha=engine.zoo.levels[level].alpha,
        cost_unit=engine.zoo.settings.cost_unit.value,
        least_agreement=LEAST if is_judged else None,
        concern=engine.zoo.concern,
    )
