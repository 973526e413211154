"""The judges that are configured: made, checked against `model_list`, and kept told of the log."""

import asyncio
from collections.abc import Mapping, Sequence
from contextvars import Context
from datetime import UTC, datetime
from typing import Any

import litellm
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.costs.price import Usage
from litellm_messplus.errors import ConfigurationError
from litellm_messplus.labels.agreement import Agreement
from litellm_messplus.labels.judge.grader import JudgeRefusedError, JudgeSinks, Reply, Spent
from litellm_messplus.labels.judge.judge import Judge
from litellm_messplus.labels.judge.prompt import Message
from litellm_messplus.proxy.deployments.deployment import Deployment
from litellm_messplus.proxy.deployments.prices import public_dollars, stated_dollars
from litellm_messplus.proxy.litellm_seam import hidden_params, llm_router
from litellm_messplus.proxy.surfaces import answers
from litellm_messplus.proxy.surfaces.usage import AbsurdUsageError, read_usage
from litellm_messplus.runtime import Background
from litellm_messplus.settings.labels import JudgeSettings
from litellm_messplus.settings.schema import DEFAULT_LEVEL, MessplusSettings, ZooSettings
from litellm_messplus.store.audits import agreements, spent

# How a judge is called: through the proxy's own router, once, charged to nobody.

METADATA = {"internal_call_origin": "messplus_judge"}
"""No key, team or user in it, so LiteLLM charges nobody; its logs and traces say what it was."""
ABOUT_THE_CONTENT = (litellm.ContextWindowExceededError, litellm.ContentPolicyViolationError)
BAD_REQUEST = (litellm.BadRequestError, litellm.UnprocessableEntityError)


class JudgeCalls:
    """The calls to one model group that judges.

    Sampling and structured output are asked for, and left out where LiteLLM knows that the model
    does not take them. A server that refuses a request with them, and takes it without, is asked
    without from then on.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._is_plain = False

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
        # A fresh context: LiteLLM leaves things in it, which would go from grading to grading.
        response = await Context().run(asyncio.create_task, call)
        hidden = hidden_params(response)
        usage = _usage(response)
        # Without usage LiteLLM says zero, which is no measurement.
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
    """Read the usage; None where nothing of use was reported: a grading's tokens are for people
    alone."""
    try:
        return read_usage(answers.usage(response))
    except AbsurdUsageError:
        return None


LOOK_SECONDS = 60.0
"""Between two looks at the log, for what other workers spent and what users said."""
RETRY_SECONDS = 5.0


class Judges:
    """The judges of a proxy; ``of_zoo`` holds the judge of every zoo that has one."""

    def __init__(
        self, settings: MessplusSettings, sinks: JudgeSinks, database: AsyncEngine
    ) -> None:
        self.of_zoo: Mapping[str, Judge] = {
            name: _judge(name, zoo, zoo.labels.judge, settings, sinks)
            for name, zoo in settings.zoos.items()
            if zoo.labels.judge is not None
        }
        self._database = database
        self._counters = sinks.counters
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
    sinks: JudgeSinks,
) -> Judge:
    levels = (DEFAULT_LEVEL, *zoo.service_levels)
    return Judge(
        name,
        settings,
        {level: zoo.level(level).judge_rate for level in levels},
        JudgeCalls(settings.model),
        sinks,
        seed=section.seed,
    )


def check_judges(settings: MessplusSettings, model_list: Sequence[Deployment]) -> None:
    """Check the judges. Raises ConfigurationError for a judge that is not in ``model_list``, or is
    a zoo, and for a budget in dollars of a judge whose price nobody states."""
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
