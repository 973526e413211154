"""The configured judges: built, and updated from the log."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Protocol

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.costs.price import Price
from litellm_messplus.labels.agreement import Agreement, PositionBias
from litellm_messplus.labels.judge.asking import (
    Ask,
    Asking,
    Grader,
    Grades,
    JudgeCost,
    JudgeSinks,
    WriteGrading,
)
from litellm_messplus.labels.judge.budget import JudgeBudget, Spent
from litellm_messplus.labels.judge.judge import Judge
from litellm_messplus.labels.judge.parity import Comparer
from litellm_messplus.records import GradingRecord
from litellm_messplus.runtime.tasks import Periodic
from litellm_messplus.settings.schema import MessplusSettings, ZooSettings
from litellm_messplus.store.judging import agreements, preferences, spent
from litellm_messplus.store.worker_counters import running

LOOK_SECONDS = 60.0
"""Seconds between two readings of the log, for other workers' spending and users' verdicts."""
RETRY_SECONDS = 5.0


class JudgeCalls(Ask, Protocol):
    """The way to one judge, and its price."""

    def price(self) -> Price | None:
        """Find what it costs, in dollars; None if that is not known."""


CallsOf = Callable[[str, str | None], JudgeCalls]
"""Makes the way to a model group, or to one candidate of a zoo."""


class Judges:
    """The judges of a proxy; ``of_zoo`` maps each zoo that has a judge to it, ``largest`` each zoo
    to its largest candidate."""

    def __init__(
        self,
        settings: MessplusSettings,
        largest: Mapping[str, str],
        sinks: JudgeSinks,
        database: AsyncEngine,
        calls_of: CallsOf,
    ) -> None:
        self._calls_of = calls_of
        self._comparers: dict[str, Comparer] = {}
        self._calls: dict[str, JudgeCalls] = {}
        self.of_zoo: Mapping[str, Judge] = {
            name: judge
            for name, zoo in settings.zoos.items()
            if (judge := self._judge(name, zoo, largest[name], settings.seed, sinks))
        }
        self._database = database

    def start(self, periodic: Periodic) -> None:
        """Begin grading, in the running event loop; the label desk closes the judges."""
        if self.of_zoo:
            for judge in self.of_zoo.values():
                judge.start()
            failed = "the log was not read for a judge"
            periodic.every(
                LOOK_SECONDS, self.look, "judge_watch_failures", failed, retry=RETRY_SECONDS
            )

    def _judge(
        self, name: str, zoo: ZooSettings, largest: str, seed: int, sinks: JudgeSinks
    ) -> Judge | None:
        buying = zoo.buy_labels
        if buying is None:
            return None
        group, candidate = (buying.judge, None) if buying.judge else (name, largest)
        calls = self._calls_of(group, candidate)
        # The cost of labels that are bought as needed is limited by their purse.
        dollars = None if zoo.label_rate is None else buying.budget_per_day
        budget = JudgeBudget(dollars)
        cost, model = JudgeCost(), buying.judge or largest
        own = replace(sinks, write=partial(write_in_unit, sinks.write, zoo))
        asking = Asking(model, calls, budget, cost, own)
        grades: Grades
        if buying.how == "compare":
            grades = Comparer(largest, asking, sinks.report, sinks.counters)
            self._comparers[name] = grades
        else:
            grades = Grader(asking, buying.rubric, sinks.report, seed=seed)
        self._calls[name] = calls
        return Judge(name, model, grades, budget, cost, sinks.counters)

    async def look(self) -> None:
        """Read what all workers spent on judges, and how users agree with them. Raises
        SQLAlchemyError."""
        read_at, now = time.monotonic(), datetime.now(UTC)
        today = now.date()
        async with self._database.connect() as connection:
            workers = await running(connection, now)
            by_zoo = await spent(connection, today)
            agreeing = await agreements(connection)
            preferring = await preferences(connection) if self._comparers else {}
        for zoo, judge in self.of_zoo.items():
            agreement = agreeing.get((zoo, judge.model), Agreement())
            if comparer := self._comparers.get(zoo):
                comparer.learn(preferring.get((zoo, judge.model), PositionBias()), agreement)
            judge.cost.price = self._calls[zoo].price() or judge.cost.price
            judge.learn(by_zoo.get(zoo, Spent(today)), agreement, read_at, workers)


def write_in_unit(write: WriteGrading, zoo: ZooSettings, record: GradingRecord) -> None:
    """Write a grading with its cost in the unit of the zoo."""
    write(replace(record, zoo_cost=None if record.cost is None else zoo.of_dollars(record.cost)))
