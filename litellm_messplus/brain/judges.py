"""The configured judges: built, and updated from the log."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.brain.workers import Workers
from litellm_messplus.costs.price import Price
from litellm_messplus.labels.agreement import Agreement, PositionBias
from litellm_messplus.labels.judge.asking import (
    Asking,
    Grader,
    Grades,
    JudgeCost,
    JudgeSinks,
    Reply,
    WriteGrading,
)
from litellm_messplus.labels.judge.budget import JudgeBudget, Spent
from litellm_messplus.labels.judge.judge import Judge
from litellm_messplus.labels.judge.parity import Comparer
from litellm_messplus.labels.judge.prompts import Message
from litellm_messplus.records import GradingRecord
from litellm_messplus.runtime.tasks import Periodic
from litellm_messplus.settings.schema import MessplusSettings, ZooSettings
from litellm_messplus.store.judging import agreements, preferences, spent

LOOK_SECONDS = 60.0
"""Seconds between two readings of the log, for what was spent and users' verdicts."""
RETRY_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class JudgeCalls:
    """The way to one judge, a model group or one candidate of a zoo, through any worker."""

    workers: Workers
    model: str
    candidate: str | None

    async def __call__(
        self, messages: Sequence[Message], schema: Mapping[str, Any], timeout_seconds: float
    ) -> Reply:
        hands = self.workers.any()
        return await hands.judge(self.model, self.candidate, messages, schema, timeout_seconds)

    async def price(self) -> Price | None:
        """Find what it costs, in dollars; None if that is not known."""
        return await self.workers.any().judge_price(self.model, self.candidate)


class Judges:
    """The judges of a proxy; ``of_zoo`` maps each zoo that has a judge to it, ``largest`` each zoo
    to its largest candidate."""

    def __init__(
        self,
        settings: MessplusSettings,
        largest: Mapping[str, str],
        sinks: JudgeSinks,
        database: AsyncEngine,
        workers: Workers,
    ) -> None:
        self._workers = workers
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
        calls = JudgeCalls(self._workers, group, candidate)
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
        """Read what was spent on judges, and how users agree with them. Raises
        SQLAlchemyError."""
        await self._workers.joined.wait()  # a worker alone knows what a judge costs
        read_at, now = time.monotonic(), datetime.now(UTC)
        today = now.date()
        async with self._database.connect() as connection:
            by_zoo = await spent(connection, today)
            agreeing = await agreements(connection)
            preferring = await preferences(connection) if self._comparers else {}
        for zoo, judge in self.of_zoo.items():
            agreement = agreeing.get((zoo, judge.model), Agreement())
            if comparer := self._comparers.get(zoo):
                comparer.learn(preferring.get((zoo, judge.model), PositionBias()), agreement)
            judge.cost.price = await self._calls[zoo].price() or judge.cost.price
            judge.learn(by_zoo.get(zoo, Spent(today)), agreement, read_at)


def write_in_unit(write: WriteGrading, zoo: ZooSettings, record: GradingRecord) -> None:
    """Write a grading with its cost in the unit of the zoo."""
    write(replace(record, zoo_cost=None if record.cost is None else zoo.of_dollars(record.cost)))
