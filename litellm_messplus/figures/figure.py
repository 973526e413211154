"""A figure that is shown, declared once: where it stands in its part of the status, what it means,
how it follows from what was read, its gauge, and its row in the terminal."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

from litellm_messplus.figures.templates import written
from litellm_messplus.figures.words import UNKNOWN

T = TypeVar("T")
Plain = dict[str, Any]
"""A part of the status as it stands in its JSON."""


class Figure(NamedTuple, Generic[T]):
    """A figure at a ``path`` of its part of the status."""

    path: str
    meaning: str = ""
    """What it means, for the docs; without, the meaning before is of both."""
    of: Callable[[T], Any] | None = None
    """How it follows from what was read; without, it is the attribute of its name."""
    gauge: str = ""
    row: str = ""
    """The title of its row, or column, in the terminal: a template; without, it has none."""
    text: str = "figure"
    """How it is written there: a filter of the value, or a template over the part."""

    @property
    def template(self) -> str:
        """The template of its text."""
        return self.text if "{" in self.text else f"{{{{ {self.path} | {self.text} }}}}"


def part(figures: Iterable[Figure[T]], found: T, **known: Any) -> Plain:
    """Compute the figures of a part, except those ``known``. What lies within an unknown one is
    left out."""
    plain: Plain = {}
    for path, _, of, *_ in figures:
        above, _, name = path.rpartition(".")
        holder = plain.setdefault(above, {}) if above else plain
        if path in known:
            holder[name] = known[path]
        elif holder is not None:
            holder[name] = getattr(found, name) if of is None else of(found)
    return plain


def value_at(found: Any, path: str) -> Any:
    """Return the value at a path of a part; None if it lies within an unknown one."""
    for name in path.split("."):
        found = None if found is None else found[name]
    return found


def rows(
    figures: Iterable[Figure[Any]], found: Plain, within: str | tuple[str, ...] = "", **more: Any
) -> Iterator[tuple[str, str]]:
    """Yield title and text of the figures of a part that have a row, those of the paths
    ``within``; their templates know ``more``."""
    for each in figures:
        if each.row and each.path.startswith(within):
            above = each.path.rpartition(".")[0]
            is_known = not above or value_at(found, above) is not None
            text = written(each.template, found, **more) if is_known else UNKNOWN
            yield written(each.row, found, **more), text


LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")


def schema(figures: Iterable[Figure[Any]], **inside: Plain) -> Plain:
    """Return the JSON schema of a part: what each figure means, and what else is ``inside``."""
    found: Plain = {"type": "object", "properties": inside}
    meaning = ""
    for each in figures:
        above, _, name = each.path.rpartition(".")
        holder = found["properties"].setdefault(above, {}) if above else found
        meaning = LINK.sub(r"\1", each.meaning) or meaning
        holder.setdefault("properties", {})[name] = {"description": meaning}
    return found


class Series(NamedTuple):
    """A metric with the values of its labels, for which Prometheus keeps one number."""

    metric: str
    labels: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, metric: str, **labels: str) -> "Series":
        """Return the series of a metric with these labels."""
        return cls(metric, tuple(labels.items()))


def series(group: Iterable[Figure[Any]], found: Plain, **labels: str) -> dict[Series, float]:
    """Return the known figures of a part that have a gauge."""
    values = ((each.gauge, value_at(found, each.path)) for each in group if each.gauge)
    return {
        Series.of(f"messplus_{gauge}", **labels): float(value)
        for gauge, value in values
        if value is not None
    }
