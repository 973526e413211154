"""Every question in `docs/sql.md` runs, and its answer is what the seeded history says."""

import sqlite3
from math import ceil, sqrt
from statistics import median_low
from typing import Any

import pytest

from litellm_messplus.figures.interval import Interval, standing
from litellm_messplus.labels.agreement import Agreement
from litellm_messplus.vocabulary import CallRole, CallStatus
from tests.support.history import (
    ALPHA,
    CALL_SECONDS,
    COST,
    ENCODE_JOULES,
    ENCODE_SECONDS,
    GRADING_COST,
    JUDGE,
    LARGEST,
    LATE,
    PREDICTED,
    SMALL,
    ZOO,
    History,
)
from tests.support.markdown import ROOT, Document

SQL = Document(ROOT / "docs" / "sql.md")
QUESTIONS = {block.headings[-1]: block.code for block in SQL.blocks if block.language == "sql"}
LEVELS = list(ALPHA)

Rows = list[dict[str, Any]]


def answer(database: sqlite3.Connection, question: str) -> Rows:
    return rows_of(database, QUESTIONS[question])


def rows_of(database: sqlite3.Connection, query: str) -> Rows:
    return [dict(row) for row in database.execute(query)]


def view(database: sqlite3.Connection, name: str) -> Rows:
    return rows_of(database, f"SELECT * FROM {name} ORDER BY zoo, service_level")


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


def test_the_promise_and_its_interval(database: sqlite3.Connection, recorded: History) -> None:
    rows = answer(database, "Where does each promise stand?")

    assert [row["service_level"] for row in rows] == LEVELS
    for row in rows:
        level = row["service_level"]
        verdicts = recorded.verdicts(level)
        weight = sum(label.weight for label in verdicts)
        rate = sum(label.weight * label.value for label in verdicts) / weight
        equal = weight**2 / sum(label.weight**2 for label in verdicts)
        low, high = wilson(rate, equal)
        assert (row["zoo"], row["alpha"]) == (ZOO, ALPHA[level])
        assert row["requests"] == sum(r.service_level == level for r in recorded.requests)
        assert row["judged"] == len(verdicts) < row["requests"]
        assert row["answered"] + row["failed"] <= row["requests"]
        assert (row["rate"], row["equal"]) == (pytest.approx(rate), pytest.approx(equal))
        assert (row["low"], row["high"]) == (pytest.approx(low), pytest.approx(high))
        assert 0 <= row["low"] < row["rate"] < row["high"] <= 1
        assert row["verdict"] == standing(Interval(low, high), ALPHA[level])
    assert any(row["equal"] < row["judged"] for row in rows)  # weak labels are among them


def wilson(rate: float, count: float, z: float = 1.96) -> tuple[float, float]:
    """The roots of (rate - p)^2 = z^2 p (1 - p) / count, which is how Wilson defines it."""
    a, b, c = 1 + z * z / count, -(2 * rate + z * z / count), rate * rate
    spread = sqrt(b * b - 4 * a * c)
    return (-b - spread) / (2 * a), (-b + spread) / (2 * a)


def test_the_savings_against_the_largest(database: sqlite3.Connection, recorded: History) -> None:
    rows = view(database, "savings")

    assert [row["service_level"] for row in rows] == LEVELS
    for row in rows:
        answered = [
            request
            for request in recorded.requests
            if request.service_level == row["service_level"]
            and recorded.served(request).status is CallStatus.SUCCESS
        ]
        cost = sum(recorded.cost(request) for request in answered)
        of_level = {
            each.request_id
            for each in recorded.requests
            if each.service_level == row["service_level"]
        }
        cost += sum(each.cost or 0.0 for each in recorded.gradings if each.request_id in of_level)
        # Measured where the largest was called, as on every exploration; else estimated.
        cost_largest = sum(
            COST[LARGEST] if request.chosen == LARGEST else 1.1 * COST[LARGEST]
            for request in answered
        )
        assert row["requests"] == len(answered)
        assert row["cost"] == pytest.approx(cost)
        assert row["cost_largest"] == pytest.approx(cost_largest)
        assert row["saved"] == pytest.approx(cost_largest - cost)
        assert row["saved_share"] == pytest.approx(1 - cost / cost_largest)


def test_the_months_add_up_to_the_savings(database: sqlite3.Connection, recorded: History) -> None:
    months = answer(database, "What was saved month by month, and what did judging cost?")
    savings = view(database, "savings")

    assert [(row["month"], row["zoo"]) for row in months] == [("2026-03", ZOO)]
    for name in ("requests", "cost", "cost_largest", "saved"):
        assert months[0][name] == pytest.approx(sum(row[name] for row in savings))
    assert months[0]["saved_share"] == pytest.approx(
        1 - months[0]["cost"] / months[0]["cost_largest"]
    )
    assert months[0]["judge_cost"] == pytest.approx(
        sum(grading.cost or 0 for grading in recorded.gradings)
    )


