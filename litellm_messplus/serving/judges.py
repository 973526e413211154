"""The configured judges, and how each is called: through the proxy's own router, once, charged to
no key."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextvars import Context
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import litellm
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.costs.price import Price, Usage
from litellm_messplus.labels.agreement import Agreement, PositionBias
from litellm_messplus.labels.judge.asking import (
    Asking,
    Grader,
    Grades,
    JudgeCost,
    JudgeRefusedError,
    JudgeSinks,
    Reply,
    WriteGrading,
)
from litellm_messplus.labels.judge.budget import JudgeBudget, Spent
from litellm_messplus.labels.judge.judge import Judge
from litellm_messplus.labels.judge.parity import Comparer
from litellm_messplus.labels.judge.prompts import Message
from litellm_messplus.records import GradingRecord
from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.runtime.tasks import Periodic
from litellm_messplus.serving.deployments.deployment import (
    Deployment,
    candidate_of,
    exploration_target,
)
from litellm_messplus.serving.deployments.prices import known_dollars
from litellm_messplus.serving.litellm_seam import (
    deployments_of,
    hidden_params,
    llm_router,
    running_router,
)
from litellm_messplus.serving.surfaces import answers
from litellm_messplus.serving.surfaces.answers import AbsurdUsageError, read_usage
from litellm_messplus.settings.labels import BuyingSettings
from litellm_messplus.settings.schema import MessplusSettings, ZooSettings
from litellm_messplus.store.judging import agreements, preferences, spent
from litellm_messplus.store.worker_counters import running

METADATA = {"internal_call_origin": "messplus_judge"}
"""No key, team or user, so LiteLLM charges none; the origin shows in its logs and traces."""
ABOUT_THE_CONTENT = (litellm.ContextWindowExceededError, litellm.ContentPolicyViolationError)
USUAL = 2000.0, 100.0
"""Typical numbers of tokens that a judge reads and writes, for comparing prices."""
BAD_REQUEST = (litellm.BadRequestError, litellm.UnprocessableEntityError)


class JudgeCalls:
    """Calls to one model group, or to one ``candidate`` of a zoo, without a decision.

    Sampling and structured output are requested, and left out if LiteLLM knows that the model does
    not support them. If a server refuses a request with them, and accepts it without, they are
    left out from then on.
    """

    def __init__(self, model: str, candidate: str | None = None) -> None:
        self._model = model
        self._candidate = candidate
        self._is_plain = False

    def price(self) -> Price | None:
        """Find the highest price, in dollars, of the deployments that may be called; None if
        none is known."""
        router = running_router()
        found = (
            known_dollars(each)
            for each in (deployments_of(router) if router is not None else ())
            if each.get("model_name") == self._model
            and self._candidate in (None, candidate_of(each))
        )
        prices = [price for price in found if price is not None]
        return max(prices, key=lambda price: price.of(*USUAL), default=None)

    async def __call__(
        self, messages: Sequence[Message], schema: Mapping[str, Any], timeout_seconds: float
    ) -> Reply:
        form = {
            "temperature": 0.0,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "verdicts", "schema": schema, "strict": True},
            },
        }
        if not self._is_plain:
            try:
                return await self._ask(messages, timeout_seconds, form)
            except BAD_REQUEST as error:
                if isinstance(error, ABOUT_THE_CONTENT):
                    raise JudgeRefusedError(str(error)) from error
        try:
            reply = await self._ask(messages, timeout_seconds, {})
        except BAD_REQUEST as error:
            raise JudgeRefusedError(str(error)) from error
        self._is_plain = True
        return reply

    async def _ask(
        self, messages: Sequence[Message], timeout_seconds: float, form: Mapping[str, Any]
    ) -> Reply:
        call = self._complete(messages, timeout_seconds, form)
        # A fresh context: LiteLLM sets context variables, which would leak into later gradings.
        response = await Context().run(asyncio.create_task, call)
        hidden = hidden_params(response)
        usage = _usage(response)
        # Without usage LiteLLM reports a cost of zero, which is no measurement.
        cost = hidden.get("response_cost") if usage else None
        return Reply(
            text=answers.text(response),
            cost=None if cost is None else float(cost),
            prompt_tokens=usage.prompt_tokens if usage else None,
            completion_tokens=usage.completion_tokens if usage else None,
        )

    async def _complete(
        self, messages: Sequence[Message], timeout_seconds: float, form: Mapping[str, Any]
    ) -> Any:
        exploration_target.set(self._candidate)
        return await llm_router().acompletion(
            model=self._model,
            messages=[dict(message) for message in messages],
            timeout=timeout_seconds,
            metadata=dict(METADATA),
            num_retries=0,
            disable_fallbacks=True,
            drop_params=True,
            **form,
        )


def _usage(response: Any) -> Usage | None:
    """Read the usage; None if nothing usable was reported: a grading's tokens are only shown to
    people."""
    try:
        return read_usage(answers.usage(response))
    except AbsurdUsageError:
        return None


# The configured judges: built, checked against `model_list`, and updated from the log.

LOOK_SECONDS = 60.0
"""Seconds between two readings of the log, for other workers' spending and users' verdicts."""
RETRY_SECONDS = 5.0


class Judges:
    """The judges of a proxy; ``of_zoo`` maps each zoo that has a judge to it, ``largest`` each zoo
    to its largest candidate."""

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


def check_judges(settings: MessplusSettings, model_list: Sequence[Deployment]) -> None:
    """Check the judges. Raises ConfigurationError for a judge that is not in ``model_list``, or is
    a zoo, and for a budget in dollars of a judge without a stated price."""
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
            "`output_cost_per_token` under its `model_info`, or set a `label_rate` alone",
        )
    if zoo.label_rate is None:
        raise ConfigurationError(
            f"{key}.judge",
            judge,
            "a judge with a price, for what labels cost is held to a share of what is saved: state "
            "`input_cost_per_token` and `output_cost_per_token` under its `model_info`, or set a "
            "`label_rate`",
        )
