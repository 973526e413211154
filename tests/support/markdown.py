"""Reading the documentation: sections, tables, code blocks, links."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

HEADING = re.compile(r"^(#{1,6}) +(.+?) *$")
FENCE = re.compile(r"^ *```(\S*)")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)[^)]*\)")
CELL_BOUNDARY = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True)
class Block:
    """A fenced piece of code, and the headings above it, the nearest last."""

    language: str
    code: str
    headings: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """A row of a table: the cells by the table's own column names."""

    cells: dict[str, str]
    headings: tuple[str, ...]


class Document:
    """One Markdown file, read once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = path.read_text(encoding="utf-8")
        self.headings: list[str] = []
        self.blocks: list[Block] = []
        self.rows: list[Row] = []
        self.links: list[str] = []
        self._read()

    def under(self, heading: str) -> list[Row]:
        """The rows of the tables directly under a heading."""
        return [row for row in self.rows if row.headings[-1] == heading]

    def anchors(self) -> set[str]:
        """What a link may name after `#`, as GitHub makes it of the headings."""
        return {_anchor(heading) for heading in self.headings}

    def _read(self) -> None:
        trail: list[tuple[int, str]] = []
        columns: list[str] = []
        for line in self._prose(trail):
            self.links += LINK.findall(line)
            heading = HEADING.match(line)
            if heading:
                trail[:] = [above for above in trail if above[0] < len(heading[1])]
                trail.append((len(heading[1]), heading[2]))
                self.headings.append(heading[2])
            if not line.startswith("|"):
                columns = []
                continue
            cells = [cell.strip() for cell in CELL_BOUNDARY.split(line)[1:-1]]
            if not columns:
                columns = cells
            elif not set("".join(cells)) <= set("-: "):
                assert len(cells) == len(columns), f"{self.path.name}: {line}"
                pairs = dict(zip(columns, cells, strict=True))
                self.rows.append(Row(pairs, tuple(name for _, name in trail)))

    def _prose(self, trail: list[tuple[int, str]]) -> Iterator[str]:
        """The lines outside code; code goes to ``blocks``."""
        language: str | None = None
        code: list[str] = []
        for line in self.text.splitlines():
            fence = FENCE.match(line)
            if fence and language is None:
                language, code = fence[1], []
            elif fence and language is not None:
                headings = tuple(name for _, name in trail)
                self.blocks.append(Block(language, "\n".join(code), headings))
                language = None
            elif language is not None:
                code.append(line)
            else:
                yield line
        assert language is None, f"{self.path.name}: a code block does not end"


def code_of(cell: str) -> str | None:
    """The content of a cell that is one piece of code; None for words."""
    found = re.fullmatch(r"`([^`]+)`", cell)
    return found[1] if found else None


def _anchor(heading: str) -> str:
    kept = re.sub(r"[^\w\- ]", "", heading.lower())
    return kept.replace(" ", "-")
