"""In a closed loop limits hold where they can, and give way in the documented order."""

from statistics import mean

import pytest

from litellm_messplus.routing.limits import LATE_SHARE
from tests.support.limited_loop import LimitedRun, TimedModel, run_limited

ALPHA = 0.75
REQUESTS = 1200
SEEDS = range(3)
IN_TIME = {"p95_seconds": 1.0}
SLOW_AND_FAST = (TimedModel("slow", 0.85, 1.0, late=0.3), TimedModel("fast", 0.85, 10.0))
THREE = (
    TimedModel("small", 0.45, 1.0),
    TimedModel("medium", 0.8, 4.0, late=0.4),
    TimedModel("large", 0.9, 20.0, late=0.01),
)
MIX = (TimedModel("small", 0.45, 1.0), TimedModel("medium", 0.7, 4.0), TimedModel("large", 0.9, 20))


def runs(models: tuple[TimedModel, ...], **given: object) -> list[LimitedRun]:
    told = {"alpha": ALPHA, "requests": REQUESTS, **given}
    return [run_limited(models, seed=seed, **told) for seed in SEEDS]  # type: ignore[arg-type]


def test_without_a_limit_the_least_expensive_serves_however_slow_it_is() -> None:
    ended = run_limited(SLOW_AND_FAST, alpha=ALPHA, requests=400, seed=0)
    assert ended.late_share() > 0.2
    assert all(choice.situation.limits is None for choice in ended.choices)


@pytest.mark.parametrize("models", [SLOW_AND_FAST, THREE], ids=["two models", "three models"])
@pytest.mark.parametrize("delay", [0, 30], ids=["at once", "calls take 30 requests"])
def test_where_it_can_be_kept_at_most_one_in_twenty_is_late_and_alpha_is_held(
    models: tuple[TimedModel, ...], delay: int
) -> None:
    ended = runs(models, latency=IN_TIME, delay=delay)
    assert all(each.late_share(since=0.5) <= LATE_SHARE + 0.01 for each in ended)
    assert mean(each.rate() for each in ended) > ALPHA - 0.01
    assert all(each.rate() > ALPHA - 0.02 for each in ended)


def test_to_be_in_time_costs_no_more_than_it_must() -> None:
    """The slow model serves as much as one late request in twenty allows: a sixth of them."""
    ended = runs(SLOW_AND_FAST, latency=IN_TIME)
    assert mean(sum(each.cost) / REQUESTS for each in ended) < 9.0


def test_alpha_comes_before_latency() -> None:
    """The model that is in time cannot hold alpha. It serves as much as alpha allows all the
    same: three of eight requests."""
    models = (TimedModel("slow", 0.9, 1.0, late=0.5), TimedModel("fast", 0.5, 10.0))
    ended = runs(models, alpha=0.75, latency=IN_TIME)
    assert all(each.rate() > 0.735 for each in ended)
    assert mean(each.served.count("fast") for each in ended) > 0.25 * REQUESTS
    assert ended[0].choices[-1].situation.limits.binding == "latency"  # type: ignore[union-attr]


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
    (ended,) = runs(MIX, budget_per_day=4.0 * REQUESTS)[:1]
    hours = [
        sum(cost for cost, at in zip(ended.cost, ended.at, strict=True) if at // 21_600 == quarter)
        for quarter in range(4)
    ]
    assert all(0.7 < each / REQUESTS < 1.3 for each in hours)


def test_where_even_the_least_expensive_is_too_much_it_serves_every_request() -> None:
    """Routing never breaks serving: nothing is refused."""
    (ended,) = runs(MIX, budget_per_day=0.5 * REQUESTS)[:1]
    assert ended.served.count("small") > 0.97 * REQUESTS
    assert len(ended.served) == REQUESTS


def test_without_labels_the_largest_does_not_use_the_budget_up() -> None:
    (ended,) = runs(MIX, budget_per_day=3.0 * REQUESTS, answered=0.0)[:1]
    assert ended.spent(0) <= 1.02 * 3.0 * REQUESTS


def test_with_all_three_the_budget_comes_first_and_latency_last() -> None:
    """A cheap slow model holds alpha, a cheap fast one does not, an expensive fast one would."""
    models = (
        TimedModel("slow", 0.85, 3.0, late=0.5),
        TimedModel("poor", 0.3, 1.0),
        TimedModel("fast", 0.85, 20.0),
    )
    ended = runs(models, alpha=0.8, latency=IN_TIME, budget_per_day=4.0 * REQUESTS)
    assert all(each.spent(0) <= 1.02 * 4.0 * REQUESTS for each in ended)
    assert mean(each.rate(since=0.5) for each in ended) > 0.77
    assert mean(each.late_share(since=0.5) for each in ended) > 0.2
