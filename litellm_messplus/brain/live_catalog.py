"""What the workers' routers show of the zoos: models come, go and change their price.

Prices apply at once. The log alone defines the candidates: what a router shows is reported there,
and applied like any entry."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.brain.messages import Replica
from litellm_messplus.core.catalog import Catalog, plain_price
from litellm_messplus.core.engine import Engine
from litellm_messplus.costs.price import Price
from litellm_messplus.records import CandidateRecord, new_id
from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.tasks import Tasks
from litellm_messplus.runtime.vocabulary import Change
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.store import log

SWEEP_SECONDS = 2.0
"""Seconds between two looks for changes that are due."""
REMEMBERED = 4096
"""Newest deployments of a zoo whose candidates are remembered, those that are gone too."""
LASTING_SECONDS = 90.0
"""Three times LiteLLM's default interval for bringing its models to all workers."""


class Reports:
    """The reports of one zoo by one worker: differences between its router and the log.

    Workers take over LiteLLM's changes at different times, up to half a minute apart, so a
    difference between a router and the log alone is no news: the log may be newer. A worker reports
    a change in its own router at once, and any other difference after it has lasted: a candidate
    that its router shows all the time is present, whatever another worker reported; one never shown
    since the start is gone, and is reported once only, as another worker's view may be newer.
    """

    def __init__(self) -> None:
        self._shown: dict[str, Price] | None = None
        self._changed: set[str] = set()
        self._since: dict[str, float] = {}
        self._given_up: set[str] = set()

    def saw(self, prices: Mapping[str, Price]) -> None:
        """Note the candidates that the router shows, and their prices."""
        before = {} if self._shown is None else self._shown
        names = prices.keys() | before.keys()
        self._changed |= {name for name in names if prices.get(name) != before.get(name)}
        self._shown = dict(prices)

    def due(
        self, zoo: Zoo, catalog: Catalog, logged: Mapping[str, Price], now: float
    ) -> dict[str, Change]:
        """Return the changes to report now; ``logged`` are the prices in the log. Called until the
        log agrees."""
        if self._shown is None:
            return {}
        found = self._differences(zoo, catalog, logged)
        self._changed &= found.keys()
        self._given_up &= set(zoo.candidates) - self._shown.keys()
        self._since = {name: self._since.get(name, now) for name in found}
        due = {name: change for name, change in found.items() if self._is_due(name, change, now)}
        self._given_up |= {name for name, change in due.items() if change is Change.GONE}
        return due

    def _differences(
        self, zoo: Zoo, catalog: Catalog, logged: Mapping[str, Price]
    ) -> dict[str, Change]:
        shown = self._shown or {}
        found = {}
        for name, price in shown.items():
            if name in catalog.left_out:
                continue
            is_unknown = not zoo.has_anchor and name not in catalog.standings
            if name not in zoo.present or is_unknown:
                found[name] = Change.APPEARED
            elif logged.get(name) != price:
                found[name] = Change.PRICED
        return found | {name: Change.GONE for name in zoo.present if name not in shown}

    def _is_due(self, name: str, change: Change, now: float) -> bool:
        if name in self._changed:
            return True
        if change is Change.PRICED or name in self._given_up:
            return False
        return now - self._since[name] >= LASTING_SECONDS


@dataclass(eq=False, repr=False)
class LiveCatalog:
    """The candidates of all zoos as the workers' routers show them. ``follow`` triggers a read of
    the log."""

    engines: Mapping[str, Engine]
    database: AsyncEngine
    counters: Counters
    follow: Callable[[], None]

    def __post_init__(self) -> None:
        self._reports: dict[str, defaultdict[str, Reports]] = {}
        self._replicas: dict[str, Bounded[str, str]] = {
            name: Bounded(REMEMBERED) for name in self.engines
        }
        self._saw: dict[str, Sequence[Replica]] = {}
        self._due = asyncio.Event()
        self._unpriced: set[tuple[str, str]] = set()

    def start(self, tasks: Tasks) -> None:
        """Begin to report, in the running event loop."""
        tasks.start(self._run(), "live-zoos")

    def candidate(self, zoo: str, deployment: str | None) -> str | None:
        """Find the candidate that a deployment is a replica of; None if it is not of that zoo."""
        return self._replicas[zoo].get(deployment or "")

    def saw(self, zoo: str, replicas: Sequence[Replica]) -> None:
        """Take the candidates of the healthy deployments of a request."""
        if replicas != self._saw.get(zoo):
            self._saw[zoo] = replicas
            self._replicas[zoo].update([(each.identity, each.candidate) for each in replicas])

    def leave(self, worker: str) -> None:
        """Forget what the router of a worker showed."""
        self._reports.pop(worker, None)

    def take(
        self, worker: str, zoo: str, prices: Mapping[str, Price], replicas: Mapping[str, str]
    ) -> None:
        """Take over what the router of a worker shows of a zoo: the prices that are known, and the
        candidate of each deployment, those that are gone too."""
        engine, there = self.engines[zoo], set(replicas.values())
        self._replicas[zoo].update(replicas)
        engine.reprice(prices)
        for candidate in there - prices.keys() - set(engine.zoo.candidates):
            if (zoo, candidate) not in self._unpriced:
                self._unpriced.add((zoo, candidate))
                self.counters.failure(
                    "candidates_unpriced", f"{candidate} came to {zoo} without a price: left out"
                )
        self._unpriced = {each for each in self._unpriced if each[0] != zoo or each[1] in there}
        known = {each: engine.zoo.prices[each] for each in there & set(engine.zoo.candidates)}
        self._reports.setdefault(worker, defaultdict(Reports))[zoo].saw({**known, **prices})
        self._due.set()

    async def report(self) -> None:
        """Report the changes that are due. Raises SQLAlchemyError."""
        has_reported = False
        for reports in list(self._reports.values()):
            for name, engine in self.engines.items():
                due = reports[name].due(
                    engine.zoo, engine.state.catalog, engine.logged_prices, time.monotonic()
                )
                # All before the first is written: the log may tell of a change meanwhile.
                entries = [_entry(engine, *each) for each in due.items()]
                for record, after in entries:
                    has_reported |= (
                        await log.append_change(self.database, record, after) is not None
                    )
        if has_reported:
            self.follow()

    async def _run(self) -> None:
        while True:
            self._due.clear()
            with self.counters.tolerated("live_zoo_failures", "changes of the models wait"):
                await self.report()
            with suppress(TimeoutError):
                async with asyncio.timeout(SWEEP_SECONDS):
                    await self._due.wait()


def _entry(engine: Engine, candidate: str, change: Change) -> tuple[CandidateRecord, int | None]:
    """Return the log's entry of a change, and how many changes of the candidate come before it."""
    price = None if change is Change.GONE else engine.prices_now.get(candidate)
    standing = engine.state.catalog.standings.get(candidate)
    record = CandidateRecord(
        new_id(), engine.zoo.name, candidate, datetime.now(UTC), change, plain_price(price)
    )
    if standing is None and candidate in engine.zoo.configured:
        return record, 0
    return record, None if standing is None else standing.changes
