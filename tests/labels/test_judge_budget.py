"""A day's budget is counted once, whoever counts it, and a new day begins at nothing."""

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.labels.judge.budget import DailyBudget, Spent

TODAY = date(2026, 3, 1)
TOMORROW = TODAY + timedelta(days=1)


@given(st.integers(0, 20), st.integers(0, 40))
def test_the_judge_is_asked_no_more_often_than_allowed(most: int, wanted: int) -> None:
    budget = DailyBudget(gradings=most, dollars=None)
    asked = 0
    for _ in range(wanted):
        if budget.has_room(TODAY):
            budget.begin(TODAY)
            asked += 1

    assert asked == min(most, wanted)


@given(st.lists(st.floats(0.001, 1.0), max_size=40), st.floats(0.0, 5.0))
def test_dollars_are_exceeded_by_the_last_grading_at_most(
    costs: list[float], dollars: float
) -> None:
    budget = DailyBudget(gradings=1000, dollars=dollars)
    paid = [0.0]
    for cost in costs:
        if budget.has_room(TODAY):
            budget.begin(TODAY)
            budget.end(TODAY, dollars=cost)
            paid.append(cost)

    assert sum(paid) <= dollars + paid[-1]
    assert len(paid) == 1 + len(costs) or sum(paid) >= dollars


def test_a_budget_of_nothing_allows_nothing() -> None:
    assert not DailyBudget(gradings=0, dollars=None).has_room(TODAY)
    assert not DailyBudget(gradings=10, dollars=0.0).has_room(TODAY)


def test_a_new_day_begins_at_nothing() -> None:
    budget = DailyBudget(gradings=1, dollars=1.0)
    budget.begin(TODAY)
    budget.end(TODAY, dollars=2.0)

    assert not budget.has_room(TODAY)
    assert budget.has_room(TOMORROW)


def test_what_the_log_knows_is_spent_and_is_not_counted_twice() -> None:
    budget = DailyBudget(gradings=3, dollars=None)
    budget.begin(TODAY)
    budget.learn(Spent(TODAY, gradings=2))
    assert budget.has_room(TODAY)

    budget.begin(TODAY)

    assert not budget.has_room(TODAY)


def test_a_log_that_lags_behind_gives_nothing_back() -> None:
    budget = DailyBudget(gradings=10, dollars=1.0)
    budget.begin(TODAY)
    budget.end(TODAY, dollars=1.5)

    budget.learn(Spent(TODAY, gradings=0, dollars=0.0))

    assert not budget.has_room(TODAY)


def test_yesterdays_log_read_at_midnight_does_not_undo_today() -> None:
    budget = DailyBudget(gradings=1, dollars=None)
    budget.begin(TOMORROW)

    budget.learn(Spent(TODAY, gradings=0))

    assert not budget.has_room(TOMORROW)


@given(st.integers(1, 8), st.integers(0, 40), st.lists(st.integers(0, 7), max_size=100))
def test_workers_that_see_each_other_only_now_and_then_keep_one_budget(
    workers: int, most: int, asked: list[int]
) -> None:
    """Each may ask for its share, rounded up."""
    budgets = [DailyBudget(gradings=most, dollars=None) for _ in range(workers)]
    for budget in budgets:
        budget.learn(Spent(TODAY), workers)
    spent = 0
    for worker in asked:
        if budgets[worker % workers].has_room(TODAY):
            budgets[worker % workers].begin(TODAY)
            spent += 1

    assert spent < most + workers
    assert most > 0 or spent == 0


def test_what_others_left_unused_is_shared_anew_at_the_next_look() -> None:
    budget = DailyBudget(gradings=8, dollars=None)
    budget.learn(Spent(TODAY), workers=2)
    for _ in range(4):
        budget.begin(TODAY)
    assert not budget.has_room(TODAY)

    budget.learn(Spent(TODAY, gradings=4), workers=2)

    assert budget.has_room(TODAY)