def test_the_days_add_up_to_the_whole(database: sqlite3.Connection, recorded: History) -> None:
    rows = rows_of(database, "SELECT * FROM daily_service_levels ORDER BY day")

    assert len({row["day"] for row in rows}) == 3
    assert [row["day"] for row in rows] == sorted(row["day"] for row in rows)
    assert sum(row["requests"] for row in rows) == len(recorded.requests)
    assert sum(row["cost"] for row in rows) == pytest.approx(
        sum(c.cost or 0 for c in recorded.calls)
    )
    assert sum(row["judged"] for row in rows) == sum(
        len(recorded.verdicts(level)) for level in LEVELS
    )
    for row in rows:
        verdicts = [
            label
            for request in recorded.requests
            if request.service_level == row["service_level"]
            and str(request.created_at.date()) == row["day"]
            and (label := recorded.verdict(recorded.served(request).call_id)) is not None
        ]
        weight = sum(label.weight for label in verdicts)
        assert row["satisfaction"] == pytest.approx(
            sum(label.weight * label.value for label in verdicts) / weight
        )


def test_the_models_share_the_served_calls(database: sqlite3.Connection, recorded: History) -> None:
    rows = answer(database, "Which models were called, and what did they cost?")

    served = {row["candidate"]: row["served"] for row in rows}
    assert set(served) == {*COST, None}
    assert served[None] == 1
    assert sum(served.values()) == len(recorded.requests)
    assert sum(row["explored"] for row in rows) == 2 * 8
    assert sum(row["served_share"] for row in rows) == pytest.approx(1.0)


def test_explorations_and_their_cost(database: sqlite3.Connection, recorded: History) -> None:
    rows = view(database, "exploration_share")

    explored = [call for call in recorded.calls if call.role is CallRole.EXPLORATION]
    assert sum(row["explorations"] for row in rows) == 8
    assert sum(row["exploration_cost"] for row in rows) == pytest.approx(
        sum(call.cost or 0.0 for call in explored)
    )


def test_open_requests_are_those_without_a_verdict(
    database: sqlite3.Connection, recorded: History
) -> None:
    rows = view(database, "open_requests")

    without = {
        request.request_id
        for request in recorded.requests
        if recorded.verdict(recorded.served(request).call_id) is None
        and recorded.served(request).status is CallStatus.SUCCESS
    }
    assert without <= {row["request_id"] for row in rows}
    assert len(rows) < len(recorded.requests) / 2


def test_who_sends_feedback(database: sqlite3.Connection, recorded: History) -> None:
    rows = answer(database, "Who sends feedback?")

    assert {(row["team_id"], row["key_hash"]) for row in rows} == {
        ("team", "key-a"),
        (None, "key-b"),
    }
    assert sum(row["answered"] for row in rows) == len(recorded.said("feedback"))
    assert all(0 < row["feedback_share"] < 1 for row in rows)


def test_which_keys_cause_what(database: sqlite3.Connection, recorded: History) -> None:
    rows = answer(database, "Which keys cause failures, and labels of checks?")

    last_day = max(request.created_at for request in recorded.requests).date()
    of_day = [each for each in recorded.requests if each.created_at.date() == last_day]
    checks = recorded.said("check:reference")
    for row in rows:
        own = [each for each in of_day if each.asker.key_hash == row["key_hash"]]
        served = [recorded.served(each) for each in own]
        assert row["requests"] == len(own)
        assert row["failed"] == sum(call.status is CallStatus.FAILURE for call in served)
        assert row["checks"] == sum(each.request_id in checks for each in own)
    assert sum(row["checks"] for row in rows) > 0


def test_what_each_source_says(database: sqlite3.Connection, recorded: History) -> None:
    rows = answer(database, "What does each source of labels say?")

    sources = {"feedback", "check:reference", "judge", "implicit"}
    assert {row["source"] for row in rows} == sources
    for row in rows:
        said = recorded.said(row["source"], row["service_level"])
        assert row["labelled"] == len(said)
        assert row["satisfaction"] == pytest.approx(sum(said.values()) / len(said))
        assert row["counting"] == len(said) or row["source"] != "feedback"
    verdicts = sum(len(recorded.verdicts(level)) for level in LEVELS)
    assert sum(row["counting"] for row in rows) == verdicts
    assert verdicts < sum(row["labelled"] for row in rows)


