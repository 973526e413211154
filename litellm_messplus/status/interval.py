"""How far a share of few verdicts can be trusted: Wilson's interval, and what it says of alpha."""

from dataclasses import dataclass
from enum import StrEnum
from math import sqrt

Z = 1.96
"""Standard errors on either side, for 95 %; the same number as in `docs/sql.md`."""
ENOUGH_ANSWERED = 100
WIDEST = 0.10
"""Fewer verdicts, or a wider interval, is thin evidence."""


class Verdict(StrEnum):
    """What the interval says of a promise."""

    KEPT = "kept"
    NOT_KEPT = "not kept"
    CANNOT_SAY = "cannot say yet"


@dataclass(frozen=True, slots=True)
class Interval:
    """Where the true share lies, at 95 %; shares from 0 to 1."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """From end to end, as a share."""
        return self.high - self.low


def wilson(rate: float, count: float) -> Interval | None:
    """The interval around ``rate`` of ``count`` verdicts; None without any. Where verdicts weigh
    differently, ``count`` is their `effective` number.

    It is made for verdicts of 0 and 1; with scores in between it is too wide, not too narrow.
    Raises ValueError where ``rate`` is no share, or ``count`` is negative.
    """
    if not 0.0 <= rate <= 1.0 or count < 0:
        raise ValueError(f"a share of {rate} in {count} verdicts")
    if count == 0:
        return None
    scale = 1.0 + Z * Z / count
    middle = (rate + Z * Z / (2.0 * count)) / scale
    half = Z * sqrt(rate * (1.0 - rate) / count + Z * Z / (4.0 * count * count)) / scale
    # Rounding must not push an end past the share it is around: all satisfied means high = 1.
    return Interval(max(0.0, min(middle - half, rate)), min(1.0, max(middle + half, rate)))


def effective(weight: float, squared_weight: float) -> float:
    """How many verdicts of equal weight say as much as these (Kish), from the sum of their weights
    and that of the squares; 0 of none."""
    return weight * weight / squared_weight if squared_weight else 0.0


def verdict(interval: Interval | None, alpha: float) -> Verdict:
    """Kept where all of the interval is at or above ``alpha``; not kept where all is below."""
    if interval is None:
        return Verdict.CANNOT_SAY
    if interval.low >= alpha:
        return Verdict.KEPT
    return Verdict.NOT_KEPT if interval.high < alpha else Verdict.CANNOT_SAY


def is_thin(interval: Interval | None, count: float) -> bool:
    """Whether there are too few verdicts to lean on, whatever they say."""
    return interval is None or count < ENOUGH_ANSWERED or interval.width > WIDEST
