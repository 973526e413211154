"""Plain words: what a reader of any country knows, in the docs and in what the code says."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLAIN = {
    "dear": "expensive",
    "dearer": "more expensive",
    "dearest": "most expensive",
    "oftener": "more often",
    "whilst": "while",
    "hitherto": "so far",
}
"""What not to write, and what to write instead."""
UNPLAIN = re.compile(rf"\b({'|'.join(PLAIN)})\b", re.IGNORECASE)


def pages() -> list[Path]:
    above = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    return [*above, *sorted((ROOT / "docs").rglob("*.md"))]


def modules() -> list[Path]:
    return sorted((ROOT / "litellm_messplus").rglob("*.py"))


def said(module: Path) -> Iterator[tuple[int, str]]:
    """Every docstring, message and help text of a module, with its line."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def unplain(line: int, text: str) -> list[str]:
    return [
        f"line {line + text.count(chr(10), 0, found.start())}: "
        f"{found[0]!r}, write {PLAIN[found[0].lower()]!r}"
        for found in UNPLAIN.finditer(text)
    ]


@pytest.mark.parametrize("page", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_pages_use_plain_words(page: Path) -> None:
    assert unplain(1, page.read_text(encoding="utf-8")) == []


def test_docstrings_messages_and_help_texts_use_plain_words() -> None:
    found = {
        str(module.relative_to(ROOT)): words
        for module in modules()
        if (words := [word for line, text in said(module) for word in unplain(line, text)])
    }

    assert found == {}


def test_a_word_is_found_with_its_line() -> None:
    assert unplain(3, "first\nA dear Dearer year, dearly.") == [
        "line 4: 'dear', write 'expensive'",
        "line 4: 'Dearer', write 'more expensive'",
    ]
