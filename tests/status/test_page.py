"""The SQL of `docs/status.md` gives what the status says."""

import sqlite3
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from litellm_messplus.labels.agreement import Agreement
from litellm_messplus.labels.response_bias import Audit, estimate
from litellm_messplus.status.calibration import (
    Bin,
    CandidateCalibration,
    PromptGain,
    ZooCalibration,
)
from litellm_messplus.status.report import Status
from tests.status.conftest import WINDOW
from tests.support.markdown import ROOT, Document

PAGE = Document(ROOT / "docs" / "status.md")
SQL = {block.headings[-1]: block.code for block in PAGE.blocks if block.language == "sql"}
SUMS = SQL["Satisfaction, cost, exploration and savings"]
Rows = list[dict[str, Any]]


@pytest.fixture
def asked(database: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(database)
    connection.row_factory = sqlite3.Row
    yield connection
    connection.close()


def ask(asked: sqlite3.Connection, query: str) -> Rows:
    return [dict(row) for row in asked.execute(query)]


@pytest.mark.parametrize("span", ["overall", "last"])
def test_the_sums(asked: sqlite3.Connection, status: Status, span: str) -> None:
    condition = "WHERE place <= 500\n"
    assert condition in SUMS
    replaced = f"WHERE place <= {WINDOW}\n" if span == "last" else ""

    rows = ask(asked, SUMS.replace(condition, replaced))

    assert len(rows) == len(status.levels)
    for row, level in zip(rows, status.levels, strict=True):
        found = getattr(level, span)
        assert found.savings is not None
        expected = {
            "zoo": level.zoo,
            "service_level": level.service_level,
            "requests": found.satisfaction.requests,
            "judged": found.satisfaction.judged,
            "answered": found.answers.answered,
            "failed": found.answers.failed,
            "rate": found.satisfaction.rate,
            "effective": found.satisfaction.effective,
            "promised": found.satisfaction.promised,
            "total": found.cost.total,
            "per_request": found.cost.per_request,
            "explorations": found.exploration.requests,
            "exploration_cost": found.exploration.cost,
            "compared": found.savings.requests,
            "cost_largest": found.savings.cost_largest,
            "saved": found.savings.saved,
        }
        for name, value in expected.items():
            known = pytest.approx(value, abs=1e-9) if isinstance(value, float) else value
            assert row[name] == known, name


def test_the_savings_are_those_of_the_view(asked: sqlite3.Connection, status: Status) -> None:
    rows = ask(asked, "SELECT * FROM savings ORDER BY zoo, service_level")

    for row, level in zip(rows, status.levels, strict=True):
        found = level.overall.savings
        assert found is not None
        assert found.requests == row["requests"]
        assert found.saved == pytest.approx(row["saved"], abs=1e-9)


def test_what_the_sources_say(asked: sqlite3.Connection, status: Status) -> None:
    rows = ask(asked, SQL["What the sources say"])

    assert [row["labelled"] for row in rows] == [
        level.overall.labels.labelled for level in status.levels
    ]


def test_the_audit(asked: sqlite3.Connection, status: Status) -> None:
    (row,) = ask(asked, SQL["The audit of who answers"])
    counts = list(row.values())[2:]
    found = status.levels[0].response_bias

    assert found is not None
    assert status.levels[1].response_bias is None  # nobody graded those
    assert (found.graded, found.answered) == (sum(counts), sum(counts[:4]))
    expected = estimate(Audit(Agreement(*counts[:4]), *counts[4:]))
    assert (found.ratio, found.low, found.high) == (expected.ratio, expected.low, expected.high)
    (judge,) = status.judges
    assert [judge.both_satisfied, judge.only_judge_satisfied] == counts[:2]


def test_what_comes_before_the_call(asked: sqlite3.Connection, status: Status) -> None:
    rows = ask(asked, SQL["Before the call"])

    for row, level in zip(rows, status.levels, strict=True):
        for name in list(row)[2:]:
            assert getattr(level.overall.overhead, name) == pytest.approx(row[name])


def test_queue_and_price(asked: sqlite3.Connection, status: Status) -> None:
    rows = ask(asked, SQL["Queue and price"])

    assert [(row["alpha"], row["queue"], row["price"]) for row in rows] == [
        (level.alpha, level.queue, level.price) for level in status.levels
    ]


def test_calls_without_a_cost(asked: sqlite3.Connection, status: Status) -> None:
    rows = ask(asked, SQL["Calls without a cost"])
    counted = {row["service_level"]: row["calls_without_cost"] for row in rows}

    assert counted
    for level in status.levels:
        expected = counted.get(level.service_level, 0)
        assert level.overall.cost.calls_without_cost == expected


def test_what_nothing_can_hold(asked: sqlite3.Connection, status: Status) -> None:
    rows = ask(asked, SQL["What nothing can hold"])

    assert [row["service_level"] for row in rows] == ["gold"]
    assert [each.service_level for each in status.levels if not each.is_within_reach] == ["gold"]


def test_predictions_against_verdicts(asked: sqlite3.Connection, status: Status) -> None:
    rows = ask(asked, SQL["Predictions against verdicts"])
    (found,) = status.calibration
    expected = [
        (found.zoo, candidate.candidate, each.low, each.calls, each.predicted, each.satisfied)
        for candidate in found.candidates
        for each in candidate.bins
    ]

    assert len(expected) > 2
    assert [tuple(row.values()) for row in rows] == [
        (*row[:2], *map(pytest.approx, row[2:])) for row in expected
    ]


def test_every_figure_of_the_calibration_is_described() -> None:
    described = " ".join(row.cells["Figure"] for row in PAGE.under("Calibration"))
    kinds: tuple[Any, ...] = (ZooCalibration, CandidateCalibration, Bin, PromptGain)
    names = {field.name for kind in kinds for field in fields(kind)}

    assert [name for name in sorted(names) if f"`{name}`" not in described] == []
