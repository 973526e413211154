"""The routing card: how LiteLLM's own logs tell of a decision, for one attempt of a request.

LiteLLM copies it into the standard logging object, which its log entries, its sum of savings, and
all its callbacks read. The names of the fields are LiteLLM's.
"""

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from litellm_messplus.inspecting.render import reason_in_words
from litellm_messplus.records import RequestRecord

KEY = "routing_decision"
"""Where LiteLLM keeps it in its metadata. What a client writes there, it takes out."""
ROUTER_TYPE = "messplus"
DIGITS = 4
"""Of numbers that people read: the log has them in full."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """A deployment of the largest candidate, by which LiteLLM counts savings, and its name of the
    model."""

    model: str
    deployment_id: str


def routing_card(
    record: RequestRecord, routed: str, attempt: int, baseline: Baseline | None
) -> dict[str, Any]:
    """Tell of the ``attempt``-th try, whose first candidate is ``routed``.

    It says nothing of the prompt's words, so there is nothing in it to redact.
    """
    expected = record.estimated_satisfaction
    card: dict[str, Any] = {
        "router_model_name": record.zoo,
        "router_type": ROUTER_TYPE,
        "cause": _cause(record, attempt),
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


def write(metadata: MutableMapping[str, Any], card: Mapping[str, Any]) -> None:
    """Put the card into the metadata of an attempt, unless a router of LiteLLM's own told of it."""
    there = metadata.get(KEY)
    if isinstance(there, Mapping) and there.get("router_type") != ROUTER_TYPE:
        return
    metadata[KEY] = dict(card)


def _cause(record: RequestRecord, attempt: int) -> str:
    reason = reason_in_words(record.reason)
    return reason if attempt == 1 else f"attempt {attempt} after a failure; at first: {reason}"


def _signals(record: RequestRecord) -> list[str]:
    named = (
        ("alpha", record.alpha),
        ("aim", record.aim),
        ("queue", record.queue),
        ("price", record.price),
    )
    gates = (record.gated and record.gated.gated_by) or ()
    told = [f"{name} {value:.{DIGITS}g}" for name, value in named if value is not None]
    return [*told, *(f"asks for {each}" for each in gates)]
