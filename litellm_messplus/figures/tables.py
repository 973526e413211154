"""Tables for a terminal, written by templates.

A block of lines is a table: its title, its columns, then a line for each row. A column or cell is
set off by `¦`, which may begin a line that goes on. Columns of names stay whole; `>` marks figures,
`~` texts, which may be wrapped. A line `---` ends a section. A table without rows is not shown.
"""

from collections.abc import Iterator
from typing import Any

from litellm_messplus.figures.templates import filled
from litellm_messplus.runtime.terminal import Column, Kind, Rows

KINDS = {">": Kind.FIGURE, "~": Kind.WORDS}
LONGEST_CELL = 120


def tables(name: str, **found: Any) -> Iterator[Rows]:
    """Fill a template of the package, by its path, and read its tables."""
    for block in filled(name, **found).split("\n\n"):
        title, columns, *rows = block.replace("\n¦", " ¦").strip().split("\n")
        if not rows:
            continue
        table = Rows(title, map(_column, _cells(columns)))
        for row in rows:
            if row == "---":
                table.end_section()
            else:
                table.add(*map(_cut, _cells(row)))
        yield table


def _cells(line: str) -> list[str]:
    return [each.strip() for each in line.split("¦")]


def _column(text: str) -> Column:
    mark = text[:1]
    is_marked = mark in KINDS
    return Column(text[1:].strip() if is_marked else text, KINDS.get(mark, Kind.WHOLE))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 3]}..."
