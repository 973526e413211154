"""Every question in `docs/sql.md` runs, and its answer is what the seeded history says."""

import sqlite3
from collections.abc import Callable, Iterable
from math import ceil, sqrt
from statistics import median_low
from typing import Any

import pytest

from litellm_messplus.core.head import Label
from litellm_messplus.figures.interval import Interval, standing
from litellm_messplus.labels.agreement import Agreement
from litellm_messplus.records import RequestRecord
from litellm_messplus.runtime.vocabulary import CallStatus
from tests.support import history as made
from tests.support.history import ALPHA, COST, LARGEST, SMALL, History
from tests.support.markdown import ROOT, Document

SQL = Document(ROOT / "docs" / "sql.md")
QUESTIONS = {block.headings[-1]: block.code for block in SQL.blocks if block.language == "sql"}
VIEWS = {
    name: f"SELECT * FROM {name}" for name in ("savings", "open_requests", "daily_service_levels")
}
LEVELS = list(ALPHA)

Rows = list[dict[str, Any]]
Table = tuple[str, list[tuple[Any, ...]]]
"""Names of columns, and what is expected in them."""


def answer(database: sqlite3.Connection, question: str) -> Rows:
    query = QUESTIONS.get(question) or VIEWS[question]
    return [dict(row) for row in database.execute(query)]


def test_there_are_ten_questions_or_more_each_with_its_sql() -> None:
    asked = [heading for heading in SQL.headings if heading.endswith("?")]

    assert len(asked) >= 10
    assert asked == list(QUESTIONS)
    assert len(QUESTIONS) == sum(block.language == "sql" for block in SQL.blocks)


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_is_answered(database: sqlite3.Connection, question: str) -> None:
    rows = answer(database, question)

    assert rows
    assert not [name for name in rows[0] if all(row[name] is None for row in rows)]


def of_level(recorded: History, level: str) -> list[RequestRecord]:
    return [each for each in recorded.requests if each.service_level == level]


def mean(labels: Iterable[Label]) -> float:
    given = list(labels)
    return sum(each.weight * each.value for each in given) / sum(each.weight for each in given)


def promises(recorded: History) -> Table:
    rows = []
    for level in LEVELS:
        verdicts = recorded.verdicts(level)
        weights = [each.weight for each in verdicts]
        equal = sum(weights) ** 2 / sum(weight**2 for weight in weights)
        low, high = wilson(mean(verdicts), equal)
        requests, verdict = of_level(recorded, level), standing(Interval(low, high), ALPHA[level])
        counts = (len(requests), len(verdicts))
        rows.append((level, ALPHA[level], *counts, mean(verdicts), equal, low, high, verdict))
    return "service_level alpha requests judged rate equal low high verdict", rows


def wilson(rate: float, count: float, z: float = 1.96) -> tuple[float, float]:
    """The roots of (rate - p)^2 = z^2 p (1 - p) / count, which is how Wilson defines it."""
    a, b, c = 1 + z * z / count, -(2 * rate + z * z / count), rate * rate
    spread = sqrt(b * b - 4 * a * c)
    return (-b - spread) / (2 * a), (-b + spread) / (2 * a)


def savings(recorded: History) -> Table:
    rows = []
    for level in LEVELS:
        requests = of_level(recorded, level)
        ids = {each.request_id for each in requests}
        judged = sum(each.cost or 0.0 for each in recorded.gradings if each.request_id in ids)
        answered = [each for each in requests if recorded.served(each).status is CallStatus.SUCCESS]
        cost = sum(map(recorded.cost, answered)) + judged
        # Measured where the largest was called, as on every exploration; else estimated.
        largest = sum(COST[LARGEST] * (1.0 if each.chosen == LARGEST else 1.1) for each in answered)
        rows.append((level, len(answered), cost, largest, largest - cost, 1 - cost / largest))
    return "service_level requests cost cost_largest saved saved_share", rows


def months(recorded: History) -> Table:
    _, parts = savings(recorded)
    sums = [
        sum(column) for column in zip(*parts, strict=True) if isinstance(column[0], int | float)
    ]
    judged = sum(each.cost or 0.0 for each in recorded.gradings)
    columns = "month requests cost cost_largest saved judge_cost"
    return columns, [("2026-03", *sums[:4], judged)]


