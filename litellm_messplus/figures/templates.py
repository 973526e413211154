"""Texts and tables by Jinja templates, with the forms of `figures/words.py` as their filters."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template, UndefinedError
from markupsafe import Markup

from litellm_messplus.figures import words
from litellm_messplus.runtime.terminal import Column, Kind, Rows


class Absent(StrictUndefined):
    """A name that is not there, which raises UndefinedError; what is in an unknown part is None."""

    def __new__(
        cls,
        hint: str | None = None,
        obj: Any = ...,
        name: str | None = None,
        exc: type[Exception] = UndefinedError,
    ) -> Any:
        return None if obj is None else super().__new__(cls)


def in_line(value: Any) -> Any:
    """Keep a text in its line and its cell, as it may be a client's, unless it is known as safe."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return "".join(each if each.isprintable() else " " for each in value).replace("¦", "|")


ENVIRONMENT = Environment(
    loader=PackageLoader("litellm_messplus", ""),
    undefined=Absent,
    finalize=in_line,
    trim_blocks=True,
    lstrip_blocks=True,
)
ENVIRONMENT.filters |= {
    "figure": words.figure,
    "percent": words.percent,
    "count": "{:,.0f}".format,
    "ms": lambda seconds: words.figure(1000.0 * seconds, "ms"),
    "minute": "{:%Y-%m-%d %H:%M}".format,
    "moment": lambda at: words.moment(datetime.fromisoformat(at) if isinstance(at, str) else at),
}
ENVIRONMENT.globals |= {
    "around": words.percent_around,
    "interval": words.percent_range,
    "unknown": words.UNKNOWN,
}


@cache
def template(text: str) -> Template:
    """Compile a template once."""
    return ENVIRONMENT.from_string(text)


def written(text: str, found: Mapping[str, Any], **more: Any) -> str:
    """Fill a template with what stands in a part of the status, and ``more``."""
    return template(text).render(found, **more)


def filled(name: str, **found: Any) -> str:
    """Fill a template of the package, by its path."""
    return ENVIRONMENT.get_template(name).render(found)


AS_WRITTEN = ("|", "- ", "```")
"""Beginnings of what is not running text in a page of Markdown."""


def lines(name: str, **found: Any) -> list[str]:
    """Fill a template of the package: each paragraph that is not empty is a line, but for tables,
    lists and code."""
    paragraphs = (each.strip() for each in filled(name, **found).split("\n\n"))
    written = (
        each if each.startswith(AS_WRITTEN) else " ".join(each.split()) for each in paragraphs
    )
    return [each for each in written if each]


# Tables for a terminal, written by templates.
#
# A block of lines is a table: its title, its columns, then a line for each row. A column or cell is
# set off by `¦`, which may begin a line that goes on. Columns of names stay whole; `>` marks
# figures, `~` texts, which may be wrapped. A line `---` ends a section. A table without rows is not
# shown.

KINDS = {">": Kind.FIGURE, "~": Kind.WORDS}
LONGEST_CELL = 120


def tables(name: str, **found: Any) -> Iterator[Rows]:
    """Fill a template of the package, by its path, and read its tables."""
    for block in filled(name, **found).split("\n\n"):
        title, *rest = block.replace("\n¦", " ¦").strip().split("\n")
        if len(rest) < 2:
            continue
        columns, *rows = rest
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
