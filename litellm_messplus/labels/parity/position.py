"""Does a judge prefer an answer for the place in which it is shown?

Each two answers are shown in both orders, so a judge that looks at nothing but the answers prefers
the first as often as the second.
"""

from dataclasses import dataclass
from math import sqrt

from litellm_messplus.labels.agreement import Z
from litellm_messplus.vocabulary import Preferred

ENOUGH = 20
"""Preferences below which nothing is said of a judge."""


@dataclass(frozen=True, slots=True)
class PositionBias:
    """The number of comparisons by the place of the answer that was found better."""

    first: int = 0
    second: int = 0
    neither: int = 0

    @property
    def preferences(self) -> int:
        """Comparisons in which one answer was found better."""
        return self.first + self.second

    @property
    def share(self) -> float | None:
        """The share of preferences for the first less that for the second, from -1 to 1; None
        without a preference."""
        return (self.first - self.second) / self.preferences if self.preferences else None

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the true share, at 95 % (Wilson's): the two orders of the same answers
        count as one, for a judge with a favourite place says the same in both."""
        count = self.preferences / 2.0
        if count == 0.0:
            return -1.0, 1.0
        rate, scale = self.first / self.preferences, 1.0 + Z * Z / count
        middle = (rate + Z * Z / (2.0 * count)) / scale
        half = Z * sqrt(rate * (1.0 - rate) / count + Z * Z / (4.0 * count * count)) / scale
        return 2.0 * (middle - half) - 1.0, 2.0 * (middle + half) - 1.0

    def may_be_within(self, most: float) -> bool:
        """Tell whether a bias of ``most`` or less, towards either place, is within what the
        comparisons allow: all of the interval must lie beyond before a judge is found to be
        biased."""
        low, high = self.interval
        return self.preferences < ENOUGH or (low <= most and high >= -most)

    def after(self, preferred: Preferred) -> "PositionBias":
        """Add one more comparison."""
        return PositionBias(
            self.first + (preferred is Preferred.FIRST),
            self.second + (preferred is Preferred.SECOND),
            self.neither + (preferred is Preferred.NEITHER),
        )

    def __str__(self) -> str:
        if self.share is None:
            return "unknown"
        low, high = self.interval
        return f"{self.share:+.2f} ({low:+.2f} to {high:+.2f}, {self.preferences} preferences)"
