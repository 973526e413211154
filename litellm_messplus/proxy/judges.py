"""The judges that are configured: made, checked against `model_list`, and kept told of the log."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.errors import ConfigurationError
from litellm_messplus.labels.agreement import Agreement
from litellm_messplus.labels.judge.budget import JudgeBudget, Spent
from litellm_messplus.labels.judge.cost import JudgeCost
from litellm_messplus.labels.judge.grader import Asking, Grader, Grades, JudgeSinks, WriteGrading
from litellm_messplus.labels.judge.judge import Judge
from litellm_messplus.labels.parity.comparer import Comparer
from litellm_messplus.labels.parity.position import PositionBias
from litellm_messplus.proxy.deployments.deployment import Deployment
from litellm_messplus.proxy.deployments.prices import known_dollars
from litellm_messplus.proxy.judge_calls import JudgeCalls
from litellm_messplus.records import GradingRecord
from litellm_messplus.settings.labels import BuyingSettings
from litellm_messplus.settings.schema import MessplusSettings, ZooSettings
from litellm_messplus.store.audits import agreements, preferences, spent
from litellm_messplus.store.worker_counters import running
from litellm_messplus.tasks import Periodic

LOOK_SECONDS = 60.0
"""Between two looks at the log, for what other workers spent and what users said."""
RETRY_SECONDS = 5.0


class Judges:
    """The judges of a proxy; ``of_zoo`` holds the judge of every zoo that has one, ``largest``
    names each zoo's largest candidate."""

    def __init__(
        self,
        settings: MessplusSettings,
        largest: Mapping[str, str],
        sinks: JudgeSinks,
        database: AsyncEngine,
    ) -> None:
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
        calls = JudgeCalls(buying.judge) if buying.judge else JudgeCalls(name, largest)
        # What labels may cost that are bought as they are needed, their purse knows.
        dollars = None if zoo.label_rate is None else buying.budget_per_day
        budget = JudgeBudget(gradings=buying.gradings_per_day, dollars=dollars)
        cost, model = JudgeCost(), buying.judge or largest
        limit = buying.timeout_seconds
        own = replace(sinks, write=partial(write_in_unit, sinks.write, zoo))
        asking = Asking(model, calls, budget, cost, own, timeout_seconds=limit)
        grades: Grades
        if buying.how == "compare":
            grades = Comparer(largest, asking, sinks.report, sinks.counters)
            self._comparers[name] = grades
        else:
            grades = Grader(asking, buying.rubric, sinks.report, seed=seed)
        self._calls[name] = calls
        return Judge(
            *(name, model, grades, budget, cost, sinks.counters), concurrent=buying.concurrent
        )

    async def look(self) -> None:
        """Take what all workers spent on judges, and how users agree with them. Raises
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


def check_judges(settings: MessplusSettings, model_list: Sequence[Deployment]) -> None:
    """Check the judges. Raises ConfigurationError for a judge that is not in ``model_list``, or is
    a zoo, and for a budget in dollars of a judge whose price nobody states."""
    groups = {str(deployment.get("model_name")) for deployment in model_list}
    allowed = sorted(groups - set(settings.zoos))
    for name, zoo in settings.zoos.items():
        if zoo.buy_labels is not None:
            _check(name, zoo, zoo.buy_labels, model_list, allowed)


def _check(
    name: str,
    zoo: ZooSettings,
    buying: BuyingSettings,
    model_list: Sequence[Deployment],
    allowed: Sequence[str],
) -> None:
    key, judge = f"messplus.zoos.{name}.buy_labels", buying.judge
    if judge is not None and judge not in allowed:
        names = ", ".join(allowed) or "none"
        raise ConfigurationError(
            f"{key}.judge", judge, f"a `model_name` of `model_list` that is no zoo (there: {names})"
        )
    own = [each for each in model_list if each.get("model_name") == (judge or name)]
    if all(known_dollars(deployment) is not None for deployment in own):
        return
    if buying.budget_per_day is not None:
        raise ConfigurationError(
            f"{key}.budget_per_day",
            buying.budget_per_day,
            "nothing, for the judge has no price: state `input_cost_per_token` and "
            "`output_cost_per_token` under its `model_info`, or limit `gradings_per_day` alone",
        )
    if zoo.label_rate is None:
        raise ConfigurationError(
            f"{key}.judge",
            judge,
            "a judge with a price, for what labels cost is held to a share of what is saved: state "
            "`input_cost_per_token` and `output_cost_per_token` under its `model_info`, or set a "
            "`label_rate`",
        )
