"""In a closed loop limits hold where they can, and give way in the documented order."""

from statistics import mean
from typing import Any

import pytest

from litellm_messplus.routing.limits import LATE_SHARE
from tests.support.closed_loop import Model, Run, run

ALPHA = 0.75
REQUESTS = 1200
SEEDS = range(2)
IN_TIME = 1.0
"""Seconds, of which one call in twenty may take longer."""
SLOW_AND_FAST = (Model("slow", 0.85, 1.0, late=0.3), Model("fast", 0.85, 10.0))
THREE = (
    Model("small", 0.45, 1.0),
    Model("medium", 0.8, 4.0, late=0.4),
    Model("large", 0.9, 20.0, late=0.01),
)
MIX = (Model("small", 0.45, 1.0), Model("medium", 0.7, 4.0), Model("large", 0.9, 20))


def one(models: tuple[Model, ...], seed: int = 0, **given: Any) -> Run:
    return run(models, seed=seed, **{"alpha": ALPHA, "requests": REQUESTS, **given})


def runs(models: tuple[Model, ...], **given: Any) -> list[Run]:
    return [one(models, seed, **given) for seed in SEEDS]


@pytest.mark.parametrize("models", [SLOW_AND_FAST, THREE], ids=["two models", "three models"])
@pytest.mark.parametrize("delay", [0, 30], ids=["at once", "calls take 30 requests"])
def test_where_it_can_be_kept_at_most_one_in_twenty_is_late_and_alpha_is_held(
    models: tuple[Model, ...], delay: int
) -> None:
    ended = runs(models, p95_seconds=IN_TIME, delay=delay)
    assert all(each.late_share(since=0.5) <= LATE_SHARE + 0.01 for each in ended)
    assert mean(each.rate() for each in ended) > ALPHA - 0.01
    assert all(each.rate() > ALPHA - 0.02 for each in ended)
    if models is SLOW_AND_FAST and delay == 0:  # the slow one serves a sixth: no more may be late
        assert mean(sum(each.cost) / REQUESTS for each in ended) < 9.0
        unlimited = one(models)
        assert unlimited.late_share() > 0.2
        assert all(choice.situation.limits is None for choice in unlimited.choices)


def test_alpha_comes_before_latency() -> None:
    """The model that is in time cannot hold alpha. It serves as much as alpha allows all the
    same: three of eight requests."""
    models = (Model("slow", 0.9, 1.0, late=0.5), Model("fast", 0.5, 10.0))
    ended = runs(models, alpha=0.75, p95_seconds=IN_TIME)
    assert all(each.rate() > 0.735 for each in ended)
    assert mean(each.served.count("fast") for each in ended) > 0.25 * REQUESTS
    limits = ended[0].choices[-1].situation.limits
    assert limits is not None
    assert limits.binding == "latency"


@pytest.mark.parametrize("delay", [0, 30], ids=["at once", "calls take 30 requests"])
def test_the_budget_of_each_day_is_kept_and_alpha_too_where_both_can(delay: int) -> None:
    """A tenth above what holds alpha at the least: the mix of medium and large costs 8."""
    ended = runs(MIX, budget_per_day=11.0 * REQUESTS, delay=delay)
    assert all(each.spent(0) <= 1.02 * 11.0 * REQUESTS for each in ended)
    assert mean(each.rate(since=0.5) for each in ended) > ALPHA - 0.01


def test_the_budget_comes_before_alpha_and_the_rest_buys_as_much_as_it_can() -> None:
    """At 6 a request, the best mix of medium and large satisfies 72.5 %."""
    budget = 6.0 * REQUESTS / 2
    ended = runs(MIX, budget_per_day=budget, days=2.0)
    assert all(each.spent(day) <= 1.02 * budget for each in ended for day in (0, 1))
    assert all(each.spent(1) > 0.9 * budget for each in ended)
    assert mean(each.rate(since=0.5) for each in ended) == pytest.approx(0.72, abs=0.03)


def test_the_budget_lasts_until_midnight() -> None:
    ended = one(MIX, budget_per_day=4.0 * REQUESTS)
    hours = [
        sum(cost for cost, at in zip(ended.cost, ended.at, strict=True) if at // 21_600 == quarter)
        for quarter in range(4)
    ]
    assert all(0.7 < each / REQUESTS < 1.3 for each in hours)


@pytest.mark.parametrize(("budget", "answered"), [(0.5, 1.0), (3.0, 0.0)])
def test_nothing_is_refused_for_a_budget_nor_used_up_without_labels(
    budget: float, answered: float
) -> None:
    ended = one(MIX, budget_per_day=budget * REQUESTS, answered=answered)
    assert len(ended.served) == REQUESTS
    assert ended.spent(0) <= 1.02 * max(budget, 1.1) * REQUESTS
    if budget < 1.0:  # where even the least expensive is too much, it serves
        assert ended.served.count("small") > 0.97 * REQUESTS


def test_with_all_three_the_budget_comes_first_and_latency_last() -> None:
    """A cheap slow model holds alpha, a cheap fast one does not, an expensive fast one would."""
    models = (
        Model("slow", 0.85, 3.0, late=0.5),
        Model("poor", 0.3, 1.0),
        Model("fast", 0.85, 20.0),
    )
    ended = runs(models, alpha=0.8, p95_seconds=IN_TIME, budget_per_day=4.0 * REQUESTS)
    assert all(each.spent(0) <= 1.02 * 4.0 * REQUESTS for each in ended)
    assert mean(each.rate(since=0.5) for each in ended) > 0.77
    assert mean(each.late_share(since=0.5) for each in ended) > 0.2
