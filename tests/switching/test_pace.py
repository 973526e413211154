"""Decisions aside are made at a pace: the first at once, then so many a second, whatever comes."""

import pytest

from litellm_messplus.switching.modes import Pace


def taken(pace: Pace, seconds: float, a_second: int, begin: float = 0.0) -> int:
    """How many of so many requests a second are decided."""
    return sum(pace.take(begin + number / a_second) for number in range(int(seconds * a_second)))


def test_the_first_are_all_decided() -> None:
    assert taken(Pace(10.0, first=250), 1.0, 250) == 250


@pytest.mark.parametrize("a_second", [20, 100, 1000])
def test_then_so_many_a_second_however_many_come(a_second: int) -> None:
    assert taken(Pace(10.0, first=0), 60.0, a_second) == pytest.approx(600, abs=11)


def test_of_a_few_all_are_decided() -> None:
    assert taken(Pace(10.0, first=0), 60.0, 5) >= 299


def test_quiet_times_save_nothing_up() -> None:
    pace = Pace(10.0, first=0)
    assert not pace.take(0.0)
    assert taken(pace, 1.0, 1000, begin=3600.0) <= 20


def test_less_than_one_a_second_is_a_pace_too() -> None:
    assert taken(Pace(0.1, first=0), 100.0, 10) == pytest.approx(10, abs=1)
