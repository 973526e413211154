"""Monitoring of the promises while the proxy serves: status on demand, periodic alerts, and
metrics."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.brain.metrics import exposition, readiness_gauges
from litellm_messplus.brain.workers import Readiness, Workers, counters_of
from litellm_messplus.core.adaptive_policy import AdaptivePolicy
from litellm_messplus.core.engine import Engine
from litellm_messplus.figures.figure import Plain, Series
from litellm_messplus.journal import Journal
from litellm_messplus.labels.agreement import LEAST
from litellm_messplus.records import CallRecord, served_call_id
from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.runtime.counters import Counters, logger
from litellm_messplus.runtime.errors import LOST, error_words
from litellm_messplus.runtime.tasks import Periodic
from litellm_messplus.runtime.vocabulary import CallRole, CallStatus, Failure
from litellm_messplus.settings.serving import RetentionSettings
from litellm_messplus.status.alerts import AlertLog, RecentFailures, unrouted_of
from litellm_messplus.status.build import LAST, read_status
from litellm_messplus.status.figures import LiveLevel, LiveLevels, gauges, live_gauges
from litellm_messplus.store import pruning
from litellm_messplus.store.answered import left_open
from litellm_messplus.store.model_changes import changes_of
from litellm_messplus.store.reading import ReadingTakesTooLongError
from litellm_messplus.upkeep.prune import delete_before

# Long readings of the log, shared by all callers: one at a time, even if a caller stops waiting.
#
# Reading the status of a long log takes seconds. Prometheus scrapes every 15 s, gives up after
# 10 s, and tries again; people press reload. Separate readings would each take a connection, until
# none is left for feedback. So there is one reading at a time, all its callers wait for the same
# one, and its result is reused for as long as it took: reading never takes more than half of the
# time, and on a short log all callers see the current state.

T = TypeVar("T")

KEPT = 8
"""Number of results of different readings that are kept, the newest."""
LONGEST_SECONDS = 60.0
"""Timeout in seconds of one reading; then all its callers get ReadingTakesTooLongError."""


@dataclass(frozen=True, slots=True)
class _Found:
    """The result of a reading, and the time until which it may be reused."""

    value: Any
    until: float


@dataclass(eq=False, repr=False, kw_only=True)
class SharedReadings:
    """The readings that callers share; used from one event loop."""

    longest_seconds: float = LONGEST_SECONDS
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._turn = asyncio.Lock()
        self._found: Bounded[Hashable, _Found] = Bounded(KEPT)
        self._under_way: dict[Hashable, asyncio.Task[Any]] = {}

    async def get(self, key: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        """Return the result of ``read``: a new one, a recent one, or that of a running call.

        Raises what ``read`` raises, and ReadingTakesTooLongError after ``longest_seconds``.
        """
        found = self._found.get(key)
        if found is not None and self.clock() < found.until:
            value: T = found.value
            return value
        task = self._under_way.get(key)
        if task is None:
            task = asyncio.create_task(self._read(key, read))
            self._under_way[key] = task
            task.add_done_callback(lambda done: self._ended(key, done))
        result: T = await asyncio.shield(task)  # a cancelled caller leaves it running
        return result

    async def close(self) -> None:
        """Cancel the running readings; their callers get a CancelledError."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, key: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        try:
            async with asyncio.timeout(self.longest_seconds):
                async with self._turn:
                    started = self.clock()
                    value = await read()
        except TimeoutError as error:
            raise ReadingTakesTooLongError(self.longest_seconds) from error
        ended = self.clock()
        self._found[key] = _Found(value, ended + (ended - started))
        return value

    def _ended(self, key: Hashable, task: asyncio.Task[Any]) -> None:
        self._under_way.pop(key, None)
        if not task.cancelled():
            task.exception()  # retrieved, in case no caller waits any more


SCRAPE_SECONDS = 7.0
"""Seconds that a scrape waits for the status: Prometheus gives up after 10."""
LOOK_SECONDS = 30.0
"""Seconds between two checks for alerts: an outage is reported within a minute."""


