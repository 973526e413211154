"""`docs/sql.md` describes every table, view and column, and no other."""

import sqlite3

import pytest

from tests.support.markdown import ROOT, Document, code_of

SQL = Document(ROOT / "docs" / "sql.md")
ALIKE = [f"outcomes_per_{each}" for each in ("key", "tag")]


def schema(database: sqlite3.Connection, kind: str) -> dict[str, list[str]]:
    """Columns by the name of each table or view."""
    names = database.execute(
        "SELECT name FROM sqlite_master WHERE type = ? AND name NOT LIKE 'sqlite_%'", (kind,)
    )
    return {
        name: [row["name"] for row in database.execute(f"PRAGMA table_info({name})")]
        for (name,) in names.fetchall()
    }


def documented(chapter: str) -> dict[str, list[str]]:
    """Columns by the name of each table or view that a chapter of the page describes."""
    found: dict[str, list[str]] = {}
    for row in SQL.rows:
        if chapter in row.headings:
            name = code_of(row.headings[-1])
            if name is None:  # the views that are alike, each with a column or two of its own
                name = code_of(row.cells["View"])
            for each in [name] if name else ALIKE:
                found.setdefault(each, []).append(code_of(row.cells["Column"]) or "")
    return found


@pytest.mark.parametrize(("chapter", "kind"), [("Tables", "table"), ("Views", "view")])
def test_every_column_is_described(database: sqlite3.Connection, chapter: str, kind: str) -> None:
    expected = {name: sorted(columns) for name, columns in schema(database, kind).items()}

    assert {name: sorted(columns) for name, columns in documented(chapter).items()} == expected


@pytest.mark.parametrize("view", ["request_outcomes", "current_labels"])
def test_one_request_is_looked_up_along_indexes(database: sqlite3.Connection, view: str) -> None:
    """However long the log is: `GET /messplus/requests/{id}` reads no table from end to end."""
    plan = database.execute(f"EXPLAIN QUERY PLAN SELECT * FROM {view} WHERE request_id = 'r'")
    steps = [row["detail"] for row in plan]

    assert [step for step in steps if step.startswith(("SCAN", "MATERIALIZE"))] == []
    assert [step for step in steps if step.startswith("SEARCH")]
