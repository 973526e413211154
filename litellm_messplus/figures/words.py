"""Figures for people: four significant digits and a unit, shares in percent, times to the second,
and one word for unknown values."""

from collections.abc import Callable
from datetime import datetime
from string import Formatter
from typing import Any

UNKNOWN = "unknown"
DIGITS = 4


def figure(value: float | None, unit: str | None = None) -> str:
    """Write a number to four significant digits, with its unit if it has one."""
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


# Templates of what is shown: `{path:form}` is the value at a path of the status, in that form.

FORMS: dict[str, Callable[..., str]] = {
    "": str,
    "figure": figure,
    "ms": lambda seconds: figure(1000.0 * seconds, "ms"),
    "percent": percent,
    "percent 2": lambda share: percent(share, 2),
    "around": percent_around,
    ".2f": "{:.2f}".format,
}
"""Formats of the values at the paths, by name; `figure UNIT` writes one with that unit."""


def value_at(found: Any, path: str) -> Any:
    """Return the value at a path; None if a part on the way is None."""
    for name in filter(None, path.split(".")):
        if found is None:
            return None
        found = getattr(found, name)
    return found


def holder_of(found: Any, path: str) -> Any:
    """Return the part of the status that has the value at a path."""
    return value_at(found, path.rpartition(".")[0])


def written(template: str, found: Any, unit: str | None = None) -> str:
    """Fill a template. Several paths of one form are separated by commas; the unit `$` is
    ``unit``."""
    text = ""
    for literal, paths, form, _ in Formatter().parse(template):
        text += literal
        if paths is not None:
            text += _written([value_at(found, path) for path in paths.split(",")], form or "", unit)
    return text


def _written(values: list[Any], form: str, unit: str | None) -> str:
    name, _, given = form.partition(" ")
    if name == "figure" and given:
        return figure(values[0], unit if given == "$" else given)
    return FORMS[form](*values)
