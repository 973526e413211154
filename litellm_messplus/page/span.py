"""The span of time that a chart shows: from when to when, and in which steps."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
LONGEST_DAYS = 366
"""So that a reading is bounded, whatever is asked for."""
STEPS = ((2, HOUR), (14, 6 * HOUR), (120, DAY), (LONGEST_DAYS, 7 * DAY))
"""Up to how many days a chart has which step: 24 to 120 points, as many as a person can tell
apart."""


@dataclass(frozen=True, slots=True)
class Span:
    """The time from ``begin`` to before ``end``, both UTC, in whole steps."""

    begin: datetime
    end: datetime
    step: timedelta

    @property
    def is_hourly(self) -> bool:
        """Whether a step is less than a day, so that the sums by day do not tell it."""
        return self.step < DAY

    @property
    def starts(self) -> list[datetime]:
        """Return when each step begins."""
        count = (self.end - self.begin) // self.step
        return [self.begin + place * self.step for place in range(count)]

    @property
    def days(self) -> list[date]:
        """Every date that it touches."""
        return list(self._days())

    def place(self, moment: datetime) -> int | None:
        """Find which step it lies in, from 0; None outside of the span."""
        if not self.begin <= moment < self.end:
            return None
        return (moment - self.begin) // self.step

    def _days(self) -> Iterator[date]:
        day = self.begin.date()
        while datetime(day.year, day.month, day.day, tzinfo=UTC) < self.end:
            yield day
            day += DAY


def span_of(days: int, until: datetime) -> Span:
    """Return the span of so many days that ends with the step in which ``until`` lies.

    Raises ValueError for less than one day, and for more than ``LONGEST_DAYS``.
    """
    if not 1 <= days <= LONGEST_DAYS:
        raise ValueError(f"a span of {days} days; allowed: 1 to {LONGEST_DAYS}")
    step = next(step for most, step in STEPS if days <= most)
    grain = min(step, DAY)
    midnight = until.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    end = midnight + ((until - midnight) // grain + 1) * grain
    count = -(-timedelta(days=days) // step)
    return Span(end - count * step, end, step)
