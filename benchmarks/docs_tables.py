"""The tables of docs/{status,metrics,settings,tables,support}.md, printed from the
declarations in the code: `make docs`.

Each replaces the table with that first column under that heading. A test checks that the pages are
up to date.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import settings_tables, sql_tables, support_table
from litellm_messplus.brain.metrics import DISTRIBUTIONS, MEANINGS
from litellm_messplus.figures.figure import Figure
from litellm_messplus.status.calibration import CALIBRATION
from litellm_messplus.status.figures import (
    JUDGE,
    KEY,
    LABEL_COSTS,
    LEVEL,
    OVERALL,
    SOURCE,
    WINDOW,
)
from litellm_messplus.status.newest import CONVERSATIONS, INCIDENTS

DOCS = Path(__file__).parents[1] / "docs"
SECTIONS = {
    "labels.": "Labels, source by source",
    "overhead.": "The overhead",
}
"""Paths whose figures have a table of their own, under that heading."""


def tables() -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Yield each table: its heading, its first column, its rows."""
    every: tuple[Figure[Any], ...] = (*LEVEL, *WINDOW)
    yield "What each figure means", "Figure", _figures(_without(every))
    for prefix, heading in SECTIONS.items():
        below = [each for each in every if each.path.startswith(prefix)]
        inner = [each._replace(path=each.path.removeprefix(prefix)) for each in below]
        yield heading, "Figure", _figures([*inner, *(SOURCE if prefix == "labels." else ())])
    yield "The judge", "Figure", _figures(JUDGE)
    yield "What labels cost", "Figure", _figures(LABEL_COSTS)
    yield "The keys with the most labels", "Figure", _figures(KEY)
    yield "Calibration", "Figure", _figures(CALIBRATION)
    yield "Conversations", "Figure", _figures(CONVERSATIONS)
    yield "What keys cause", "Figure", _figures(INCIDENTS)


def metrics() -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Yield the tables of metrics likewise: each metric is in one of them."""
    found = MEANINGS | {each.metric: each.meaning for each in DISTRIBUTIONS}
    of_promises = _gauges((*LEVEL, *WINDOW, *OVERALL))
    of_zoos = [*_gauges((*LABEL_COSTS, *JUDGE)), *(each.metric for each in DISTRIBUTIONS)]
    of_zoos.append("messplus_unrouted")
    others = [name for name in found if name not in (*of_promises, *of_zoos)]
    for heading, names in (
        ("Of each promise", of_promises),
        ("Of each zoo", of_zoos),
        ("Of the proxies", others),
    ):
        yield heading, "Metric", [(f"`{name}`", found[name]) for name in names]


Tables = Callable[[], Iterable[tuple[str, str, list[tuple[str, str]]]]]


def printed(tables: Tables, page: str) -> str:
    """Return the page with up-to-date tables. Raises ValueError for a table that it
    lacks."""
    for heading, column, rows in tables():
        lines = [f"| {column} | Meaning |", "| --- | --- |"]
        lines += [f"| {name} | {meaning} |" for name, meaning in rows]
        pattern = rf"(^## {heading}\n(?:(?!^## )[\s\S])*?)^(\| {column} \|.*\n(?:\|.*\n)*)"
        found = re.search(pattern, page, re.MULTILINE)
        if found is None:
            raise ValueError(f"{heading}: no table of the column {column}")
        page = page[: found.start(2)] + "\n".join(lines) + "\n" + page[found.end(2) :]
    return page


def _without(figures: Iterable[Figure[Any]]) -> list[Figure[Any]]:
    return [each for each in figures if not each.path.startswith(tuple(SECTIONS))]


def _figures(group: Iterable[Figure[Any]]) -> list[tuple[str, str]]:
    """Join figures of one meaning into one row: those of the same part by their last name."""
    rows: list[tuple[str, str]] = []
    part = ""
    for each in group:
        above, _, last = each.path.rpartition(".")
        if each.meaning:
            rows.append((f"`{each.path}`", each.meaning))
        else:
            names, meaning = rows[-1]
            rows[-1] = (f"{names}, `{last if above == part else each.path}`", meaning)
        part = above
    return rows


def _gauges(group: Iterable[Figure[Any]]) -> list[str]:
    return [f"messplus_{each.gauge}" for each in group if each.gauge]


PAGES: dict[Path, Callable[[str], str]] = {
    DOCS / "status.md": partial(printed, tables),
    DOCS / "metrics.md": partial(printed, metrics),
    DOCS / "settings.md": settings_tables.printed,
    DOCS / "tables.md": sql_tables.printed,
    DOCS / "support.md": support_table.printed,
}
"""Pages, and the functions that print their tables."""

if __name__ == "__main__":
    for page, made in PAGES.items():
        page.write_text(made(page.read_text("utf-8")), "utf-8")
