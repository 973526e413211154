"""Which candidate is best at which price: the lower envelope of cost - price * satisfaction.

Each candidate is a line over the price. The walk is exact (fractions), so that a winner is never
one by rounding.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any


@dataclass(frozen=True, slots=True)
class PriceRange:
    """The prices at which a candidate is the best: from ``low`` on, below ``high`` (None: all)."""

    candidate: str
    low: Fraction
    high: Fraction | None

    def as_dict(self) -> dict[str, Any]:
        high = None if self.high is None else float(self.high)
        return {"candidate": self.candidate, "from": float(self.low), "to": high}


def envelope(
    cost: Mapping[str, float], satisfaction: Mapping[str, float]
) -> tuple[PriceRange, ...]:
    """The ranges from price 0 upwards; a candidate that is nowhere the best has none.

    Of two that are equal at a price, the one with the higher satisfaction counts.
    """
    lines = {name: (Fraction(cost[name]), Fraction(satisfaction[name])) for name in cost}
    if not lines:
        return ()
    best = min(lines, key=lambda name: (lines[name][0], -lines[name][1]))
    low, ranges = Fraction(0), []
    while crossings := _crossings(lines, best):
        high, _, following = min(crossings)
        ranges.append(PriceRange(best, low, high))
        low, best = high, following
    return (*ranges, PriceRange(best, low, None))


def range_at(ranges: Sequence[PriceRange], price: float) -> PriceRange | None:
    """The range that a price is in; None for a price below 0, or where there is no candidate."""
    exact = Fraction(price)
    reached = [each for each in ranges if each.low <= exact]
    return reached[-1] if reached else None


def _crossings(
    lines: Mapping[str, tuple[Fraction, Fraction]], best: str
) -> list[tuple[Fraction, Fraction, str]]:
    """From which price on each better candidate beats this one; of equal prices the best first."""
    cost, satisfaction = lines[best]
    return [
        ((other_cost - cost) / (other - satisfaction), -other, name)
        for name, (other_cost, other) in lines.items()
        if other > satisfaction
    ]
