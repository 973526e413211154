"""Confidence in a share of few verdicts: Wilson's interval, and what it shows about alpha."""

from dataclasses import dataclass
from enum import StrEnum
from math import ceil, sqrt

Z = 1.96
"""Standard errors on either side, for 95 %; the same number as in `docs/sql.md`."""
ENOUGH_ANSWERED = 100
WIDEST = 0.10
"""Limits of thin evidence: fewer verdicts, or a wider interval."""
NARROW = 0.025
"""Largest half width of an interval around a promise that is kept within points."""


class Standing(StrEnum):
    """The verdict on what was measured of the judged requests; `failing` is on requests that get no
    answer."""

    ON_TRACK = "on track"
    BELOW = "below"
    TOO_EARLY = "too early"
    FAILING = "failing"


class Verdict(StrEnum):
    """The verdict on what is proved of all answered requests, used by the certificate alone."""

    KEPT = "kept"
    KEPT_WITHIN = "kept within"
    NOT_KEPT = "not kept"
    CANNOT_SAY = "cannot say yet"


@dataclass(frozen=True, slots=True)
class Interval:
    """The interval of the true share, at 95 %; shares from 0 to 1."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """The width from end to end, as a share."""
        return self.high - self.low


def wilson(rate: float, count: float) -> Interval | None:
    """Compute Wilson's interval around ``rate`` of ``count`` verdicts; None without any. If
    verdicts have different weights, ``count`` is their `effective` number.

    It is made for verdicts of 0 and 1; with scores in between it is too wide, not too narrow.
    Raises ValueError if ``rate`` is no share, or ``count`` is negative.
    """
    if not 0.0 <= rate <= 1.0 or count < 0:
        raise ValueError(f"a share of {rate} in {count} verdicts")
    if count == 0:
        return None
    scale = 1.0 + Z * Z / count
    middle = (rate + Z * Z / (2.0 * count)) / scale
    half = Z * sqrt(rate * (1.0 - rate) / count + Z * Z / (4.0 * count * count)) / scale
    # Rounding must not push an end past the share: if all are satisfied, high = 1.
    return Interval(max(0.0, min(middle - half, rate)), min(1.0, max(middle + half, rate)))


def effective(weight: float, squared_weight: float) -> float:
    """Return the effective number of verdicts of equal weight (Kish), from the sum of the weights
    and that of their squares; 0 without any."""
    return weight * weight / squared_weight if squared_weight else 0.0


def verdict(interval: Interval | None, alpha: float) -> Verdict:
    """Judge a promise: kept if all of the interval is at or above ``alpha``; not kept if all is
    below.

    In between it is kept within some points if the interval is narrow: see `points_below`.
    """
    if interval is None:
        return Verdict.CANNOT_SAY
    if interval.low >= alpha:
        return Verdict.KEPT
    if interval.high < alpha:
        return Verdict.NOT_KEPT
    return Verdict.KEPT_WITHIN if interval.width / 2.0 <= NARROW else Verdict.CANNOT_SAY


STANDINGS = {
    Verdict.KEPT: Standing.ON_TRACK,
    Verdict.KEPT_WITHIN: Standing.ON_TRACK,
    Verdict.NOT_KEPT: Standing.BELOW,
    Verdict.CANNOT_SAY: Standing.TOO_EARLY,
}
"""The standing for each verdict, for an interval that only measures and proves nothing."""


def standing(interval: Interval | None, alpha: float) -> Standing:
    """Tell where a measured share stands: on track unless all of its interval is below ``alpha``;
    too early if the interval contains alpha and is wide."""
    return STANDINGS[verdict(interval, alpha)]


def points_below(interval: Interval | None, alpha: float) -> float | None:
    """Return how far below ``alpha`` the true share may be, in points, rounded up to 0.1; None
    unless the promise is kept within points."""
    if interval is None or verdict(interval, alpha) is not Verdict.KEPT_WITHIN:
        return None
    tenths = 1000.0 * (alpha - interval.low)
    return ceil(tenths - 1e-6) / 10.0


def verdict_in_words(verdict: Verdict, kept_within_points: float | None) -> str:
    """Write a verdict, with its points if it has any."""
    points = kept_within_points
    return verdict.value if points is None else f"{verdict.value} {points:g} points"


def is_thin(interval: Interval | None, count: float) -> bool:
    """Tell whether there are too few verdicts to rely on, whatever they are."""
    return interval is None or count < ENOUGH_ANSWERED or interval.width > WIDEST
