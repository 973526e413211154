"""The SQL of `docs/evidence/status.md` gives what the status shows."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from litellm_messplus.figures.figure import Plain, value_at
from tests.status.conftest import WINDOW
from tests.support.markdown import ROOT, Document

PAGE = Document(ROOT / "docs" / "status.md")
QUERIES = Document(ROOT / "docs" / "evidence" / "status.md")
SQL = {block.headings[-1]: block.code for block in QUERIES.blocks if block.language == "sql"}
SUMS = SQL["Satisfaction, cost, exploration and savings"]
Rows = list[dict[str, Any]]


@pytest.fixture
def connection(seeded_log: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(seeded_log)
    connection.row_factory = sqlite3.Row
    yield connection
    connection.close()


def ask(connection: sqlite3.Connection, query: str) -> Rows:
    return [dict(row) for row in connection.execute(query)]


OVERHEAD = ("requests", "late", "predicting_seconds", "deciding_seconds", "call_seconds")
FIGURES = {
    SUMS: {
        **{each: each for each in ("zoo", "service_level")},
        **{each: f"SPAN.satisfaction.{each}" for each in ("requests", "judged")},
        **{each: f"SPAN.answers.{each}" for each in ("answered", "failed")},
        **{each: f"SPAN.satisfaction.{each}" for each in ("rate", "effective", "promised")},
        **{each: f"SPAN.cost.{each}" for each in ("total", "per_request")},
        "explorations": "SPAN.exploration.requests",
        "exploration_cost": "SPAN.exploration.cost",
        "compared": "SPAN.savings.requests",
        **{each: f"SPAN.savings.{each}" for each in ("cost_largest", "saved")},
    },
    "SELECT * FROM savings ORDER BY zoo, level": {
        **{each: f"overall.savings.{each}" for each in ("requests", "saved")}
    },
    SQL["What the sources say"]: {"labelled": "overall.labels.labelled"},
    SQL["Before the call"]: {each: f"overall.overhead.{each}" for each in OVERHEAD},
    SQL["Queue and price"]: {each: each for each in ("alpha", "queue", "price")},
}
"""Queries with a row for each promise, and where the status shows what their columns do."""


@pytest.mark.parametrize(
    ("query", "span"), [(SUMS, "last"), *((query, "overall") for query in FIGURES)]
)
def test_a_query_gives_what_the_status_says(
    connection: sqlite3.Connection, status: Plain, query: str, span: str
) -> None:
    condition = "WHERE place <= 500\n"
    assert (condition in query) is (query == SUMS)
    replaced = f"WHERE place <= {WINDOW}\n" if span == "last" else ""

    rows = ask(connection, query.replace(condition, replaced))

    assert len(rows) == len(status["levels"])
    for row, level in zip(rows, status["levels"], strict=True):
        for name, path in FIGURES[query].items():
            value = value_at(level, path.replace("SPAN", span))
            known = pytest.approx(value, abs=1e-9) if isinstance(value, float) else value
            assert row[name] == known, name


def test_calls_without_a_cost(connection: sqlite3.Connection, status: Plain) -> None:
    rows = ask(connection, SQL["Calls without a cost"])
    counted = {row["service_level"]: row["calls_without_cost"] for row in rows}

    assert counted
    for level in status["levels"]:
        expected = counted.get(level["service_level"], 0)
        assert level["overall"]["cost"]["calls_without_cost"] == expected


def test_what_nothing_can_hold(connection: sqlite3.Connection, status: Plain) -> None:
    rows = ask(connection, SQL["What nothing can hold"])

    assert [row["service_level"] for row in rows] == ["gold"]
    unheld = [each for each in status["levels"] if not each["is_within_reach"]]
    assert [each["service_level"] for each in unheld] == ["gold"]


def test_predictions_against_verdicts(connection: sqlite3.Connection, status: Plain) -> None:
    rows = ask(connection, SQL["Predictions against verdicts"])
    (found,) = status["calibration"]
    expected = [
        (
            *(found["zoo"], candidate["candidate"]),
            *(each[name] for name in ("low", "calls", "predicted", "satisfied")),
        )
        for candidate in found["candidates"]
        for each in candidate["bins"]
    ]

    assert len(expected) > 2
    assert [tuple(row.values()) for row in rows] == [
        (*row[:2], *map(pytest.approx, row[2:])) for row in expected
    ]
