"""Log-probabilities of answers: requested from endpoints that give them, removed for the client.

They are requested just before a chat completion goes to a deployment, if it is of a zoo with
`answer_logprobs`, whole and not streamed, if the client says nothing about them, and LiteLLM knows
the parameter for that model. An endpoint that refuses it all the same gets no such request again,
and LiteLLM's router repeats the refused one without it. A deployment gets one such request a
minute until one is answered, so that a refusal slows one request of a worker.
"""

import math
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from time import monotonic
from typing import Any

import litellm
from litellm.integrations.custom_logger import CustomLogger

from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.serving import litellm_seam
from litellm_messplus.serving.deployments.deployment import exploration_target
from litellm_messplus.serving.open_requests import REMEMBERED, OpenRequest, OpenRequests
from litellm_messplus.serving.surfaces import answers
from litellm_messplus.serving.surfaces.surface import CHAT_COMPLETIONS, PLAIN_METADATA
from litellm_messplus.settings.schema import ZooSettings

LOGPROBS = "logprobs"
PROBE_SECONDS = 60.0
"""Seconds between two requests that ask a deployment that has not been known to answer."""
ALWAYS, NEVER = -math.inf, math.inf
"""Times from which a deployment that gives them, or one that refuses, is tried."""
DEPLOYMENTS = 10_000
"""Most deployments that are remembered; one that is forgotten counts as new."""


class AnswerLogprobs:
    """The log-probabilities of the zoos whose operator asks for them; it ``is_on`` for any."""

    def __init__(
        self, zoos: Mapping[str, ZooSettings], open_requests: OpenRequests, counters: Counters
    ) -> None:
        self._zoos = frozenset(name for name, zoo in zoos.items() if zoo.answer_logprobs)
        self.is_on = bool(self._zoos)
        self._open = open_requests
        self.counters = counters
        self._due: Bounded[str, float] = Bounded(DEPLOYMENTS)
        self._asking: Bounded[str, str] = Bounded(REMEMBERED)

    def with_logprobs(self, kwargs: dict[str, Any], call_type: object) -> dict[str, Any] | None:
        """Return the arguments of a call with log-probabilities asked for; None to leave them."""
        call_id = str(kwargs.get("litellm_call_id"))
        self._asking.pop(call_id, None)  # of an attempt before
        called = str(getattr(call_type, "value", call_type))
        if called != CHAT_COMPLETIONS.call_type or kwargs.get("stream") or _is_given(kwargs):
            return None
        deployment = str((kwargs.get("model_info") or {}).get("id"))
        if not self._is_of_zoo(kwargs) or not self._may_ask(deployment):
            return None
        if not _is_known(str(kwargs.get("model")), kwargs.get("custom_llm_provider")):
            return None
        self._asking[call_id] = deployment
        return {**kwargs, LOGPROBS: True}

    def answered(self, data: Mapping[str, Any], response: object) -> None:
        """Keep what an answer looks like with its log-probabilities, and remove them from it."""
        opened = self._wanted(data)
        if opened is None:
            return
        try:
            if not answers.is_repeated(data, response):
                opened.looks = CHAT_COMPLETIONS.looks(response)
        finally:
            self._remove(response)

    def remove(self, data: Mapping[str, Any], response: object) -> None:
        """Remove them from an answer that takes the place of the one in the log."""
        if self._wanted(data) is not None:
            self._remove(response)

    def _wanted(self, data: Mapping[str, Any]) -> OpenRequest | None:
        """Return the request of a hook if we, and not its client, want log-probabilities."""
        opened = self._open.of_hook(data, data)
        is_ours = opened is not None and self._is_chat(opened) and not _is_given(data)
        return opened if is_ours else None

    def _remove(self, response: object) -> None:
        """Remove them from the choices of a response, and note who gave them."""
        found = [each for each in answers.field(response, "choices") or [] if _has(each)]
        for choice in found:
            delattr(choice, LOGPROBS)
        deployment = str(litellm_seam.hidden_params(response).get("model_id"))
        if found and self._due.get(deployment) != NEVER:
            self._due[deployment] = ALWAYS

    def failed(self, kwargs: Mapping[str, Any]) -> None:
        """Note a deployment that refused a call because it was asked for log-probabilities, and let
        the call be tried again without."""
        deployment = self._asking.pop(str(kwargs.get("litellm_call_id")), None)
        if deployment is not None and "logprob" in str(kwargs.get("exception")).lower():
            self._due[deployment] = NEVER
            words = f"{deployment} refuses log-probabilities: it is not asked for them again"
            self.counters.failure("logprobs_refused", words)
            opened = self._open.of_hook(kwargs.get("litellm_params") or {}, kwargs)
            if opened is not None:
                opened.spared = deployment
            litellm_seam.retry(kwargs)

    def _is_of_zoo(self, kwargs: Mapping[str, Any]) -> bool:
        """Tell whether a call is of such a zoo: for a client, or one of our own."""
        if exploration_target.get() is not None:
            return (kwargs.get(PLAIN_METADATA) or {}).get("model_group") in self._zoos
        opened = self._open.of_hook(kwargs, kwargs)
        return opened is not None and self._is_chat(opened)

    def _is_chat(self, opened: OpenRequest) -> bool:
        is_chat = opened.record.asker.call_type == CHAT_COMPLETIONS.call_type
        return is_chat and opened.record.zoo in self._zoos

    def _may_ask(self, deployment: str) -> bool:
        now, due = monotonic(), self._due.get(deployment, 0.0)
        if now >= due > ALWAYS:
            self._due[deployment] = now + PROBE_SECONDS
        return now >= due


class LogprobsHook(CustomLogger):  # type: ignore[misc]
    """The hook that sees which deployment is called, a callback of its own: where it is overridden,
    LiteLLM does without its cache-aware routing, so a proxy that asks for nothing has it not."""

    def __init__(self, logprobs: AnswerLogprobs) -> None:
        super().__init__()
        self._logprobs = logprobs

    async def async_pre_call_deployment_hook(
        self, kwargs: dict[str, Any], call_type: Any
    ) -> dict[str, Any] | None:
        """Ask the deployment for log-probabilities; whatever fails, the call goes without."""
        with self._logprobs.counters.tolerated(
            "logprobs_failed", "log-probabilities were not asked for"
        ):
            return self._logprobs.with_logprobs(kwargs, call_type)
        return None


def _is_given(arguments: Mapping[str, Any]) -> bool:
    """Tell whether a client says itself whether it wants log-probabilities."""
    return LOGPROBS in arguments or LOGPROBS in (arguments.get("extra_body") or ())


def _has(choice: object) -> bool:
    return answers.field(choice, LOGPROBS) is not None


@cache
def _is_known(model: str, provider: str | None) -> bool:
    """Tell whether LiteLLM knows the parameter for a model; False for one it does not know."""
    with suppress(Exception):  # of a provider's own table
        known = litellm.get_supported_openai_params(model=model, custom_llm_provider=provider)
        return LOGPROBS in (known or ())
    return False
