"""The tables of docs/status.md are those that the code declares."""

from benchmarks.docs_tables import PAGE, printed


def test_there_is_nothing_to_write() -> None:
    page = PAGE.read_text("utf-8")

    assert printed(page) == page, "make docs"
