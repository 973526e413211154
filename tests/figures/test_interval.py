"""Wilson's interval, against published values and by its properties."""

from math import sqrt

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from litellm_messplus.figures.interval import (
    NARROW,
    Interval,
    Standing,
    Verdict,
    Z,
    is_thin,
    points_below,
    standing,
    verdict,
    wilson,
)

properties = settings(deadline=None, derandomize=True, database=None, max_examples=200)
COUNTS = st.integers(1, 5000)


@st.composite
def observed(draw: st.DrawFn) -> tuple[float, int]:
    count = draw(COUNTS)
    return draw(st.integers(0, count)) / count, count


def interval(rate: float, count: int) -> Interval:
    found = wilson(rate, count)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("satisfied", "count", "low", "high"),
    [  # R: prop.test(x, n, correct = FALSE)$conf.int
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (5, 10, 0.2366, 0.7634),
        (81, 263, 0.2553, 0.3662),  # Newcombe (1998), Table I, method 3
        (15, 148, 0.0624, 0.1605),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_known_values(satisfied: int, count: int, low: float, high: float) -> None:
    found = interval(satisfied / count, count)

    assert found.low == pytest.approx(low, abs=1e-4)
    assert found.high == pytest.approx(high, abs=1e-4)


def test_nothing_is_known_without_verdicts() -> None:
    assert wilson(0.0, 0) is None
    assert verdict(None, 0.7) is Verdict.CANNOT_SAY
    assert is_thin(None, 0)


@pytest.mark.parametrize(("rate", "count"), [(-0.1, 5), (1.1, 5), (0.5, -1), (float("nan"), 3)])
def test_what_is_no_share_is_refused(rate: float, count: int) -> None:
    with pytest.raises(ValueError, match="a share of"):
        wilson(rate, count)


@properties
@given(observed())
def test_it_holds_the_share_and_stays_a_share(seen: tuple[float, int]) -> None:
    rate, count = seen
    found = interval(rate, count)

    assert 0.0 <= found.low <= rate <= found.high <= 1.0
    assert found.width > 0.0


@properties
@given(observed())
def test_its_ends_are_z_standard_errors_away(seen: tuple[float, int]) -> None:
    rate, count = seen
    found = interval(rate, count)

    for end in (found.low, found.high):
        distance = Z * sqrt(end * (1.0 - end) / count)
        assert abs(rate - end) == pytest.approx(distance, abs=1e-7)


@properties
@given(observed())
def test_satisfied_and_unsatisfied_mirror_each_other(seen: tuple[float, int]) -> None:
    rate, count = seen
    found, mirrored = interval(rate, count), interval(1.0 - rate, count)

    assert found.low == pytest.approx(1.0 - mirrored.high, abs=1e-9)


@properties
@given(observed(), st.integers(2, 20))
def test_more_verdicts_narrow_it(seen: tuple[float, int], times: int) -> None:
    rate, count = seen
    assert interval(rate, count * times).width < interval(rate, count).width


@properties
@given(observed(), st.floats(0.0, 1.0))
def test_the_verdict_is_where_alpha_lies(seen: tuple[float, int], alpha: float) -> None:
    found = interval(*seen)
    assume(alpha not in (found.low, found.high))
    expected = (
        Verdict.KEPT
        if alpha < found.low
        else Verdict.NOT_KEPT if alpha > found.high
        else Verdict.KEPT_WITHIN if found.width / 2 <= NARROW
        else Verdict.CANNOT_SAY
    )  # fmt: skip

    assert verdict(found, alpha) is expected


def test_an_interval_that_begins_at_alpha_keeps_it() -> None:
    assert verdict(Interval(0.7, 0.8), 0.7) is Verdict.KEPT
    assert verdict(Interval(0.6, 0.7), 0.7) is Verdict.CANNOT_SAY


@pytest.mark.parametrize(
    ("rate", "count", "expected", "points"),
    [
        (0.8, 300, Verdict.CANNOT_SAY, None),
        (0.8, 900, Verdict.CANNOT_SAY, None),
        (0.8, 1000, Verdict.KEPT_WITHIN, 2.6),
        (0.8, 1200, Verdict.KEPT_WITHIN, 2.4),
        (0.8, 4400, Verdict.KEPT_WITHIN, 1.3),
        (0.8, 100_000, Verdict.KEPT_WITHIN, 0.3),
        (0.81, 1200, Verdict.KEPT_WITHIN, 1.4),
        (0.779, 1200, Verdict.KEPT_WITHIN, 4.6),
        (0.775, 1200, Verdict.NOT_KEPT, None),
        (0.83, 1200, Verdict.KEPT, None),
    ],
)
def test_a_promise_that_is_held_exactly_is_kept_within_some_points(
    rate: float, count: int, expected: Verdict, points: float | None
) -> None:
    found = interval(rate, count)

    assert verdict(found, 0.8) is expected
    assert points_below(found, 0.8) == points


def test_what_is_measured_is_on_track_unless_all_of_it_is_below_or_it_is_wide() -> None:
    assert standing(Interval(0.7, 0.8), 0.7) is Standing.ON_TRACK
    assert standing(Interval(0.78, 0.82), 0.8) is Standing.ON_TRACK
    assert standing(Interval(0.7, 0.79), 0.8) is Standing.BELOW
    assert standing(Interval(0.7, 0.9), 0.8) is Standing.TOO_EARLY
    assert standing(None, 0.8) is Standing.TOO_EARLY


def test_points_are_rounded_up_and_are_stated_for_no_other_verdict() -> None:
    assert points_below(Interval(0.75, 0.79), 0.77) == 2.0
    assert points_below(Interval(0.75, 0.79), 0.7701) == 2.1
    assert points_below(Interval(0.7, 0.8), 0.75) is None
    assert points_below(None, 0.75) is None


@pytest.mark.parametrize(
    ("rate", "count", "thin"),
    [(1.0, 99, True), (1.0, 100, False), (0.5, 380, True), (0.5, 390, False), (0.7, 200, True)],
)
def test_few_verdicts_or_a_wide_interval_are_thin(rate: float, count: int, thin: bool) -> None:
    assert is_thin(wilson(rate, count), count) is thin
