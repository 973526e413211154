"""Every question in `docs/sql.md` runs, and its answer is what the seeded history says."""

import sqlite3
from collections.abc import Callable, Iterable
from math import sqrt
from typing import Any

import pytest

from litellm_messplus.core.head import Label
from litellm_messplus.figures.interval import Interval, standing
from litellm_messplus.labels.agreement import Agreement
from litellm_messplus.records import RequestRecord
from litellm_messplus.runtime.vocabulary import CallRole, CallStatus
from tests.support import history as made
from tests.support.history import ALPHA, COST, LARGEST, History
from tests.support.markdown import ROOT, Document
from tests.support.questions import questions

SQL = Document(ROOT / "docs" / "sql.md")
QUESTIONS = questions()
LEVELS = list(ALPHA)

Rows = list[dict[str, Any]]
Table = tuple[str, list[tuple[Any, ...]]]
"""Names of columns, and what is expected in them."""


def answer(database: sqlite3.Connection, question: str) -> Rows:
    query = QUESTIONS.get(question, f"SELECT * FROM {question}")
    return [dict(row) for row in database.execute(query)]


def test_each_question_has_its_sql() -> None:
    assert [each for each in SQL.headings if each.endswith("?")] == list(QUESTIONS)
    assert len(QUESTIONS) == sum(block.language == "sql" for block in SQL.blocks) >= 10


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_is_answered(database: sqlite3.Connection, question: str) -> None:
    rows = answer(database, question)

    assert rows
    assert not [name for name in rows[0] if all(row[name] is None for row in rows)]


def of_level(recorded: History, level: str) -> list[RequestRecord]:
    return [each for each in recorded.requests if each.service_level == level]


def day_of(request: RequestRecord) -> str:
    return str(request.created_at.date())


def grouped(recorded: History, by: Callable[[RequestRecord], Any]) -> Iterable[tuple[Any, Any]]:
    found: dict[Any, list[RequestRecord]] = {}
    for each in recorded.requests:
        found.setdefault(by(each), []).append(each)
    return found.items()


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
    return "level alpha requests judged rate equal low high verdict", rows


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
    return "level requests cost cost_largest saved saved_share", rows


def months(recorded: History) -> Table:
    _, parts = savings(recorded)
    sums = [
        sum(column) for column in zip(*parts, strict=True) if isinstance(column[0], int | float)
    ]
    return "month requests cost cost_largest saved", [("2026-03", *sums[:4])]


def sources(recorded: History) -> Table:
    rows = [
        (level, source, len(said), sum(said.values()) / len(said))
        for level in LEVELS
        for source in ("check:complete", "feedback", "judge")
        if (said := recorded.said(source, level))
    ]
    return "level source labelled satisfaction", rows


def agreement(recorded: History) -> Table:
    judge, user = recorded.said("judge"), recorded.said("feedback")
    both = [(judge[each] >= 0.5, user[each] >= 0.5) for each in judge.keys() & user.keys()]
    counts = list(map(both.count, [(True, True), (True, False), (False, True), (False, False)]))
    found = Agreement(*counts)
    columns = "both_satisfied only_judge_satisfied only_user_satisfied neither agreement kappa"
    return columns, [(*counts, found.share, found.kappa)]


def spenders(recorded: History) -> Table:
    rows = []
    for key, own in grouped(recorded, lambda each: each.asker.key_hash):
        served = list(map(recorded.served, own))
        failed = [each.status for each in served].count(CallStatus.FAILURE)
        verdicts = [recorded.verdict(each.call_id) for each in served]
        priced = [each for each in own if recorded.served(each).cost is not None]
        cost = sum(map(recorded.cost, priced))
        rows.append((key, len(own), failed, mean(each for each in verdicts if each), cost))
    return "key_hash requests failed satisfied cost", rows


def tags(recorded: History) -> Table:
    rows = []
    for day, own in grouped(recorded, day_of):
        costs = [recorded.cost(each) for each in own if each.names is not None]
        rows += [(day, tag, len(costs), sum(costs)) for tag in made.NAMES.tags or ()]
    return "day tag requests cost", rows


def labelling(recorded: History) -> Table:
    rows = []
    for day, own in grouped(recorded, day_of):
        ids = {each.request_id for each in own}
        unseen = sum(recorded.cost(each) - (recorded.served(each).cost or 0.0) for each in own)
        judging = sum(each.cost or 0.0 for each in recorded.gradings if each.request_id in ids)
        rows.append((day, unseen, judging))
    return "day unseen judging", rows


def speeds(recorded: History) -> Table:
    answered = [each for each in recorded.calls if each.status is CallStatus.SUCCESS]
    served = [each.candidate for each in answered if each.role is CallRole.SERVED]
    return "model answers median p95 tokens_a_second", [
        (model, served.count(model), made.CALL_SECONDS, made.CALL_SECONDS, 5 / made.CALL_SECONDS)
        for model in {*served}
    ]


def dearest(recorded: History) -> Table:
    last = max(each.created_at for each in recorded.requests).date()
    costs = [recorded.cost(each) for each in recorded.requests if each.created_at.date() == last]
    return "cost", [(cost,) for cost in sorted(costs, reverse=True)[:20]]


ANSWERS: dict[str, Callable[[History], Table]] = {
    "Where does each promise stand?": promises,
    "savings": savings,
    "What was saved, month by month?": months,
    "What does each source of labels say?": sources,
    "Does the judge agree with the users?": agreement,
    "What did each team, key and user spend?": spenders,
    "What did each tag spend?": tags,
    "What did labels cost, day by day?": labelling,
    "How fast is each model?": speeds,
    "Which requests of yesterday cost most?": dearest,
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
    return [each or "" for each in row if isinstance(each, str | None)]


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


def test_failures_are_by_hour(database: sqlite3.Connection, recorded: History) -> None:
    (row,) = answer(database, "What failed, hour by hour?")
    failed = recorded.requests[20]

    assert (row["hour"], row["chosen"]) == (str(failed.created_at)[:13], failed.chosen)
    assert (row["failure"], row["failed"], row["an_error"]) == ("deadline", 1, "Timeout: no answer")


def test_counting_labels_are_verdicts(database: sqlite3.Connection, recorded: History) -> None:
    rows = answer(database, "What does each source of labels say?")

    verdicts = sum(len(recorded.verdicts(level)) for level in LEVELS)
    assert sum(row["counting"] for row in rows) == verdicts
