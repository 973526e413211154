"""A window's joules go to the calls in it, all of them and to nobody else."""

import math
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.energy.follow import (
    BOUND,
    Call,
    Correction,
    Ledger,
    Span,
    apportion,
    is_absurd,
)
from litellm_messplus.runtime import Counters

seconds = st.floats(min_value=0.0, max_value=30.0)
amount = st.floats(min_value=0.01, max_value=1e4)


@given(amount, st.lists(amount, min_size=1, max_size=50))
def test_the_parts_sum_to_the_window(joules: float, weights: list[float]) -> None:
    parts = apportion(joules, weights)

    assert sum(parts) == pytest.approx(joules, rel=1e-9)
    assert min(parts) >= 0


def test_a_call_that_is_estimated_at_twice_as_much_gets_twice_as_much() -> None:
    assert apportion(30.0, [2.0, 1.0]) == [20.0, 10.0]


def test_joules_cannot_go_to_calls_that_weigh_nothing() -> None:
    with pytest.raises(ValueError, match="weigh nothing"):
        apportion(30.0, [0.0, 0.0])


@given(seconds, seconds, st.lists(seconds, max_size=5))
def test_windows_in_a_row_share_a_call_out_completely(
    started: float, duration: float, cuts: list[float]
) -> None:
    call = Call("a", "one", started, started + duration, 5.0)
    edges = sorted({0.0, 61.0, *cuts})

    shares = [Span(start, end).share_of(call) for start, end in pairwise(edges)]

    assert sum(shares) == pytest.approx(1.0)
    assert min(shares) >= 0


class Books:
    """A ledger with windows of ten seconds, settled five seconds after their end."""

    def __init__(self) -> None:
        self.counters = Counters()
        self.ledger = Ledger(5.0, self.counters)
        self.measured: dict[str, float] = {}
        self.now = 0.0

    def call(self, name: str, start: float, end: float, joules: float, on: str = "one") -> None:
        self.ledger.ended(Call(name, on, start, end, joules))

    def window(self, joules: float | None) -> None:
        self.now += 10.0
        self.ledger.window(Span(self.now - 10.0, self.now), joules)

    @property
    def counts(self) -> Counter[str]:
        return Counter(self.counters.as_dict())

    def settle(self) -> None:
        for call in self.ledger.settle(self.now + 5.0):
            assert call.call_id not in self.measured
            self.measured[call.call_id] = call.joules


def test_concurrent_calls_share_a_window_by_their_estimates() -> None:
    books = Books()
    books.call("a", 1.0, 9.0, 100.0)
    books.call("b", 2.0, 4.0, 300.0)

    books.window(500.0)
    books.settle()

    assert books.measured == pytest.approx({"a": 125.0, "b": 375.0})


def test_a_call_over_several_windows_is_reported_once_with_all_its_joules() -> None:
    books = Books()
    books.call("long", 5.0, 25.0, 100.0)
    for joules in (25.0, 60.0, 25.0):
        books.window(joules)
        books.settle()

    assert books.measured == pytest.approx({"long": 110.0})


def test_a_call_that_ended_after_its_first_window_still_has_its_part_of_it() -> None:
    books = Books()
    books.call("short", 0.0, 10.0 - 1e-9, 100.0)
    books.window(200.0)
    books.ledger.settle(10.0)
    books.call("long", 0.0, 12.0, 120.0)
    books.window(20.0)
    books.settle()

    assert books.measured == pytest.approx({"short": 100.0, "long": 120.0})


@pytest.mark.parametrize("second", [None, 1e9, -5.0])
def test_a_call_with_a_window_that_was_dropped_is_not_measured(second: float | None) -> None:
    books = Books()
    books.call("over", 5.0, 15.0, 100.0)
    books.call("within", 1.0, 2.0, 100.0)

    books.window(150.0)
    books.window(second)
    books.settle()

    assert set(books.measured) == {"within"}
    assert books.counts["energy_calls_not_measured"] == 1
    assert books.counts["energy_readings_dropped"] == (0 if second is None else 1)


