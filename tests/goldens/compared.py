"""Goldens as files, and how two sets of them differ."""

from collections.abc import Iterator, Mapping
from difflib import unified_diff
from itertools import islice
from pathlib import Path

DATA = Path(__file__).parent / "data"
SHOWN = 40
"""Lines that are shown of a difference."""
LONGEST = 300


def read(folder: Path) -> dict[str, str]:
    """Return every golden in a folder, by its name."""
    return {
        str(path.relative_to(folder)): path.read_bytes().decode()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def differences(known: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """Describe each golden that differs; none where all are the same bytes."""
    return [
        "\n".join(_shown(name, known.get(name, ""), found.get(name, "")))
        for name in sorted({*known, *found})
        if known.get(name) != found.get(name)
    ]


def _shown(name: str, before: str, after: str) -> Iterator[str]:
    lines = unified_diff(
        before.splitlines(), after.splitlines(), f"golden {name}", f"now {name}", "", "", 1, ""
    )
    yield from (line[:LONGEST] for line in islice(lines, SHOWN))
