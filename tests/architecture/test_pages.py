"""The index of the docs, and the pages beside the README that other tests do not read."""

import re
from pathlib import Path

import pytest

from tests.support.markdown import ROOT, Document

DOCS = ROOT / "docs"
INDEX = DOCS / "README.md"
OTHERS = [ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
LINE = re.compile(r"^- \[[^\]]+\]\(([\w-]+\.md)\): \S", re.MULTILINE)


def test_the_index_has_one_line_for_every_page() -> None:
    pages = {path.name for path in DOCS.glob("*.md")} - {INDEX.name}
    listed = LINE.findall(INDEX.read_text(encoding="utf-8"))

    assert sorted(listed) == sorted(pages)


def test_the_figures_on_the_first_page_are_those_of_the_readme() -> None:
    figures = re.findall(r"\d[\d.]* (?:times|ms)|\d[\d.]* to \d[\d.]* times", flat(INDEX))

    assert len(figures) >= 4
    assert [figure for figure in figures if figure not in flat(ROOT / "README.md")] == []


def flat(path: Path) -> str:
    return " ".join(path.read_text(encoding="utf-8").split())


def test_the_readme_leads_to_the_index_and_to_both_other_pages() -> None:
    links = Document(ROOT / "README.md").links

    assert {"docs/README.md", "CONTRIBUTING.md", "SECURITY.md"} <= set(links)


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.name)
def test_commands_of_make_are_those_of_the_makefile(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = re.findall(
        r"\bmake ([a-z-]+)", "\n".join(block.code for block in Document(path).blocks)
    )

    assert set(named) <= targets
