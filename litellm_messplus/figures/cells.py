"""Templates of what is shown: `{path:form}` is the value at a path of the status, in that form."""

from collections.abc import Callable
from string import Formatter
from typing import Any

from litellm_messplus.figures.words import figure, percent, percent_around

FORMS: dict[str, Callable[..., str]] = {
    "": str,
    "figure": figure,
    "ms": lambda seconds: figure(1000.0 * seconds, "ms"),
    "percent": percent,
    "percent 2": lambda share: percent(share, 2),
    "around": percent_around,
    ".2f": "{:.2f}".format,
}
"""By name, what writes the values at the paths; `figure UNIT` writes one with that unit."""


def value_at(found: Any, path: str) -> Any:
    """Return the value at a path; None where a part on the way is None."""
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
