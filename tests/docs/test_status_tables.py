"""The tables that `make docs` prints are those that the code declares."""

from pathlib import Path

import pytest

from benchmarks import settings_tables
from benchmarks.docs_tables import PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_there_is_nothing_to_write(page: Path) -> None:
    text = page.read_text("utf-8")

    assert PAGES[page](text) == text, "make docs"


@pytest.mark.parametrize("line", ["", "| `seed` | | | |\n| `seed` | | | |\n"])
def test_a_setting_without_a_row_or_with_two_is_named(line: str) -> None:
    page = "| Setting | Allowed | Default | Meaning |\n| --- | --- | --- | --- |\n" + line

    with pytest.raises(ValueError, match=r"a row for each setting, once: .*\bseed\b"):
        settings_tables.printed(page)