def days(recorded: History) -> Table:
    found: dict[tuple[str, str], list[RequestRecord]] = {}
    for each in recorded.requests:
        found.setdefault((str(each.created_at.date()), each.service_level), []).append(each)
    rows = []
    for (day, level), requests in found.items():
        verdicts = [recorded.verdict(recorded.served(each).call_id) for each in requests]
        rows.append((day, level, len(requests), mean(each for each in verdicts if each)))
    return "day service_level requests satisfaction", rows


def sources(recorded: History) -> Table:
    rows = [
        (level, source, len(said), sum(said.values()) / len(said))
        for level in LEVELS
        for source in ("check:complete", "feedback", "judge")
        if (said := recorded.said(source, level))
    ]
    return "service_level source labelled satisfaction", rows


def agreement(recorded: History) -> Table:
    judge, user = recorded.said("judge"), recorded.said("feedback")
    both = [(judge[each] >= 0.5, user[each] >= 0.5) for each in judge.keys() & user.keys()]
    counts = list(map(both.count, [(True, True), (True, False), (False, True), (False, False)]))
    found = Agreement(*counts)
    columns = "both_satisfied only_judge_satisfied only_user_satisfied neither agreement kappa"
    return columns, [(*counts, found.share, found.kappa)]


def causes(recorded: History) -> Table:
    last = max(each.created_at for each in recorded.requests).date()
    keys: dict[str, list[RequestRecord]] = {}
    for each in recorded.requests:
        if each.created_at.date() == last:
            keys.setdefault(str(each.asker.key_hash), []).append(each)
    rows = []
    for key, own in keys.items():
        failed = [recorded.served(each).status for each in own].count(CallStatus.FAILURE)
        checks = sum(each.request_id in recorded.said("check:complete") for each in own)
        rows.append((key, len(own), failed, checks))
    return "key_hash requests failed checks", rows


def dearest(recorded: History) -> Table:
    last = max(each.created_at for each in recorded.requests).date()
    costs = [recorded.cost(each) for each in recorded.requests if each.created_at.date() == last]
    return "cost", [(cost,) for cost in sorted(costs, reverse=True)[:20]]


def reading(recorded: History) -> Table:
    count, late = len(recorded.requests), len(made.LATE)
    predicting, calling = made.ENCODE_SECONDS * (count - late), made.CALL_SECONDS * count
    share = predicting / (predicting + calling)
    cost = sum(recorded.served(each).cost or 0.0 for each in recorded.requests)
    columns = "requests late predicting_ms predicting_seconds predicting_share"
    means = (1000 * made.ENCODE_SECONDS, predicting, share)
    call = (1000 * made.CALL_SECONDS, cost)
    return f"{columns} call_ms call_cost", [(count, late, *means, *call)]


def decisions(_recorded: History) -> Table:
    """Those of 0.1, 0.2, ... 4.8 ms."""
    return "median_ms p95_ms p99_ms longest_ms", [(2.4, 4.6, 4.8, 4.8)]


ANSWERS: dict[str, Callable[[History], Table]] = {
    "Where does each promise stand?": promises,
    "savings": savings,
    "What was saved month by month, and what did judging cost?": months,
    "daily_service_levels": days,
    "What does each source of labels say?": sources,
    "Does the judge agree with the users?": agreement,
    "Which keys cause failures, and labels of checks?": causes,
    "Which requests of yesterday cost most?": dearest,
    "What does reading the prompts cost?": reading,
    "How long did decisions take?": decisions,
}


@pytest.mark.parametrize("question", ANSWERS)
def test_the_answer_is_what_the_history_says(
    database: sqlite3.Connection, recorded: History, question: str
) -> None:
    names, expected = ANSWERS[question](recorded)
    found = [tuple(row[name] for name in names.split()) for row in answer(database, question)]

    pairs = zip(sorted(found, key=texts), sorted(expected, key=texts), strict=True)
    for row, wanted in pairs:
        assert [*row] == [*map(near, wanted)]


