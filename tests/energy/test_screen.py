"""A reading that cannot be used is dropped and counted, and what is not measured is never zero."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.energy.measure import Cell, Idle, MeasuredWindow, Usage, idle_of
from litellm_messplus.energy.meter import NotMeasuredError, Reading, reading
from litellm_messplus.energy.profile import screened

IDLE = Idle(watts=60.0, noise_watts=0.5)
CELL = Cell(64, 16, 4)
USAGE = Usage(10, 640, 160)
PLAUSIBLE = 2000.0


def window(found: Reading, usage: Usage | None = USAGE) -> MeasuredWindow:
    return MeasuredWindow(CELL, usage, found)


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (Reading(0.0, 100.0), "no time passed"),
        (Reading(math.nan, 100.0), "no time passed"),
        (Reading(5.0, 5 * PLAUSIBLE + 1), "more power than plausible"),
        (Reading(5.0, math.nan), "more power than plausible"),
        (Reading(5.0, -10.0), "less energy than idle"),
        (Reading(5.0, 5 * 50.0), "less energy than idle"),
        (Reading(5.0, 5 * 60.1), "not to be told from idle"),
    ],
)
def test_a_useless_reading_is_dropped_and_counted_by_why(found: Reading, why: str) -> None:
    kept = window(Reading(5.0, 800.0))

    result = screened([kept, window(found), window(found)], IDLE, PLAUSIBLE)

    assert [sample.joules for sample in result.samples] == [500.0]
    assert result.dropped == {why: 2}


def test_a_window_in_which_a_request_failed_is_dropped() -> None:
    result = screened([window(Reading(5.0, 800.0), usage=None)], IDLE, PLAUSIBLE)

    assert (result.samples, result.dropped) == ((), {"a request failed": 1})


@given(st.floats(min_value=0.1, max_value=100), st.floats(min_value=62.0, max_value=PLAUSIBLE))
def test_what_is_kept_is_what_was_read_less_idle(seconds: float, watts: float) -> None:
    (sample,) = screened([window(Reading(seconds, watts * seconds))], IDLE, PLAUSIBLE).samples

    assert sample.joules == pytest.approx((watts - IDLE.watts) * seconds)
    assert (sample.requests, sample.prompt_tokens, sample.completion_tokens) == (10, 640, 160)


def test_sensors_are_summed() -> None:
    assert reading(2.0, {"gpu 0": 100.0, "gpu 1": 50.0, "cpu 0": 30.0}) == Reading(2.0, 180.0)


@pytest.mark.parametrize(
    ("joules", "named"), [({}, "no sensor"), ({"gpu 0": 0.0}, "gpu 0"), ({"a": 1.0, "b": 0.0}, "b")]
)
def test_a_sensor_that_counts_nothing_is_not_zero_joules(
    joules: dict[str, float], named: str
) -> None:
    with pytest.raises(NotMeasuredError, match=f"^{named} counted 0 J in 5 s, which is not"):
        reading(5.0, joules)


def test_a_counter_that_ran_backwards_is_not_hidden_by_the_others() -> None:
    assert reading(5.0, {"gpu 0": 1000.0, "gpu 1": -3.0}).joules == -3.0


def test_idle_power_is_the_mean_and_its_noise_the_spread() -> None:
    found = idle_of([Reading(2.0, 118.0), Reading(2.0, 120.0), Reading(2.0, 122.0)], PLAUSIBLE)

    assert found == Idle(60.0, 1.0)


def test_absurd_idle_windows_are_dropped_and_counted() -> None:
    good, absurd = Reading(2.0, 120.0), Reading(2.0, 1e9)

    assert idle_of([good, absurd, good, Reading(2.0, -1.0)], PLAUSIBLE) == Idle(60.0, 0.0, 2)


def test_a_meter_that_is_absurd_at_idle_is_not_trusted() -> None:
    with pytest.raises(NotMeasuredError, match="of 3 windows without requests 1 can be used"):
        idle_of([Reading(2.0, -1.0), Reading(2.0, -1.0), Reading(2.0, 5.0)], PLAUSIBLE)
