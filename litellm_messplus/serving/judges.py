"""The calls of judges: through the proxy's own router, once, charged to no key; and the models that
may judge."""

import asyncio
from collections.abc import Mapping, Sequence
from contextvars import Context
from typing import Any

import litellm

from litellm_messplus.costs.price import Price, Usage
from litellm_messplus.labels.judge.asking import JudgeRefusedError, Reply
from litellm_messplus.labels.judge.prompts import Message
from litellm_messplus.runtime.errors import ConfigurationError
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


# The models that may judge, checked against `model_list`.


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