def test_the_judge_against_the_users(database: sqlite3.Connection, recorded: History) -> None:
    (row,) = answer(database, "Does the judge agree with the users?")

    judge, user = recorded.said("judge"), recorded.said("feedback")
    both = [(judge[each] >= 0.5, user[each] >= 0.5) for each in judge.keys() & user.keys()]
    found = Agreement(*map(both.count, [(True, True), (True, False), (False, True), (False,) * 2]))
    assert (row["calls"], row["neither"]) == (found.calls, found.neither)
    assert row["both_satisfied"] == found.both_satisfied
    assert row["only_judge_satisfied"] + row["only_user_satisfied"] == 2
    assert row["agreement"] == pytest.approx(found.share)
    assert row["kappa"] == pytest.approx(found.kappa)


def test_what_the_judge_cost(database: sqlite3.Connection, recorded: History) -> None:
    rows = [dict(row) for row in database.execute("SELECT * FROM gradings_per_day")]

    assert {row["judge"] for row in rows} == {JUDGE}
    assert sum(row["gradings"] for row in rows) == len(recorded.gradings)
    assert sum(row["gradings_without_cost"] for row in rows) == 1
    assert sum(row["gradings"] - row["graded"] for row in rows) == 1
    assert sum(row["cost"] for row in rows) == pytest.approx(
        GRADING_COST * (len(recorded.gradings) - 1)
    )


def test_the_dearest_requests_of_the_last_day(
    database: sqlite3.Connection, recorded: History
) -> None:
    rows = answer(database, "Which requests of yesterday cost most?")

    last_day = max(request.created_at for request in recorded.requests).date()
    costs = {
        request.request_id: recorded.cost(request)
        for request in recorded.requests
        if request.created_at.date() == last_day
    }
    assert {row["request_id"] for row in rows} <= set(costs)
    assert [row["cost"] for row in rows] == pytest.approx(
        sorted(costs.values(), reverse=True)[: len(rows)]
    )


def test_every_verdict_stands_beside_its_prediction(
    database: sqlite3.Connection, recorded: History
) -> None:
    rows = answer(database, "How good were the predictions?")

    judged = {label.call_id for label in recorded.labels}
    known = [call for call in recorded.calls if call.call_id in judged and call.candidate]
    assert sum(row["verdicts"] for row in rows) == len(known)
    by_candidate = {row["candidate"]: row for row in rows}
    assert set(by_candidate) == set(PREDICTED)
    for name, row in by_candidate.items():
        assert row["predicted"] == pytest.approx(PREDICTED[name])
        assert row["predicted_about"] == pytest.approx(round(PREDICTED[name], 1))
        assert 0 < row["observed"] <= 1
    assert by_candidate[SMALL]["observed"] < by_candidate[LARGEST]["observed"]


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
        assert row["median_error"] < row["p90_error"]


def test_failures(database: sqlite3.Connection) -> None:
    failed = answer(database, "Which models failed, and why?")

    assert sorted(row["role"] for row in failed) == ["exploration", "served"]
    assert all(row["failures"] == 1 < row["calls"] for row in failed)
    assert all(row["an_error"] == "Timeout: no answer" for row in failed)


def test_what_predicting_costs_beside_the_calls(
    database: sqlite3.Connection, recorded: History
) -> None:
    (row,) = answer(database, "What does reading the prompts cost?")

    count = len(recorded.requests)
    predicting = ENCODE_SECONDS * (count - len(LATE))
    assert (row["requests"], row["late"]) == (count, len(LATE))
    assert row["predicting_ms"] == pytest.approx(1000 * ENCODE_SECONDS)
    assert row["call_ms"] == pytest.approx(1000 * CALL_SECONDS)
    assert row["predicting_seconds"] == pytest.approx(predicting)
    assert row["predicting_share"] == pytest.approx(
        predicting / (predicting + CALL_SECONDS * count)
    )
    assert row["predicting_joules"] == pytest.approx(ENCODE_JOULES)
    served = [recorded.served(request).cost or 0.0 for request in recorded.requests]
    assert row["call_cost"] == pytest.approx(sum(served))


def test_decision_times_and_the_debt(database: sqlite3.Connection, recorded: History) -> None:
    (times,) = answer(database, "How long did decisions take?")
    debts = answer(database, "How did the debt develop?")

    # 0.1, 0.2, ... 4.8 ms
    assert times["median_ms"] == pytest.approx(2.4)
    assert times["p95_ms"] == pytest.approx(4.6)
    assert times["longest_ms"] == times["p99_ms"] == pytest.approx(4.8)
    assert sum(row["requests"] for row in debts) == len(recorded.requests)
    assert all(row["mean_queue"] < row["last_queue"] <= row["highest_queue"] for row in debts)
    assert max(row["last_queue"] for row in debts) == pytest.approx(4.7)
