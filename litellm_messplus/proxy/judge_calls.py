"""How a judge is called: through the proxy's own router, once, charged to nobody."""

import asyncio
from collections.abc import Mapping, Sequence
from contextvars import Context
from typing import Any

import litellm

from litellm_messplus.costs.price import Price, Usage
from litellm_messplus.labels.judge.grader import (
    JudgeRefusedError,
    Reply,
)
from litellm_messplus.labels.judge.prompt import Message
from litellm_messplus.proxy.deployments.deployment import candidate_of, exploration_target
from litellm_messplus.proxy.deployments.prices import known_dollars
from litellm_messplus.proxy.litellm_seam import (
    deployments_of,
    hidden_params,
    llm_router,
    running_router,
)
from litellm_messplus.proxy.surfaces import answers
from litellm_messplus.proxy.surfaces.answers import AbsurdUsageError, read_usage

METADATA = {"internal_call_origin": "messplus_judge"}
"""No key, team or user in it, so LiteLLM charges nobody; its logs and traces say what it was."""
ABOUT_THE_CONTENT = (litellm.ContextWindowExceededError, litellm.ContentPolicyViolationError)
USUAL = 2000.0, 100.0
"""Tokens that a judge reads and writes, by which prices are compared."""
BAD_REQUEST = (litellm.BadRequestError, litellm.UnprocessableEntityError)


class JudgeCalls:
    """Calls to one model group; of a zoo to one ``candidate``, without a decision.

    Sampling and structured output are asked for, and left out where LiteLLM knows that the model
    does not take them. A server that refuses a request with them, and takes it without, is asked
    without from then on.
    """

    def __init__(self, model: str, candidate: str | None = None) -> None:
        self._model = model
        self._candidate = candidate
        self._is_plain = False

    def price(self) -> Price | None:
        """Find the highest price, in dollars, of the deployments that may be called; None where
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
    """Read the usage; None where nothing of use was reported: a grading's tokens are for people
    alone."""
    try:
        return read_usage(answers.usage(response))
    except AbsurdUsageError:
        return None
