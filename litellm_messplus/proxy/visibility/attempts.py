"""Every attempt of a request, told to whoever reads LiteLLM's logs and traces."""

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

from litellm_messplus.proxy.deployments.deployment import (
    Deployment,
    candidate_of,
    deployment_id,
    first,
)
from litellm_messplus.proxy.litellm_seam import are_logs_read
from litellm_messplus.proxy.open_requests import OpenRequest, OpenRequests
from litellm_messplus.proxy.surfaces.surface import OWN_METADATA, PLAIN_METADATA
from litellm_messplus.proxy.visibility.card import Baseline, routing_card, write
from litellm_messplus.proxy.visibility.traces import Traces
from litellm_messplus.runtime import Counters
from litellm_messplus.switching.modes import LITELLM, Arm

REMEMBERED = 256
"""Baselines: one for each candidate that was the largest."""


class Visibility:
    """A teller of attempts; where it fails, the request goes on and the failure is counted."""

    def __init__(self, open_requests: OpenRequests, counters: Counters) -> None:
        self._open = open_requests
        self._counters = counters
        self._traces = Traces()
        self._baselines: dict[tuple[str, str], Baseline] = {}

    def __len__(self) -> int:
        """Count the baselines that are remembered."""
        return len(self._baselines)

    def attempt(
        self, ranking: Sequence[Deployment], kwargs: Mapping[str, Any] | None, span: Any
    ) -> None:
        """Tell of an attempt by the deployments as they are to be tried.

        What is not routed has no open request, and an exploration call neither: nothing is told of
        them, nor of what is served as before, nor of LiteLLM's own choice.
        """
        if not ranking or kwargs is None:
            return
        try:
            for name in (OWN_METADATA, PLAIN_METADATA):
                metadata = kwargs.get(name)
                opened = self._open.get(metadata, kwargs.get("litellm_call_id"))
                if opened is not None and isinstance(metadata, dict):
                    if opened.record.trial.arm is Arm.ROUTED and opened.record.chosen != LITELLM:
                        self._tell(opened, ranking, metadata, span)
                    return
        except Exception:
            self._counters.failure("visibility_failures", "LiteLLM's logs lack a decision")

    def _tell(
        self,
        opened: OpenRequest,
        ranking: Sequence[Deployment],
        metadata: MutableMapping[str, Any],
        span: Any,
    ) -> None:
        opened.attempts += 1
        record, routed = opened.record, candidate_of(first(ranking))
        # LiteLLM prices every answer a second time by the card: 2 % of a request's CPU.
        if are_logs_read():
            baseline = self._baseline(record.zoo, record.largest, ranking)
            write(metadata, routing_card(record, routed, opened.attempts, baseline))
        self._traces.decided(span, record, routed, opened.attempts)

    def _baseline(
        self, zoo: str, largest: str, deployments: Sequence[Deployment]
    ) -> Baseline | None:
        """Find a deployment of the largest candidate: the one that was there last, where none is
        healthy now."""
        for each in deployments:
            if candidate_of(each) == largest:
                found = Baseline(str(each["litellm_params"]["model"]), deployment_id(each))
                if len(self._baselines) >= REMEMBERED:
                    self._baselines.clear()
                self._baselines[zoo, largest] = found
                return found
        return self._baselines.get((zoo, largest))
