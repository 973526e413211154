"""A judge is asked as often, and for as many dollars, as a day allows."""

import time
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.labels.judge.budget import LAG_SECONDS, JudgeBudget, Spent

TODAY = date(2026, 3, 1)


@given(st.lists(st.floats(0.001, 1.0), max_size=40), st.floats(0.0, 5.0))
def test_dollars_are_exceeded_by_one_grading_at_most(costs: list[float], dollars: float) -> None:
    budget = JudgeBudget(dollars)
    paid = [0.0]
    for cost in costs:
        if budget.has_room():
            budget.end(budget.begin(), dollars=cost)
            paid.append(cost)

    assert sum(paid) <= dollars + paid[-1] + 1e-9
    assert len(paid) == 1 + len(costs) or sum(paid) >= dollars - 1e-9


@pytest.mark.parametrize(("gradings", "dollars"), [(0, None), (10, 0.0)])
def test_a_budget_of_nothing_allows_nothing(gradings: int, dollars: float | None) -> None:
    assert not JudgeBudget(dollars, gradings=gradings).has_room()


@pytest.mark.parametrize("gone", [0.0, LAG_SECONDS + 1.0])
def test_a_new_day_begins_at_nothing_once_the_log_has_the_last_grading(gone: float) -> None:
    budget = JudgeBudget(1.0, gradings=1)
    budget.end(budget.begin(), dollars=2.0)
    assert not budget.has_room()

    budget.learn(Spent(TODAY), time.monotonic() + gone)

    assert budget.has_room() is (gone > 0.0)  # a log that lags behind gives nothing back