def texts(row: tuple[Any, ...]) -> list[str]:
    return [each for each in row if isinstance(each, str)]


def near(value: Any) -> Any:
    return pytest.approx(value) if isinstance(value, float) else value


def test_the_models_share_the_served_calls(database: sqlite3.Connection, recorded: History) -> None:
    rows = answer(database, "Which models were called, and what did they cost?")

    served = {row["candidate"]: row["served"] for row in rows}
    assert set(served) == {*COST, None}
    assert served[None] == 1
    assert sum(served.values()) == len(recorded.requests)
    assert sum(row["explored"] for row in rows) == 2 * 8
    assert sum(row["served_share"] for row in rows) == pytest.approx(1.0)


def test_open_requests_and_failures(database: sqlite3.Connection, recorded: History) -> None:
    without = {row["request_id"] for row in answer(database, "open_requests")}
    failed = answer(database, "Which models failed, and why?")

    assert without >= {
        each.request_id
        for each in recorded.requests
        if recorded.served(each).status is CallStatus.SUCCESS
        and recorded.verdict(recorded.served(each).call_id) is None
    }
    assert len(without) < len(recorded.requests) / 2
    assert sorted(row["role"] for row in failed) == ["exploration", "served"]
    assert all(row["failures"] == 1 < row["calls"] for row in failed)
    assert all(row["an_error"] == "Timeout: no answer" for row in failed)


def test_who_sends_feedback_that_counts(database: sqlite3.Connection, recorded: History) -> None:
    rows = answer(database, "Who sends feedback?")
    counting = [row["counting"] for row in answer(database, "What does each source of labels say?")]

    assert {(row["team_id"], row["key_hash"]) for row in rows} == {
        ("team", "key-a"),
        (None, "key-b"),
    }
    assert sum(row["answered"] for row in rows) == len(recorded.said("feedback"))
    assert all(0 < row["feedback_share"] < 1 for row in rows)
    assert sum(counting) == sum(len(recorded.verdicts(level)) for level in LEVELS)


def test_every_verdict_has_its_prediction(database: sqlite3.Connection, recorded: History) -> None:
    rows = {row["candidate"]: row for row in answer(database, "How good were the predictions?")}

    judged = {label.call_id for label in recorded.labels}
    known = [call for call in recorded.calls if call.call_id in judged and call.candidate]
    assert sum(row["verdicts"] for row in rows.values()) == len(known)
    assert {name: row["predicted"] for name, row in rows.items()} == pytest.approx(made.PREDICTED)
    assert rows[SMALL]["observed"] < rows[LARGEST]["observed"] <= 1


def test_the_median_error_of_the_estimates(database: sqlite3.Connection) -> None:
    """On costs that differ from call to call, against the median computed in Python."""
    changed = sqlite3.connect(":memory:")
    changed.row_factory = sqlite3.Row
    database.backup(changed)
    changed.execute("UPDATE calls SET cost = cost * (0.5 + position % 7)")
    errors: dict[str, list[float]] = {name: [] for name in COST}
    for name, cost in changed.execute(
        "SELECT candidate, cost FROM calls WHERE status = 'success' AND candidate IS NOT NULL"
    ):
        errors[name].append(abs(1.1 * COST[name] - cost) / cost)

    rows = answer(changed, "How good were the estimates of cost?")

    changed.close()
    assert {row["candidate"] for row in rows} == set(errors)
    for row in rows:
        expected = sorted(errors[row["candidate"]])
        assert row["calls"] == len(expected)
        assert row["median_error"] == pytest.approx(median_low(expected))
        assert row["p90_error"] == pytest.approx(expected[ceil(0.9 * len(expected)) - 1])


def test_how_the_debt_developed(database: sqlite3.Connection, recorded: History) -> None:
    rows = answer(database, "How did the debt develop?")

    assert sum(row["requests"] for row in rows) == len(recorded.requests)
    assert all(row["mean_queue"] < row["last_queue"] <= row["highest_queue"] for row in rows)
    assert max(row["last_queue"] for row in rows) == pytest.approx(4.7)
