"""What a deployment can take: by the operator, else by LiteLLM's price map, else as assumed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

import litellm

from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.serving.deployments.deployment import (
    Deployment,
    arm_of,
    deployment_id,
    model_info,
)
from litellm_messplus.serving.deployments.prices import map_entry
from litellm_messplus.serving.litellm_seam import router_model_info
from litellm_messplus.serving.surfaces.parameters import Values
from litellm_messplus.serving.surfaces.requirements import Capability


class Answer(IntEnum):
    """The answer to whether a candidate can take a request; a larger one is preferred."""

    NO = 0
    UNKNOWN = 1
    YES = 2


def all_of(answers: Iterable[Answer]) -> Answer:
    """Return the answer to a request that needs all of these; YES if it needs nothing."""
    return min(answers, default=Answer.YES)


def passing(answers: Mapping[str, Answer]) -> frozenset[str] | None:
    """Return the names with the best answer; None if there is nothing to gate.

    That is the case if all answers are equal, and in particular if all are NO: then no candidate
    is known to be right, and the request goes where it would have gone anyway.
    """
    best = max(answers.values(), default=Answer.NO)
    if best is Answer.NO:
        return None
    found = frozenset(name for name, answer in answers.items() if answer is best)
    return None if len(found) == len(answers) else found


ROOM = 1.1
"""Factor on the counted tokens: each model has its own tokenizer."""


def fits(tokens: float, answer_tokens: float, window: int | None) -> Answer:
    """Return whether a prompt and its answer fit into a window; UNKNOWN if only the prompt is sure
    to fit. A window that is not stated (None) takes everything."""
    if window is None:
        return Answer.YES
    if tokens > window:
        return Answer.NO
    return Answer.YES if ROOM * tokens + answer_tokens <= window else Answer.UNKNOWN


class Need(NamedTuple):
    """LiteLLM's ``keys`` of what a request may need, in `model_info` and in its price map, of which
    operators write the first; and the answer where neither states any."""

    keys: tuple[str, ...]
    unstated: Answer


NEEDS: Mapping[Capability, Need] = {
    Capability.IMAGE: Need(("supports_vision", "supports_image_input"), Answer.UNKNOWN),
    Capability.AUDIO: Need(("supports_audio_input",), Answer.UNKNOWN),
    Capability.VIDEO: Need(("supports_video_input",), Answer.UNKNOWN),
    Capability.FILE: Need(("supports_pdf_input",), Answer.UNKNOWN),
    Capability.TOOLS: Need(("supports_function_calling",), Answer.YES),
    Capability.PARALLEL_TOOLS: Need(("supports_parallel_function_calling",), Answer.YES),
    Capability.JSON_SCHEMA: Need(("supports_response_schema",), Answer.YES),
    Capability.REASONING: Need(("supports_reasoning",), Answer.YES),
}
MODALITIES = {each for each, need in NEEDS.items() if need.unstated is Answer.UNKNOWN}
"""Inputs that a model takes only by design: one not made for images sees none. The price map lists
them completely for a model that it has; it omits much of everything else."""
REMEMBERED = 4096
"""Newest deployments of which it is kept: reading one takes 0.2 ms."""


@dataclass(frozen=True, slots=True)
class Known:
    """Knowledge of a deployment before any call: its ``answers`` to all needs, and ``window``, the
    most tokens of a prompt, None if unknown. ``takes_answer_format`` is False if LiteLLM would
    refuse `response_format`, or drop the deployment for it. ``arm`` holds the parameters that make
    it an arm of its model."""

    answers: Mapping[Capability, Answer]
    window: int | None
    region: str | None
    takes_answer_format: bool
    arm: Values = field(default_factory=dict)


class Capabilities:
    """Knowledge of the deployments that LiteLLM's router shows; a replaced one is read again."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._known: Bounded[str, tuple[Deployment, Known]] = Bounded(remembered)

    def of(self, deployment: Deployment, router: Any) -> Known:
        """Return what is known of a deployment; ``router`` is LiteLLM's."""
        identity = deployment_id(deployment)
        known = self._known.get(identity)
        if known is not None and known[0] is deployment:
            return known[1]
        found = read_known(deployment, router)
        self._known[identity] = deployment, found
        return found


def warm_up(model_list: Sequence[Deployment]) -> None:
    """Read deployments once before the first request: LiteLLM loads much of a provider on first
    use."""
    for deployment in model_list:
        read_known(deployment, None)


def read_known(deployment: Deployment, router: Any) -> Known:
    """Read what is known of a deployment from the configuration and the price map."""
    region, entry = deployment["litellm_params"].get("region_name"), map_entry(deployment)
    # LiteLLM's router adds an entry without a mode or provider for every model that it serves.
    listed = entry if entry.get("mode") and entry.get("litellm_provider") else {}
    return Known(
        {each: _answer(each, model_info(deployment), listed) for each in NEEDS},
        _window(deployment, router),
        None if region is None else str(region),
        _takes_answer_format(deployment),
        arm_of(deployment),
    )


def _answer(capability: Capability, own: Mapping[str, Any], listed: Mapping[str, Any]) -> Answer:
    keys, unstated = NEEDS[capability]
    for source in (own, listed):
        for key in keys:
            if source.get(key) is not None:
                return Answer.YES if source[key] else Answer.NO
    return Answer.NO if listed and capability in MODALITIES else unstated


def _window(deployment: Deployment, router: Any) -> int | None:
    """Read the context window as LiteLLM's own check does."""
    try:
        found = router_model_info(router, deployment)
    except Exception:  # a bare Exception for an unknown model
        return None
    window = found.get("max_input_tokens")
    return window if isinstance(window, int) else None


def _takes_answer_format(deployment: Deployment) -> bool:
    params = deployment["litellm_params"]
    base = model_info(deployment).get("base_model") or params.get("base_model")
    try:
        model, provider, _, _ = litellm.get_llm_provider(
            base or params["model"], params.get("custom_llm_provider"), params.get("api_base")
        )
        supported = litellm.get_supported_openai_params(model=model, custom_llm_provider=provider)
    except Exception:  # a bare Exception for an unknown model
        return True
    return supported is None or "response_format" in supported
