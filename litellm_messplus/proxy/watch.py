"""Watching the promises while the proxy serves: the status on demand, alerts and metrics by the
minute."""

import asyncio
from collections.abc import Mapping

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.counters import Counters
from litellm_messplus.engine import Engine
from litellm_messplus.learning.adaptive import AdaptivePolicy
from litellm_messplus.prediction.learned import reading_of
from litellm_messplus.proxy.background import Background
from litellm_messplus.proxy.carbon import carbon_gauges
from litellm_messplus.proxy.price_gauges import price_gauges
from litellm_messplus.proxy.shared_counters import SharedCounters, counters_of, measured_of
from litellm_messplus.proxy.shared_reading import SharedReadings
from litellm_messplus.status.alerts import AlertLog
from litellm_messplus.status.build import WINDOW, read_status
from litellm_messplus.status.gauges import gauges
from litellm_messplus.status.learned import Learned, learned_live
from litellm_messplus.status.live import LiveLevel
from litellm_messplus.status.report import Status

LOOK_SECONDS = 60.0
"""Between two looks for alerts; reading the status of 100,000 requests takes about two seconds."""


class StatusWatch:
    """One a worker; each alert is logged once when it comes and once when it is over.

    ``database`` is read by connections of its own, so that no reading takes those that feedback
    waits for.
    """

    def __init__(
        self,
        database: AsyncEngine,
        engines: Mapping[str, Engine],
        counters: Counters,
        shared: SharedCounters,
    ) -> None:
        self._database = database
        self._engines = engines
        self._counters = counters
        self._shared = shared
        self._alerts = AlertLog()
        self._background = Background()
        self._readings = SharedReadings()

    def start(self) -> None:
        """Begin looking for alerts, in the running event loop."""
        self._background.start(self._run(), "messplus-watch")

    async def close(self) -> None:
        """Stop looking, and reading."""
        await self._background.close()
        await self._readings.close()
        await self._database.dispose()

    async def read(self, window: int = WINDOW) -> Status:
        """Every promise as it stands. Raises SQLAlchemyError where the database does not answer."""

        async def status() -> Status:
            return await read_status(self._database, window, self._live(), await self._running())

        return await self._readings.get(("status", window), status)

    async def learned(self) -> Learned:
        """What reading the prompts has taught every zoo, as it stands.

        Raises SQLAlchemyError where the database does not answer.
        """
        readings = {
            name: reading_of(engine.state.policy.predictor)
            for name, engine in self._engines.items()
            if isinstance(engine.state.policy, AdaptivePolicy)
        }

        async def found() -> Learned:
            return await learned_live(self._database, readings)

        return await self._readings.get("learned", found)

    async def counters(self) -> dict[str, int]:
        """What failed or was left out at any worker, by name."""
        return counters_of((await self._shared.sums()).everyone)

    async def metrics(self) -> str:
        """The status, the counters and the encoders' own in Prometheus's text format."""
        status = await self._figures()
        zoos = {name: engine.zoo for name, engine in self._engines.items()}
        found = gauges(status) | carbon_gauges(status, zoos) | price_gauges(self._engines)
        counts = (await self._shared.sums()).everyone
        for name, count in counters_of(counts).items():
            found[f'messplus_counter{{name="{name}"}}'] = float(count)
        for name, value in measured_of(counts).items():
            found[f"messplus_encoder_{name}"] = value
        return "".join(f"{name} {value:g}\n" for name, value in found.items())

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                self._alerts.update((await self._figures()).alerts)
            except Exception:
                self._counters.failure("watch_failures", "alerts were not looked for")

    async def _figures(self) -> Status:
        """The status without what takes long."""

        async def figures() -> Status:
            return await read_status(
                self._database,
                WINDOW,
                self._live(),
                await self._running(),
                with_calibration=False,
            )

        return await self._readings.get("figures", figures)

    async def _running(self) -> dict[str, int]:
        """Of the workers that run: an alert is over when the worker that had the failure is."""
        return counters_of((await self._shared.sums()).running)

    def _live(self) -> dict[tuple[str, str], LiveLevel]:
        return {
            (zoo, level): _live_level(engine, level)
            for zoo, engine in self._engines.items()
            for level in engine.zoo.levels
        }


def _live_level(engine: Engine, level: str) -> LiveLevel:
    newest = engine.newest.get(level)
    judge = engine.zoo.settings.labels.judge
    return LiveLevel(
        queue=engine.state.policy.queue(level),
        price=newest.price if newest else None,
        is_within_reach=newest.is_within_reach if newest else None,
        alpha=engine.zoo.levels[level].alpha,
        cost_unit=engine.zoo.settings.cost_unit.value,
        least_agreement=judge.least_agreement if judge else None,
    )
