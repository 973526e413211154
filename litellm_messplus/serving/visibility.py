"""A decision as headers of the answer, and as attributes of LiteLLM's span of the request. They
quote nothing of the prompt, so there is nothing to redact."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from string import printable
from typing import Any
from urllib.parse import quote

from litellm_messplus.records import RequestRecord
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.serving.deployments.deployment import Deployment, candidate_of
from litellm_messplus.serving.litellm_seam import recording_span
from litellm_messplus.serving.open_requests import OpenRequests
from litellm_messplus.serving.surfaces.surface import OWN_METADATA, PLAIN_METADATA
from litellm_messplus.switching.modes import LITELLM, Arm

PREFIX = "messplus"
"""The prefix of each attribute's name."""
Attribute = str | float | int | bool


def show_attempt(
    open_requests: OpenRequests,
    left: Sequence[Deployment],
    kwargs: Mapping[str, Any] | None,
    counters: Counters,
) -> None:
    """Show an attempt, for which these deployments are left to be tried. If that fails, the request
    goes on and the failure is counted.

    Nothing is shown of unrouted requests and exploration calls, which have no open request, nor of
    requests that are served as before, nor of LiteLLM's own choice.
    """
    if not left or kwargs is None:
        return
    try:
        named = (kwargs.get(name) for name in (OWN_METADATA, PLAIN_METADATA))
        for metadata in (each for each in named if isinstance(each, dict)):
            span = recording_span(metadata)
            if span is None:
                continue
            opened = open_requests.get(metadata, kwargs.get("litellm_call_id"))
            if opened is not None:
                if opened.record.trial.arm is Arm.ROUTED and opened.record.chosen != LITELLM:
                    opened.attempts += 1
                    routed = candidate_of(left[0])
                    span.set_attributes(attributes(opened.record, routed, opened.attempts))
                return
    except Exception:
        counters.failure("visibility_failures", "a span of LiteLLM's lacks a decision")


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


# The headers of a routed answer.

# Names chosen by an operator, encoded for a response header.

PLAIN = "".join(sorted(set(printable) - set("\t\n\r\x0b\x0c")))


@lru_cache(maxsize=1024)
def header_value(name: str) -> str:
    """Return the name itself if it is plain ASCII, else percent-encoded: a header that cannot be
    written would lose the whole answer."""
    return quote(name, safe=PLAIN, errors="replace")


# The headers of a routed answer: two for most, since each costs time in every request.


def response_headers(
    record: RequestRecord, model: str | None, first: str | None = None
) -> dict[str, str]:
    """Build the headers of a request whose answer ``model`` wrote; None if there is no answer, or
    its author is unknown. ``first`` is the model whose answer it replaced."""
    headers = {"x-messplus-request-id": record.request_id}
    if model is not None:
        headers["x-messplus-model"] = header_value(model)
    if first is not None:
        headers["x-messplus-first-model"] = header_value(first)
    return headers
