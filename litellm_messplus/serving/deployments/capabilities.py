"""Capabilities of a deployment: by the operator, by LiteLLM's price map, or by its own answers.

Three values: yes, no, and unknown. `model_info` counts first, then refusals by the endpoint, then
the price map. The map's list of images, audio, video and files is complete for a model that it has;
it omits much of everything else, which is then unknown.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import litellm

from litellm_messplus.routing.held import Answer
from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.serving.deployments.deployment import (
    Deployment,
    arm_of,
    deployment_id,
    model_info,
)
from litellm_messplus.serving.deployments.prices import model_and_provider
from litellm_messplus.serving.litellm_seam import router_model_info
from litellm_messplus.serving.surfaces.parameters import Values
from litellm_messplus.serving.surfaces.requirements import MODALITIES, Capability

KEYS = {
    Capability.IMAGE: ("supports_vision", "supports_image_input"),
    Capability.AUDIO: ("supports_audio_input",),
    Capability.VIDEO: ("supports_video_input",),
    Capability.FILE: ("supports_pdf_input",),
    Capability.TOOLS: ("supports_function_calling",),
    Capability.PARALLEL_TOOLS: ("supports_parallel_function_calling",),
    Capability.JSON_SCHEMA: ("supports_response_schema",),
    Capability.REASONING: ("supports_reasoning",),
}
"""LiteLLM's keys, in `model_info` and in its price map; operators write the first."""
REMEMBERED = 4096
"""Newest deployments whose capabilities are kept: reading one takes 0.2 ms."""


@dataclass(frozen=True, slots=True)
class Stated:
    """The capabilities of a deployment as known before any call. ``own`` is from `model_info`,
    ``mapped`` from the price map; a capability in neither is unknown. ``window`` is the most tokens
    of a prompt, None if unknown; ``takes_answer_format`` is False if LiteLLM would refuse
    `response_format`, or drop the deployment for it. ``arm`` holds the parameters that make it an
    arm of its model."""

    own: Mapping[Capability, Answer]
    mapped: Mapping[Capability, Answer]
    window: int | None
    region: str | None
    takes_answer_format: bool
    arm: Values = field(default_factory=dict)


class Capabilities:
    """The capabilities of the deployments that LiteLLM's router shows; a replaced one is read
    again."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._stated: Bounded[str, tuple[Deployment, Stated]] = Bounded(remembered)

    def known(self, identity: str) -> tuple[Deployment, Stated] | None:
        """Return the deployment of that id and its stated capabilities, if it was seen."""
        return self._stated.get(identity)

    def of(self, deployment: Deployment, router: Any) -> Stated:
        """Return the stated capabilities of a deployment; ``router`` is LiteLLM's."""
        identity = deployment_id(deployment)
        known = self._stated.get(identity)
        if known is not None and known[0] is deployment:
            return known[1]
        found = read_stated(deployment, router)
        self._stated[identity] = deployment, found
        return found


def warm_up(model_list: Sequence[Deployment]) -> None:
    """Read deployments once before the first request: LiteLLM loads much of a provider on first
    use."""
    for deployment in model_list:
        read_stated(deployment, None)


def read_stated(deployment: Deployment, router: Any) -> Stated:
    """Read a deployment's capabilities from the configuration and the price map."""
    params = deployment["litellm_params"]
    region = params.get("region_name")
    return Stated(
        _named(model_info(deployment)),
        _mapped(_map_entry(deployment)),
        _window(deployment, router),
        None if region is None else str(region),
        _takes_answer_format(deployment),
        arm_of(deployment),
    )


def _named(source: Mapping[str, Any]) -> dict[Capability, Answer]:
    """Return the capabilities that LiteLLM's keys state explicitly."""
    return {
        capability: Answer.YES if value else Answer.NO
        for capability, keys in KEYS.items()
        for value in [next((source[key] for key in keys if source.get(key) is not None), None)]
        if value is not None
    }


def _mapped(entry: Mapping[str, Any]) -> dict[Capability, Answer]:
    if not entry:
        return {}
    return dict.fromkeys(MODALITIES, Answer.NO) | _named(entry)


def _map_entry(deployment: Deployment) -> Mapping[str, Any]:
    """Return the price map's own entry of the model; empty if it has none.

    LiteLLM's router adds an entry without a mode or provider for every model that it serves.
    """
    params = deployment["litellm_params"]
    base = model_info(deployment).get("base_model") or params.get("base_model")
    try:
        model, provider = model_and_provider(deployment)
        found = litellm.get_model_info(model=base or model, custom_llm_provider=provider)
        entry = litellm.model_cost.get(found["key"]) or {}
    except Exception:  # a bare Exception for an unknown model
        return {}
    return entry if entry.get("mode") and entry.get("litellm_provider") else {}


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


# Refusals by endpoints: learned from their answers, and kept for an hour.
#
# A refusal (400 or 422) does not name its cause, so it counts against every capability that the
# request needs and no configuration states. A success with a capability resets its count.

REFUSALS = 3
"""Refusals in a row after which a deployment is assumed to lack a capability."""
REFUSING_SECONDS = 3600.0
"""Seconds of that assumption; then the deployment is tried again."""
WATCHED = 4096
"""Newest pairs of deployment and capability that are counted."""


@dataclass(slots=True)
class _Refusing:
    count: int = 0
    until: float = 0.0


class Refusals:
    """The refusals that one worker saw; ``now`` is in seconds of a monotonic clock."""

    def __init__(self, watched: int = WATCHED) -> None:
        self._refusing: Bounded[tuple[str, Capability], _Refusing] = Bounded(watched)

    def refused(
        self, identity: str, capabilities: Iterable[Capability], now: float
    ) -> list[Capability]:
        """Count a refusal against each; returns the capabilities that reach `REFUSALS` by it."""
        learned = []
        for capability in capabilities:
            found = self._refusing.newest((identity, capability), _Refusing)
            found.count += 1
            if found.count >= REFUSALS and found.until <= now:
                found.until, found.count = now + REFUSING_SECONDS, 0
                learned.append(capability)
        return learned

    def succeeded(self, identity: str, capabilities: Iterable[Capability]) -> None:
        """Reset the counts of these capabilities: the deployment can take them."""
        for capability in capabilities:
            self._refusing.pop((identity, capability), None)

    def denies(self, identity: str, capability: Capability, now: float) -> bool:
        """Return whether the deployment is assumed to lack the capability."""
        found = self._refusing.get((identity, capability))
        return found is not None and found.until > now
