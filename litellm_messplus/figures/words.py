"""Figures for people: four significant digits and a unit, shares in percent, times to the second,
and one word for unknown values."""

from datetime import datetime

UNKNOWN = "unknown"
DIGITS = 4


def figure(value: float | None, unit: str | None = None) -> str:
    """Write a number to four significant digits, with its unit if it has one."""
    if value is not None and unit == "usd":
        return f"{'-' if value < 0.0 else ''}${_digits(abs(value))}"
    return UNKNOWN if value is None else f"{_digits(value)} {unit or ''}".rstrip()


def _digits(value: float) -> str:
    """Format without rounding digits before the point, and zero without a sign."""
    is_long = abs(value) >= 10**DIGITS - 0.5
    return f"{value:,.0f}" if is_long else f"{value + 0.0:.{DIGITS}g}"


def around(estimate: float, low: float, high: float) -> str:
    """Write a number with the interval around it."""
    return f"{figure(estimate)} ({figure(low)} to {figure(high)})"


def percent(share: float | None, decimals: int = 1) -> str:
    """Write a share from 0 to 1 in percent."""
    return UNKNOWN if share is None else f"{100.0 * share:.{decimals}f} %"


def percent_range(low: float | None, high: float | None, decimals: int = 1) -> str:
    """Write an interval of shares in percent."""
    if low is None or high is None:
        return UNKNOWN
    return f"{100.0 * low:.{decimals}f} to {percent(high, decimals)}"


def percent_around(
    share: float | None, low: float | None, high: float | None, decimals: int = 1
) -> str:
    """Write a share in percent, with the interval around it."""
    if share is None:
        return UNKNOWN
    return f"{percent(share, decimals)} ({percent_range(low, high, decimals)})"


def moment(at: datetime) -> str:
    """Write a time to the second."""
    return f"{at:%Y-%m-%d %H:%M:%S}"