@dataclass(eq=False, repr=False)
class StatusWatch:
    """The watch over the status; each alert is logged once when it comes and once
    when it is over.

    ``database`` has connections of its own, so that readings take none from feedback.
    ``readiness`` returns whether requests are routed now.
    """

    database: AsyncEngine
    engines: Mapping[str, Engine]
    own_counters: Counters
    workers: Workers
    readiness: Callable[[], Readiness]

    def __post_init__(self) -> None:
        self._alerts, self._recent = AlertLog(), RecentFailures()
        self._readings = SharedReadings()

    def start(self, periodic: Periodic) -> None:
        """Begin the checks for alerts, in the running event loop."""
        failed = "alerts were not looked for"
        periodic.every(LOOK_SECONDS, self.look, "watch_failures", failed, first=LOOK_SECONDS)

    async def look(self) -> None:
        """Log new alerts, and those that are over. Raises SQLAlchemyError."""
        self._alerts.update((await self.figures())["alerts"])

    async def close(self) -> None:
        """Cancel the running readings."""
        await self._readings.close()

    async def read(self, window: int = LAST) -> Plain:
        """Read the current status of every promise. Raises SQLAlchemyError if the database does not
        answer."""
        return await self._readings.get(("status", window), partial(self._status, window))

    async def figures(self) -> Plain:
        """Read the status without the calibration, which takes long."""
        figures = partial(self._status, LAST, with_calibration=False)
        return await self._readings.get("figures", figures)

    async def _status(self, window: int, **chosen: bool) -> Plain:
        """Read the status, with the recent failures of the running workers: an alert ends with the
        worker that had the failure."""
        sums = self.workers.sums()
        running = self._recent.of(counters_of(sums.running))
        found = await read_status(self.database, window, self._live(), running, **chosen)
        return found | {"unrouted": unrouted_of(sums.everyone)}

    def counters(self) -> dict[str, int]:
        """Return the counts of failures and omissions of all workers, by name."""
        return counters_of(self.workers.sums().everyone)

    async def metrics(self) -> str:
        """Write the figures of the status, and the counters of all workers, in Prometheus's
        format; without the database, what is in memory."""
        found = await self._read_in_time()
        counts = self.workers.sums().everyone
        state = readiness_gauges(self.readiness())
        return exposition({**found, **state}, counts)

    async def _read_in_time(self) -> dict[Series, float]:
        """Read the figures of the status; those in memory if that fails or takes too long."""
        with self.own_counters.tolerated(
            "readings_given_up", "the metrics are read from memory alone"
        ):
            async with asyncio.timeout(SCRAPE_SECONDS):
                return gauges(await self.figures())
        is_restored = self.readiness() is not Readiness.ABSENT
        return live_gauges(self._live()) if is_restored else {}

    def _live(self) -> LiveLevels:
        return {
            (zoo, level): _live_level(engine, level)
            for zoo, engine in self.engines.items()
            for level in engine.zoo.promises(engine.state.requests)
        }


def _live_level(engine: Engine, level: str) -> LiveLevel:
    newest, policy = engine.newest.get(level), engine.state.policy
    changes = (
        changes_of(engine.zoo.name, policy.predictor) if isinstance(policy, AdaptivePolicy) else ()
    )
    is_judged = engine.zoo.settings.buy_labels is not None
    return LiveLevel(
        queue=policy.queue(level),
        price=newest.price if newest else None,
        is_within_reach=newest.is_within_reach if newest else None,
        alpha=engine.zoo.streams[level].alpha,
        cost_unit=engine.zoo.settings.cost_unit.value,
        least_agreement=LEAST if is_judged else None,
        concern=engine.zoo.concern,
        changes=tuple(each for each in changes if each.is_new(datetime.now(UTC))),
    )


# Deleting old requests once a day, if the settings limit how long requests are kept.

FIRST_SECONDS = 30.0
"""Seconds from the start to the first pruning, to leave the start to other work."""
DAY_SECONDS = 86_400.0


class Retention:
    """The deletion of old requests."""

    def __init__(
        self, database: AsyncEngine, settings: RetentionSettings | None, counters: Counters
    ) -> None:
        self._database = database
        self._settings = settings
        self._counters = counters

    def start(self, periodic: Periodic) -> None:
        """Begin in the running event loop, if retention is configured. What a stop interrupts is
        finished by the next one."""
        if self._settings is not None:
            failed = "the log was not pruned"
            periodic.every(
                DAY_SECONDS, self.look, "retention_failures", failed, first=FIRST_SECONDS
            )

    async def look(self) -> None:
        """Delete what is old enough now. Raises SQLAlchemyError."""
        if self._settings is None:
            return
        before = datetime.now(UTC) - timedelta(days=self._settings.keep_days)
        if deleted := await delete_before(self._database, before):
            logger.info("pruned %d requests of before %s", deleted, before)
        _, held = await pruning.count(self._database, before)
        if held:
            logger.warning(
                "%d older requests stay in the log until a snapshot holds all about them: a proxy "
                "takes one every 10,000 records, and when it stops",
                held,
            )
        self._counters.add("retention_runs")


# Requests that workers which are gone have left open: they are ended, as no one else does it.

FIRST_SECONDS, SECONDS = 90.0, 3600.0
"""Seconds until the first look, when every worker is connected again, and between two."""


@dataclass(eq=False, repr=False)
class LostRequests:
    """The ends of the requests of workers that are gone."""

    database: AsyncEngine
    journal: Journal
    workers: Workers

    def start(self, periodic: Periodic) -> None:
        """Begin to look for them, in the running event loop."""
        failed = "outcome_failures", "ends were not looked for"
        periodic.every(SECONDS, self.end, *failed, first=FIRST_SECONDS)

    async def end(self) -> None:
        """End what workers that are gone left open. Raises SQLAlchemyError."""
        started = self.workers.first_started
        if started is None:
            return
        for request_id, chosen in await left_open(self.database, started):
            self.journal.write(lost_call(request_id, chosen))


def lost_call(request_id: str, chosen: str) -> CallRecord:
    """Build the end of a request of which no end is reported any more."""
    return CallRecord(
        call_id=served_call_id(request_id),
        request_id=request_id,
        ended_at=datetime.now(UTC),
        role=CallRole.SERVED,
        status=CallStatus.FAILURE,
        candidate=chosen,
        error=error_words(LOST),
        failure=Failure.UNKNOWN,
    )
