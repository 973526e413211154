"""Rows for a terminal: a table if it fits, else a list of rows, so that no id, date or figure is
cut or broken."""

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Any, NamedTuple

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text


class Kind(Enum):
    """The kinds of columns: names, ids, dates and figures stay whole; words may be wrapped."""

    WHOLE = "whole"
    FIGURE = "figure"
    WORDS = "words"


class Column(NamedTuple):
    """A column: its title, and the kind of its cells."""

    title: str
    kind: Kind


def whole(*titles: str) -> list[Column]:
    """Make columns of names, ids and dates."""
    return [Column(title, Kind.WHOLE) for title in titles]


def numbers(*titles: str) -> list[Column]:
    """Make columns of figures, aligned right."""
    return [Column(title, Kind.FIGURE) for title in titles]


def words(*titles: str) -> list[Column]:
    """Make columns of running text."""
    return [Column(title, Kind.WORDS) for title in titles]


NARROWEST = 16
"""The least width of a wrapped column of words, in characters."""
BORDER = 3
"""The width of a column's border, in characters."""
INDENT = "  "


class Rows:
    """Rows with a title, to be printed by a rich console."""

    def __init__(
        self, title: str, columns: Iterable[Column], rows: Iterable[Iterable[str | Text]] = ()
    ) -> None:
        self._title = title
        self._columns = tuple(columns)
        self._rows: list[tuple[Text, ...]] = []
        self._sections: set[int] = set()
        for row in rows:
            self.add(*row)

    def add(self, *cells: str | Text) -> None:
        """Add a row, with as many cells as there are columns."""
        self._rows.append(tuple(Text(each) if isinstance(each, str) else each for each in cells))

    def end_section(self) -> None:
        """Draw a line below the rows so far."""
        self._sections.add(len(self._rows) - 1)

    def plain(self) -> dict[str, Any]:
        """Return title, columns and cells as they go into JSON."""
        return {
            "title": self._title,
            "columns": [{"name": title, "kind": kind.value} for title, kind in self._columns],
            "rows": [[cell.plain for cell in row] for row in self._rows],
        }

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self._width() <= options.max_width:
            yield self._table()
        else:
            yield from self._list(options.max_width)

    def _width(self) -> int:
        """Compute the least width at which only words are wrapped."""
        return 1 + sum(BORDER + self._narrowest(place) for place in range(len(self._columns)))

    def _narrowest(self, place: int) -> int:
        title, kind = self._columns[place]
        lines = [title, *(line for row in self._rows for line in row[place].plain.split("\n"))]
        longest = max(map(cell_len, lines))
        return min(longest, NARROWEST) if kind is Kind.WORDS else longest

    def _table(self) -> Table:
        table = Table(title=Text(self._title), title_justify="left")
        for title, kind in self._columns:
            table.add_column(
                Text(title),
                justify="right" if kind is Kind.FIGURE else "left",
                no_wrap=kind is not Kind.WORDS,
                overflow="fold",
            )
        for place, row in enumerate(self._rows):
            table.add_row(*row, end_section=place in self._sections)
        return table

    def _list(self, width: int) -> Iterator[RenderableType]:
        yield Text(self._title, style="italic")
        for row in self._rows:
            if row[0].plain:
                yield Text(row[0].plain, style="bold", no_wrap=True, overflow="ignore")
            yield from _flowed(self._titled(row, is_words=False), width)
            for item in self._titled(row, is_words=True):
                yield Padding(item, (0, 0, 0, len(INDENT)), expand=False)

    def _titled(self, row: Sequence[Text], *, is_words: bool) -> Iterator[Text]:
        """Yield the non-empty cells of one kind after the first column, each with its title."""
        for (title, kind), cell in zip(self._columns[1:], row[1:], strict=True):
            if (kind is Kind.WORDS) is is_words and cell.plain:
                yield Text.assemble((f"{title} " if title else "", "dim"), cell)


def _flowed(items: Iterable[Text], width: int) -> Iterator[Text]:
    """Yield lines of as many items as fit; a wider item gets a line of its own, unbroken."""
    found: list[Text] = []
    for item in items:
        if found and _line([*found, item]).cell_len > width:
            yield _line(found)
            found = []
        found.append(item)
    if found:
        yield _line(found)


def _line(items: Iterable[Text]) -> Text:
    return Text.assemble(INDENT, Text(", ").join(items), no_wrap=True, overflow="ignore")


def progress(unit: str) -> Progress:
    """Build a progress bar that counts in ``unit``, on standard error: the result goes to standard
    output."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )


def show(*parts: RenderableType) -> None:
    """Print to the terminal without cutting lines that cannot be broken."""
    Console(highlight=False).print(*parts, sep="\n", crop=False)
