"""The decision in a trace: attributes on LiteLLM's span of the request, and spans of our own.

Where nobody traces, LiteLLM hands over no span, and nothing is done.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from litellm_messplus.records import RequestRecord

TRACER = "litellm_messplus"
PREFIX = "messplus"
Attribute = str | float | int | bool
NANOSECONDS = 1e9


class Traces:
    """The spans of one worker, by the tracer provider that LiteLLM has set for the process."""

    def decided(self, span: Any, record: RequestRecord, routed: str, attempt: int) -> None:
        """Write an attempt on LiteLLM's span, and draw the decision of the first."""
        if span is None or not span.is_recording():
            return
        told: dict[str, Attribute] = {
            f"{PREFIX}.routed": routed,
            f"{PREFIX}.attempt": attempt,
        }
        if attempt == 1:
            told.update(_attributes(record))
        span.set_attributes(told)
        if attempt == 1:
            self._draw(span, record)

    @cached_property
    def _tracer(self) -> Any:
        from opentelemetry import trace  # who traces has it

        return trace.get_tracer(TRACER)

    def _draw(self, parent: Any, record: RequestRecord) -> None:
        """Draw two spans below LiteLLM's, now that both have ended: the record says how long each
        took.

        The features are the first thing that is waited for, so their span begins with the
        decision's.
        """
        from opentelemetry.trace import set_span_in_context

        began = record.created_at.timestamp() - record.decision_seconds
        is_late = record.encode_seconds is None
        took = record.decision_seconds if record.encode_seconds is None else record.encode_seconds
        decide = self._tracer.start_span(
            f"{PREFIX}.decide", set_span_in_context(parent), start_time=_nanoseconds(began)
        )
        encode = self._tracer.start_span(
            f"{PREFIX}.encode",
            set_span_in_context(decide),
            attributes={f"{PREFIX}.encoder": record.encoder, f"{PREFIX}.is_late": is_late},
            start_time=_nanoseconds(began),
        )
        encode.end(_nanoseconds(began + took))
        decide.end(_nanoseconds(began + record.decision_seconds))


def _attributes(record: RequestRecord) -> Iterator[tuple[str, Attribute]]:
    """Yield what is known of the decision: an attribute has no value for "unknown"."""
    told: dict[str, Attribute | None] = {
        "request_id": record.request_id,
        "zoo": record.zoo,
        "service_level": record.service_level,
        "policy": record.policy,
        "alpha": record.alpha,
        "aim": record.aim,
        "queue": record.queue,
        "price": record.price,
        "chosen": record.chosen,
        "reason": record.reason.value,
        "expected_satisfaction": record.expected_satisfaction,
        "expected_cost": record.estimated_cost.get(record.chosen),
        "propensity": record.propensity,
        "is_exploration": record.is_exploration,
        "exploration_calls": record.exploration_calls,
        "is_within_reach": record.is_within_reach,
        "is_forced": record.is_forced,
    }
    for name, value in told.items():
        if value is not None:
            yield f"{PREFIX}.{name}", value


def _nanoseconds(seconds: float) -> int:
    return int(seconds * NANOSECONDS)
