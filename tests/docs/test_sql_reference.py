"""`docs/sql.md` describes every table, view and column, and no other."""

import sqlite3
from typing import Any

import pytest
from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Date,
    Float,
    Integer,
    LargeBinary,
    String,
    Text,
)
from sqlalchemy.types import TypeEngine

from litellm_messplus.routing.decision import Reason
from litellm_messplus.store.columns import UtcDateTime
from litellm_messplus.store.tables import metadata
from tests.support.markdown import ROOT, Document, code_of

SQL = Document(ROOT / "docs" / "sql.md")


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
            name = code_of(row.headings[-1]) or row.headings[-1]
            found.setdefault(name, []).append(code_of(row.cells["Column"]) or "")
    return found


@pytest.mark.parametrize(("chapter", "kind"), [("Tables", "table"), ("Views", "view")])
def test_the_tables_and_views_are_described_with_every_column(
    database: sqlite3.Connection, chapter: str, kind: str
) -> None:
    expected = {name: sorted(columns) for name, columns in schema(database, kind).items()}

    assert {name: sorted(columns) for name, columns in documented(chapter).items()} == expected


@pytest.mark.parametrize("name", metadata.tables)
def test_columns_are_described_in_the_words_of_their_comments(name: str) -> None:
    described = {row.cells["Column"]: row.cells for row in SQL.under(f"`{name}`")}

    for column in metadata.tables[name].columns:
        cells = described[f"`{column.name}`"]
        assert cells["Meaning"] == column.comment
        assert cells["Type"] == kind_of(column)
    assert str(metadata.tables[name].comment) in SQL.text


KINDS: dict[type[TypeEngine[Any]], str] = {
    UtcDateTime: "time",
    Date: "date",
    JSON: "JSON",
    LargeBinary: "bytes",
    Boolean: "boolean",
    Float: "number",
    BigInteger: "integer",
    Integer: "integer",
    Text: "text",
    String: "text",
}


def kind_of(column: Column[Any]) -> str:
    return KINDS[type(column.type)] + (" or NULL" if column.nullable else "")


@pytest.mark.parametrize("view", ["request_outcomes", "verdicts", "current_labels"])
def test_one_request_is_looked_up_along_indexes(database: sqlite3.Connection, view: str) -> None:
    """However long the log is: `GET /messplus/requests/{id}` reads no table from end to end."""
    plan = database.execute(f"EXPLAIN QUERY PLAN SELECT * FROM {view} WHERE request_id = 'r'")
    steps = [row["detail"] for row in plan]

    assert [step for step in steps if step.startswith(("SCAN", "MATERIALIZE"))] == []
    assert [step for step in steps if step.startswith("SEARCH")]


def test_every_reason_is_described() -> None:
    assert [code_of(row.cells["Reason"]) for row in SQL.under("Reasons")] == list(Reason)
