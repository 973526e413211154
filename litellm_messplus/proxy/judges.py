"""The judges that are configured: made, checked against `model_list`, and kept told of the log."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.errors import ConfigurationError
from litellm_messplus.labels.agreement import Agreement
from litellm_messplus.labels.judge.budget import Spent
from litellm_messplus.labels.judge.grader import Outlets
from litellm_messplus.labels.judge.judge import Judge
from litellm_messplus.proxy.background import Background
from litellm_messplus.proxy.deployments import Deployment
from litellm_messplus.proxy.dollars import public_dollars, stated_dollars
from litellm_messplus.proxy.judge_calls import JudgeCalls
from litellm_messplus.settings.labels import JudgeSettings
from litellm_messplus.settings.schema import DEFAULT_LEVEL, MessplusSettings, ZooSettings
from litellm_messplus.store.agreement import agreements
from litellm_messplus.store.gradings import spent

LOOK_SECONDS = 60.0
"""Between two looks at the log, for what other workers spent and what users said."""
RETRY_SECONDS = 5.0


class Judges:
    """``of_zoo`` holds the judge of every zoo that has one."""

    def __init__(self, settings: MessplusSettings, outlets: Outlets, database: AsyncEngine) -> None:
        self.of_zoo: Mapping[str, Judge] = {
            name: _judge(name, zoo, zoo.labels.judge, settings, outlets)
            for name, zoo in settings.zoos.items()
            if zoo.labels.judge is not None
        }
        self._database = database
        self._counters = outlets.counters
        self._background = Background()

    def start(self) -> None:
        """Begin grading, in the running event loop."""
        if self.of_zoo:
            for judge in self.of_zoo.values():
                judge.start()
            self._background.start(self._watch(), "messplus-judges")

    async def close(self) -> None:
        """Stop looking at the log; the judges themselves are closed with the label desk."""
        await self._background.close()

    async def _watch(self) -> None:
        while True:
            try:
                await self._look()
                await asyncio.sleep(LOOK_SECONDS)
            except Exception:
                self._counters.failure("judge_watch_failures", "the log was not read for a judge")
                await asyncio.sleep(RETRY_SECONDS)

    async def _look(self) -> None:
        today = datetime.now(UTC).date()
        async with self._database.connect() as connection:
            by_zoo = await spent(connection, today)
            agreeing = await agreements(connection)
        for zoo, judge in self.of_zoo.items():
            agreement = agreeing.get((zoo, judge.model), Agreement())
            judge.learn(by_zoo.get(zoo, Spent(today)), agreement)


def _judge(
    name: str,
    zoo: ZooSettings,
    settings: JudgeSettings,
    section: MessplusSettings,
    outlets: Outlets,
) -> Judge:
    levels = (DEFAULT_LEVEL, *zoo.service_levels)
    return Judge(
        name,
        settings,
        {level: zoo.level(level).judge_rate for level in levels},
        JudgeCalls(settings.model),
        outlets,
        seed=section.seed,
        store_text=section.store_text,
    )


def check_judges(settings: MessplusSettings, model_list: Sequence[Deployment]) -> None:
    """Raises ConfigurationError for a judge that is not in ``model_list``, or is a zoo, and for a
    budget in dollars of a judge whose price nobody states."""
    groups = {str(deployment.get("model_name")) for deployment in model_list}
    allowed = sorted(groups - set(settings.zoos))
    for name, zoo in settings.zoos.items():
        if zoo.labels.judge is not None:
            _check(f"messplus.zoos.{name}.labels.judge", zoo.labels.judge, model_list, allowed)


def _check(
    key: str, judge: JudgeSettings, model_list: Sequence[Deployment], allowed: Sequence[str]
) -> None:
    if judge.model not in allowed:
        names = ", ".join(allowed) or "none"
        raise ConfigurationError(
            f"{key}.model",
            judge.model,
            f"a `model_name` of `model_list` that is no zoo (there: {names})",
        )
    own = [deployment for deployment in model_list if deployment.get("model_name") == judge.model]
    if judge.budget_per_day is not None and not all(_has_price(deployment) for deployment in own):
        raise ConfigurationError(
            f"{key}.budget_per_day",
            judge.budget_per_day,
            "nothing, for the judge has no price: state `input_cost_per_token` and "
            "`output_cost_per_token` under its `model_info`, or limit `gradings_per_day` alone",
        )


def _has_price(deployment: Deployment) -> bool:
    try:
        return (stated_dollars(deployment) or public_dollars(deployment)) is not None
    except (TypeError, ValueError):
        return False