def test_a_call_from_before_the_first_window_is_not_measured() -> None:
    books = Books()
    books.call("before", -5.0, 5.0, 100.0)
    books.window(50.0)
    books.settle()

    assert books.measured == {}
    assert books.counts == {"energy_calls_not_measured": 1}


def test_a_window_without_calls_is_counted_and_moves_nothing() -> None:
    books = Books()
    books.window(500.0)
    books.settle()

    assert books.counts == {"energy_windows_without_calls": 1}
    assert books.ledger.correction("one") == 1.0


@pytest.mark.parametrize("estimate", [-1.0, math.nan, math.inf])
def test_a_call_with_an_absurd_estimate_takes_nothing_from_the_others(estimate: float) -> None:
    books = Books()
    books.call("absurd", 1.0, 2.0, estimate)
    books.call("good", 1.0, 2.0, 100.0)
    books.window(100.0)
    books.settle()

    assert books.measured == pytest.approx({"good": 100.0})
    assert books.counts == {"energy_calls_not_measured": 1}


calls = st.lists(
    st.tuples(seconds, seconds, st.floats(min_value=1.0, max_value=20.0)), min_size=1, max_size=30
)


@given(calls, st.floats(min_value=0.2, max_value=5.0))
def test_measured_calls_sum_to_the_measured_windows(
    found: list[tuple[float, float, float]], times: float
) -> None:
    """Within 1 %, with every call within windows that read ``times`` what was estimated."""
    books = Books()
    drawn = Counter[int]()
    for number, (start, duration, joules) in enumerate(found):
        call = Call(str(number), "one", start, start + duration, joules)
        books.ledger.ended(call)
        for index in range(7):
            share = Span(10.0 * index, 10.0 * index + 10.0).share_of(call)
            drawn[index] += times * joules * share  # type: ignore[assignment]
    for index in range(7):
        books.window(drawn[index] or None)
    books.settle()

    assert len(books.measured) == len(found)
    assert sum(books.measured.values()) == pytest.approx(sum(drawn.values()), rel=0.01)


@given(st.floats(min_value=0.2, max_value=5.0))
def test_the_correction_follows_the_measurement_slowly(times: float) -> None:
    correction = Correction()
    correction.follow(100.0 * times, 100.0)

    assert abs(math.log(correction.factor)) <= 0.1 * abs(math.log(times))
    for _ in range(200):
        correction.follow(100.0 * times, 100.0 * correction.factor)
    assert correction.factor == pytest.approx(times, rel=0.01)


@given(st.lists(st.floats(min_value=1 / BOUND, max_value=BOUND), max_size=200))
def test_the_correction_is_bounded(ratios: list[float]) -> None:
    correction = Correction()
    for ratio in ratios:
        correction.follow(ratio, 1.0)

    assert correction.factor * (1 + 1e-9) >= 1 / BOUND
    assert correction.factor <= BOUND * (1 + 1e-9)


@pytest.mark.parametrize("measured", [-1.0, 0.0, 0.9, 1001.0, math.nan, math.inf])
def test_an_absurd_window_does_not_move_the_correction(measured: float) -> None:
    correction = Correction()

    assert is_absurd(measured, 100.0 if measured >= 1 else 10.0)
    with pytest.raises(ValueError, match="J measured where"):
        correction.follow(measured, 100.0 if measured >= 1 else 10.0)
    assert correction.factor == 1.0


def test_two_deployments_on_one_device_are_told_apart_by_their_mix() -> None:
    """One takes twice what its profile says, the other what it says."""
    books = Books()
    for step in range(600):
        first, second = (90.0, 10.0) if step % 2 else (10.0, 90.0)
        books.call(f"first {step}", books.now + 1, books.now + 2, first, on="first")
        books.call(f"second {step}", books.now + 3, books.now + 4, second, on="second")
        books.window(2.0 * first + second)
        books.settle()

    assert books.ledger.correction("first") == pytest.approx(2.0, rel=0.05)
    assert books.ledger.correction("second") == pytest.approx(1.0, rel=0.05)
