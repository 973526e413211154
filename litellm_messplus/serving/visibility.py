"""Visibility of a decision in LiteLLM's logs and traces: its routing card, and span attributes.

LiteLLM copies the card into the standard logging object, which its log entries, its sum of savings,
and all its callbacks read. The names of the card's fields are LiteLLM's. Neither card nor
attributes quote the prompt, so there is nothing to redact.
"""

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

from litellm_messplus.inspecting.explain import reason_in_words
from litellm_messplus.records import RequestRecord
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.serving.deployments.deployment import (
    Deployment,
    candidate_of,
    deployment_id,
    first,
)
from litellm_messplus.serving.litellm_seam import are_logs_read
from litellm_messplus.serving.open_requests import OpenRequest, OpenRequests
from litellm_messplus.serving.surfaces.surface import OWN_METADATA, PLAIN_METADATA
from litellm_messplus.switching.modes import LITELLM, Arm

REMEMBERED = 256
"""Maximum number of baselines kept: one for each candidate that was the largest."""
KEY = "routing_decision"
"""The key of the card in LiteLLM's metadata. LiteLLM removes what a client writes there."""
ROUTER_TYPE = "messplus"
PREFIX = "messplus"
"""The prefix of each attribute's name."""
DIGITS = 4
"""Significant digits of the card's numbers, which people read; the log has them in full."""
Attribute = str | float | int | bool


@dataclass(frozen=True, slots=True)
class Baseline:
    """A deployment of the largest candidate, against which LiteLLM counts savings, and LiteLLM's
    name of its model."""

    model: str
    deployment_id: str


class Visibility:
    """The view of each attempt in LiteLLM's logs; if it fails, the request goes on and the failure
    is counted."""

    def __init__(self, open_requests: OpenRequests, counters: Counters) -> None:
        self._open = open_requests
        self._counters = counters
        self._baselines: dict[tuple[str, str], Baseline] = {}

    def attempt(
        self, ranking: Sequence[Deployment], kwargs: Mapping[str, Any] | None, span: Any
    ) -> None:
        """Show an attempt, whose deployments are to be tried in this order; ``span`` is LiteLLM's,
        None without tracing.

        Nothing is shown of unrouted requests and exploration calls, which have no open request, nor
        of requests that are served as before, nor of LiteLLM's own choice.
        """
        if not ranking or kwargs is None:
            return
        try:
            # LiteLLM prices every answer a second time by the card: 2 % of a request's CPU.
            if not (are_logs_read() or (span is not None and span.is_recording())):
                return
            for name in (OWN_METADATA, PLAIN_METADATA):
                metadata = kwargs.get(name)
                opened = self._open.get(metadata, kwargs.get("litellm_call_id"))
                if opened is not None and isinstance(metadata, dict):
                    if opened.record.trial.arm is Arm.ROUTED and opened.record.chosen != LITELLM:
                        self._show(opened, ranking, metadata, span)
                    return
        except Exception:
            self._counters.failure("visibility_failures", "LiteLLM's logs lack a decision")

    def _show(
        self,
        opened: OpenRequest,
        ranking: Sequence[Deployment],
        metadata: MutableMapping[str, Any],
        span: Any,
    ) -> None:
        opened.attempts += 1
        record, routed = opened.record, candidate_of(first(ranking))
        if are_logs_read():
            baseline = self._baseline(record.zoo, record.largest, ranking)
            _write(metadata, routing_card(record, routed, opened.attempts, baseline))
        if span is not None and span.is_recording():
            span.set_attributes(attributes(record, routed, opened.attempts))

    def _baseline(
        self, zoo: str, largest: str, deployments: Sequence[Deployment]
    ) -> Baseline | None:
        """Find a deployment of the largest candidate; the last known one if none is healthy."""
        for each in deployments:
            if candidate_of(each) == largest:
                found = Baseline(str(each["litellm_params"]["model"]), deployment_id(each))
                if len(self._baselines) >= REMEMBERED:
                    self._baselines.clear()
                self._baselines[zoo, largest] = found
                return found
        return self._baselines.get((zoo, largest))


def _write(metadata: MutableMapping[str, Any], card: Mapping[str, Any]) -> None:
    """Put the card into the metadata of an attempt, unless one of LiteLLM's routers wrote one."""
    there = metadata.get(KEY)
    if not isinstance(there, Mapping) or there.get("router_type") == ROUTER_TYPE:
        metadata[KEY] = dict(card)


def routing_card(
    record: RequestRecord, routed: str, attempt: int, baseline: Baseline | None
) -> dict[str, Any]:
    """Build the card of the ``attempt``-th try, whose first candidate is ``routed``."""
    expected = record.estimated_satisfaction
    reason = reason_in_words(record.reason)
    card: dict[str, Any] = {
        "router_model_name": record.zoo,
        "router_type": ROUTER_TYPE,
        "cause": reason
        if attempt == 1
        else f"attempt {attempt} after a failure; at first: {reason}",
        "tier": record.service_level,
        "routed_model": routed,
        "classifier_probabilities": {
            name: round(value, DIGITS) for name, value in expected.items()
        },
        "signals": _signals(record),
    }
    if routed in expected:
        card["score"] = round(expected[routed], DIGITS)
    if baseline is not None:
        card["savings_baseline_model"] = baseline.model
        card["savings_baseline_deployment_id"] = baseline.deployment_id
    return card


def _signals(record: RequestRecord) -> list[str]:
    named = {name: getattr(record, name) for name in ("alpha", "aim", "queue", "price")}
    gates = (record.gated and record.gated.gated_by) or ()
    known = [f"{name} {value:.{DIGITS}g}" for name, value in named.items() if value is not None]
    return [*known, *(f"asks for {each}" for each in gates)]


AS_LOGGED = (
    *("request_id", "zoo", "service_level", "policy", "alpha", "aim", "queue", "price", "chosen"),
    *("expected_satisfaction", "propensity", "is_exploration", "exploration_calls"),
    *("is_within_reach", "is_forced"),
)
"""Attributes named and valued as the record's."""


def attributes(record: RequestRecord, routed: str, attempt: int) -> dict[str, Attribute]:
    """Collect the known attributes of an attempt; those of the first include the decision."""
    found: dict[str, Attribute | None] = {"routed": routed, "attempt": attempt}
    if attempt == 1:
        found |= {name: getattr(record, name) for name in AS_LOGGED}
        found["reason"] = record.reason.value
        found["expected_cost"] = record.estimated_cost.get(record.chosen)
    return {f"{PREFIX}.{name}": value for name, value in found.items() if value is not None}
