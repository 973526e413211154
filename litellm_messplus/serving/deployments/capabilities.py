"""What a deployment can take: as the operator says, as LiteLLM's price map says, as it has shown.

Three values: yes, no, and unknown. What `model_info` says counts first. What an endpoint refuses
comes next, then what the price map says of the model. Of images, audio, video and files a model
that the map knows can take those that it names; of all else the map leaves much out, so what it
does not say is unknown.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import litellm

from litellm_messplus.routing.held import Answer
from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.serving.deployments.deployment import Deployment, deployment_id, model_info
from litellm_messplus.serving.litellm_seam import router_model_info
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
"""LiteLLM's names, in `model_info` and in its price map; the first is the one to write."""
REMEMBERED = 4096
"""Deployments whose capabilities are kept, the newest: reading one takes 0.2 ms."""


@dataclass(frozen=True, slots=True)
class Stated:
    """The capabilities of a deployment as they are known before any call. ``own`` is from
    `model_info`, ``mapped`` from the price map; what is in neither is unknown. ``window`` is how
    many tokens a prompt may have, None where nobody says; ``takes_answer_format`` is False where
    LiteLLM would refuse `response_format`, or drop the deployment for it."""

    own: Mapping[Capability, Answer]
    mapped: Mapping[Capability, Answer]
    window: int | None
    region: str | None
    takes_answer_format: bool


class Capabilities:
    """The capabilities of the deployments that LiteLLM's router shows; one that it replaces is read
    anew."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._stated: Bounded[str, tuple[Deployment, Stated]] = Bounded(remembered)

    def __len__(self) -> int:
        return len(self._stated)

    def known(self, identity: str) -> tuple[Deployment, Stated] | None:
        """Return the deployment of that id and what is stated of it, where it was seen."""
        return self._stated.get(identity)

    def of(self, deployment: Deployment, router: Any) -> Stated:
        """Return what is stated of a deployment; ``router`` is LiteLLM's."""
        identity = deployment_id(deployment)
        known = self._stated.get(identity)
        if known is not None and known[0] is deployment:
            return known[1]
        found = read_stated(deployment, router)
        self._stated[identity] = deployment, found
        return found


def warm_up(model_list: Sequence[Deployment]) -> None:
    """Read deployments once before anybody waits: LiteLLM loads much of a provider when it is
    asked."""
    for deployment in model_list:
        read_stated(deployment, None)


def read_stated(deployment: Deployment, router: Any) -> Stated:
    """Read what the configuration and the price map say of a deployment."""
    params = deployment["litellm_params"]
    region = params.get("region_name")
    return Stated(
        _named(model_info(deployment)),
        _mapped(_map_entry(deployment)),
        _window(deployment, router),
        None if region is None else str(region),
        _takes_answer_format(deployment),
    )


def _named(source: Mapping[str, Any]) -> dict[Capability, Answer]:
    """Return what the keys of LiteLLM say outright."""
    return {
        capability: Answer.YES if said else Answer.NO
        for capability, keys in KEYS.items()
        for said in [next((source[key] for key in keys if source.get(key) is not None), None)]
        if said is not None
    }


def _mapped(entry: Mapping[str, Any]) -> dict[Capability, Answer]:
    if not entry:
        return {}
    return dict.fromkeys(MODALITIES, Answer.NO) | _named(entry)


def _map_entry(deployment: Deployment) -> Mapping[str, Any]:
    """Return the price map's own entry of the model; empty for one that it does not have.

    LiteLLM's router gives every model that it serves an entry, without a mode or a provider.
    """
    params = deployment["litellm_params"]
    base = model_info(deployment).get("base_model") or params.get("base_model")
    try:
        model, provider, _, _ = litellm.get_llm_provider(
            params["model"], params.get("custom_llm_provider"), params.get("api_base")
        )
        found = litellm.get_model_info(model=base or model, custom_llm_provider=provider)
        entry = litellm.model_cost.get(found["key"]) or {}
    except Exception:  # it raises a bare Exception for a model that it does not know
        return {}
    return entry if entry.get("mode") and entry.get("litellm_provider") else {}


def _window(deployment: Deployment, router: Any) -> int | None:
    """Read it as LiteLLM's own check of the context does."""
    try:
        found = router_model_info(router, deployment)
    except Exception:  # it raises a bare Exception for a model that it does not know
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
    except Exception:  # it raises a bare Exception for a model that it does not know
        return True
    return supported is None or "response_format" in supported


# What endpoints refuse: learned from their answers, for a while.
#
# A refusal (400 or 422) does not say what was refused, so it counts against all that the request
# asked for and nobody has stated. A success with it ends the count.

REFUSALS = 3
"""In a row, from which on a deployment is taken not to be able to."""
REFUSING_SECONDS = 3600.0
"""How long it is; then it is tried again."""
WATCHED = 4096
"""Pairs of deployment and capability that are counted, the newest."""


@dataclass(slots=True)
class _Refusing:
    count: int = 0
    until: float = 0.0


class Refusals:
    """One a worker; ``now`` is in seconds of a clock that does not go back."""

    def __init__(self, watched: int = WATCHED) -> None:
        self._refusing: Bounded[tuple[str, Capability], _Refusing] = Bounded(watched)

    def __len__(self) -> int:
        return len(self._refusing)

    def refused(
        self, identity: str, capabilities: Iterable[Capability], now: float
    ) -> list[Capability]:
        """Count a refusal against each; returns those that it was one too many for."""
        learned = []
        for capability in capabilities:
            found = self._refusing.newest((identity, capability), _Refusing)
            found.count += 1
            if found.count >= REFUSALS and found.until <= now:
                found.until, found.count = now + REFUSING_SECONDS, 0
                learned.append(capability)
        return learned

    def succeeded(self, identity: str, capabilities: Iterable[Capability]) -> None:
        """Count nothing against these any more: it can take them after all."""
        for capability in capabilities:
            self._refusing.pop((identity, capability), None)

    def denies(self, identity: str, capability: Capability, now: float) -> bool:
        """Return whether it is taken not to be able to."""
        found = self._refusing.get((identity, capability))
        return found is not None and found.until > now
