"""`docs/tables.md` and `docs/sql.md` describe every table, view and column, and no other."""

import sqlite3

import pytest

from tests.support.markdown import ROOT, Document, code_of

ROWS = [row for name in ("tables", "sql") for row in Document(ROOT / "docs" / f"{name}.md").rows]


def schema(database: sqlite3.Connection, kind: str) -> dict[str, list[str]]:
    """Columns by the name of each table or view."""
    names = database.execute(
        "SELECT name FROM sqlite_master WHERE type = ? AND name NOT LIKE 'sqlite_%'", (kind,)
    )
    return {
        name: [row["name"] for row in database.execute(f"PRAGMA table_info({name})")]
        for (name,) in names.fetchall()
    }


def documented(kind: str) -> dict[str, list[str]]:
    """Columns by the name of each table or view that the pages describe."""
    found: dict[str, list[str]] = {}
    for row in ROWS:
        name = code_of(row.headings[-1])
        if name is not None and ("Tables" in row.headings) is (kind == "table"):
            found.setdefault(name, []).append(code_of(row.cells["Column"]) or "")
    return found


@pytest.mark.parametrize("kind", ["table", "view"])
def test_every_column_is_described(database: sqlite3.Connection, kind: str) -> None:
    expected = {name: sorted(columns) for name, columns in schema(database, kind).items()}

    assert {name: sorted(columns) for name, columns in documented(kind).items()} == expected


@pytest.mark.parametrize("view", ["requests_v", "current_labels"])
def test_a_request_is_looked_up_along_indexes(database: sqlite3.Connection, view: str) -> None:
    """However long the log is: nothing reads a table from end to end."""
    plan = database.execute(f"EXPLAIN QUERY PLAN SELECT * FROM {view} WHERE request_id = 'r'")
    steps = [row["detail"] for row in plan]

    assert [step for step in steps if step.startswith(("SCAN", "MATERIALIZE"))] == []
    assert [step for step in steps if step.startswith("SEARCH")]
