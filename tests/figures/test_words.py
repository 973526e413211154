"""Figures for people: four significant digits, and a unit."""

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.figures.words import figure, moment, percent, percent_around


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (0.24729299545288086, "usd", "$0.2473"),
        (0.000034162, "usd", "$3.416e-05"),
        (2.0, None, "2"),
        (-0.0, None, "0"),
        (12, "requests", "12 requests"),
        (9999.4, None, "9999"),
        (9999.6, None, "10,000"),
        (1_234_567.8, "joule", "1,234,568 joule"),
        (None, "usd", "unknown"),
    ],
)
def test_a_figure_has_its_unit(value: float | None, unit: str | None, expected: str) -> None:
    assert figure(value, unit) == expected


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_figure_is_right_to_four_digits(value: float) -> None:
    shown = figure(value)

    assert float(shown.replace(",", "")) == pytest.approx(value, rel=0.5e-3, abs=0.0)
    if abs(value) < 9999.5:
        digits = re.sub(r"e.*|\D", "", shown).lstrip("0")
        assert len(digits) <= 4


def test_shares_are_in_percent() -> None:
    assert percent(0.8166) == "81.7 %"
    assert percent(0.8166, 0) == "82 %"
    assert percent(None) == "unknown"
    assert percent_around(0.817, 0.769, 0.856) == "81.7 % (76.9 to 85.6 %)"
    assert percent_around(None, None, None) == "unknown"


def test_a_moment_is_shown_to_the_second() -> None:
    assert moment(datetime(2026, 3, 1, 9, 31, 0, 999, UTC)) == "2026-03-01 09:31:00"
