"""Spans of time: whole steps that end with now, and never more of them than a person can read."""

from datetime import UTC, datetime, timedelta

import pytest

from litellm_messplus.page.charts import DAY, HOUR, LONGEST_DAYS, span_of

NOW = datetime(2026, 3, 5, 14, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("days", "step", "points"),
    [(1, HOUR, 24), (7, 6 * HOUR, 28), (30, DAY, 30), (90, DAY, 90), (365, 7 * DAY, 53)],
)
def test_a_range_has_steps_that_a_person_can_tell_apart(
    days: int, step: timedelta, points: int
) -> None:
    span = span_of(days, NOW)

    assert span.step == step
    assert len(span.starts) == points
    assert span.place(NOW) == points - 1


@pytest.mark.parametrize("days", range(1, LONGEST_DAYS + 1, 9))
def test_every_range_is_bounded_and_ends_soon_after_now(days: int) -> None:
    span = span_of(days, NOW)

    assert 4 <= len(span.starts) <= 120
    assert timedelta(0) < span.end - NOW <= DAY
    assert span.end - span.begin >= timedelta(days=days)


def test_steps_begin_on_the_hour_and_days_at_midnight() -> None:
    assert span_of(1, NOW).end == datetime(2026, 3, 5, 15, tzinfo=UTC)
    assert span_of(30, NOW).end == datetime(2026, 3, 6, tzinfo=UTC)


def test_what_lies_outside_has_no_place() -> None:
    span = span_of(1, NOW)

    assert span.place(span.begin) == 0
    assert span.place(span.begin - timedelta(seconds=1)) is None
    assert span.place(span.end) is None


def test_it_touches_every_day_between() -> None:
    assert [day.day for day in span_of(2, NOW).days] == [3, 4, 5]


@pytest.mark.parametrize("days", [0, -1, LONGEST_DAYS + 1])
def test_other_ranges_are_refused(days: int) -> None:
    with pytest.raises(ValueError, match="allowed: 1 to 366"):
        span_of(days, NOW)
