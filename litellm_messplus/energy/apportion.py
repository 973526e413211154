"""The joules of one window, divided among the calls that ran in it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Call:
    """A call that has ended: when it ran, and what its tokens were estimated to cost.

    Times in seconds, of the clock that the windows have.
    """

    call_id: str
    deployment_id: str
    started: float
    ended: float
    estimated_joules: float


@dataclass(frozen=True, slots=True)
class Span:
    """From ``start`` up to ``end``, in seconds."""

    start: float
    end: float

    def share_of(self, call: Call) -> float:
        """The share of the call's time that falls in here, from 0 to 1."""
        duration = call.ended - call.started
        if duration <= 0:  # an instant, which one window alone holds
            return float(self.start <= call.ended < self.end)
        return max(0.0, min(self.end, call.ended) - max(self.start, call.started)) / duration


def apportion(joules: float, weights: Sequence[float]) -> list[float]:
    """Divide ``joules`` in proportion to ``weights``, which are not below zero.

    The parts sum to ``joules`` within rounding. Raises ValueError where no weight is above zero:
    nobody is there to have used them.
    """
    total = sum(weights)
    if not total > 0:
        raise ValueError("joules cannot be divided among calls that weigh nothing")
    return [joules * (weight / total) for weight in weights]
