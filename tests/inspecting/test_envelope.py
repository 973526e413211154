"""The lower envelope: ranges, ties, and the winner at any price."""

from fractions import Fraction
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.inspecting.explain import PriceRange, envelope, range_at

NUMBERS = st.floats(0.0, 1.0)


def named(ranges: tuple[PriceRange, ...]) -> list[tuple[str, float, float | None]]:
    return [tuple(each.as_dict().values()) for each in ranges]


def test_each_is_best_from_where_its_line_crosses() -> None:
    ranges = envelope({"s": 1.0, "m": 2.0, "l": 6.0}, {"s": 0.25, "m": 0.5, "l": 1.0})

    assert named(ranges) == [("s", 0.0, 4.0), ("m", 4.0, 8.0), ("l", 8.0, None)]


def test_what_others_undercut_is_nowhere_the_best() -> None:
    ranges = envelope({"s": 1.0, "m": 5.0, "l": 6.0}, {"s": 0.25, "m": 0.5, "l": 1.0})

    assert [each.candidate for each in ranges] == ["s", "l"]


def test_of_equal_costs_the_better_counts_from_price_0_on() -> None:
    assert named(envelope({"a": 1.0, "b": 1.0}, {"a": 0.4, "b": 0.6})) == [("b", 0.0, None)]


def test_three_lines_through_one_point_leave_no_empty_range() -> None:
    ranges = envelope({"s": 0.0, "m": 1.0, "l": 2.0}, {"s": 0.0, "m": 0.5, "l": 1.0})

    assert named(ranges) == [("s", 0.0, 2.0), ("l", 2.0, None)]


def test_without_candidates_there_is_no_range() -> None:
    assert envelope({}, {}) == ()
    assert range_at((), 1.0) is None


def test_a_price_below_0_is_in_no_range() -> None:
    assert range_at(envelope({"a": 1.0}, {"a": 0.5}), -1.0) is None


@given(st.dictionaries(st.text("abcde", min_size=1), st.tuples(NUMBERS, NUMBERS)), NUMBERS)
def test_the_winner_is_the_argmin(lines: dict[str, tuple[float, float]], price: float) -> None:
    ranges = envelope(
        {name: cost for name, (cost, _) in lines.items()},
        {name: satisfaction for name, (_, satisfaction) in lines.items()},
    )
    scores = {
        name: Fraction(cost) - Fraction(price) * Fraction(satisfaction)
        for name, (cost, satisfaction) in lines.items()
    }

    found = range_at(ranges, price)

    if found is None:
        assert not lines
    else:
        assert scores[found.candidate] == min(scores.values())


def test_ranges_follow_each_other() -> None:
    random = Random(1)
    names = list("abcdefgh")
    ranges = envelope(
        {name: random.random() for name in names}, {name: random.random() for name in names}
    )

    assert ranges[0].low == 0
    assert ranges[-1].high is None
    assert [each.high for each in ranges[:-1]] == [each.low for each in ranges[1:]]
    assert all(each.high is None or each.low < each.high for each in ranges)
