"""What the pieces of `adaptive` promise, whatever their constants are."""

from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.routing import trying
from litellm_messplus.routing.price import (
    best_value,
    eligible,
    feedforward,
    horizon,
    lower_hull,
    reserve,
    with_feedback,
)
from litellm_messplus.routing.trying import Knowledge

alphas = st.floats(0.01, 0.99)
shares = st.floats(0.0, 1.0)
backlogs = st.floats(-100.0, 100.0)
counts = st.integers(1, 100_000)


@st.composite
def zoos(draw: st.DrawFn) -> tuple[list[float], list[float]]:
    """Costs, rising, and rates, on grids that make every comparison exact."""
    costs = sorted(draw(st.sets(st.integers(1, 30), min_size=1, max_size=6)))
    rates = [draw(st.integers(0, 16)) / 16 for _ in costs]
    return [float(cost) for cost in costs], rates


def undercut(model: int, cost: list[float], rate: list[float]) -> bool:
    """Whether another, or a mix of two others, satisfies as often and costs no more."""
    others = [other for other in range(len(cost)) if other != model]
    if any(cost[other] <= cost[model] and rate[other] >= rate[model] for other in others):
        return True
    for one, two in combinations(others, 2):
        low, high = sorted((one, two), key=rate.__getitem__)
        if rate[low] < rate[model] < rate[high]:
            share = (rate[model] - rate[low]) / (rate[high] - rate[low])
            if (1 - share) * cost[low] + share * cost[high] <= cost[model] + 1e-9:
                return True
    return False


@given(zoos())
def test_the_hull_is_what_no_mix_undercuts(zoo: tuple[list[float], list[float]]) -> None:
    cost, rate = zoo
    expected = [model for model in range(len(cost)) if not undercut(model, cost, rate)]
    assert list(lower_hull(range(len(cost)), cost, rate)) == expected


@given(zoos(), st.floats(0.01, 0.99))
def test_at_the_feedforward_price_the_mix_that_meets_alpha_is_indifferent(
    zoo: tuple[list[float], list[float]], share: float
) -> None:
    cost, rate = zoo
    hull = lower_hull(range(len(cost)), cost, rate)
    if len(hull) == 1:  # nothing to mix
        assert feedforward(hull, cost, rate, share) == 0.0
        return
    alpha = rate[hull[0]] + share * (rate[hull[-1]] - rate[hull[0]])
    price = feedforward(hull, cost, rate, alpha)
    high = next(model for model in hull if rate[model] >= alpha)
    low = hull[hull.index(high) - 1]
    worth = [price * rate[model] - cost[model] for model in range(len(cost))]
    assert worth[low] == pytest.approx(worth[high]) == pytest.approx(max(worth))


@given(zoos(), alphas)
def test_the_feedforward_price_rises_with_alpha(
    zoo: tuple[list[float], list[float]], alpha: float
) -> None:
    cost, rate = zoo
    hull = lower_hull(range(len(cost)), cost, rate)
    prices = [feedforward(hull, cost, rate, each) for each in (alpha / 2, alpha, alpha / 2 + 0.5)]
    assert prices == sorted(prices)
    assert prices[0] >= 0.0


@given(st.floats(0.001, 1000.0), backlogs, backlogs)
def test_a_larger_backlog_never_lowers_the_price(slope: float, one: float, other: float) -> None:
    less, more = sorted((one, other))
    assert 0.0 < with_feedback(slope, less) <= with_feedback(slope, more)
    assert with_feedback(8.0 * slope, more) == 8.0 * with_feedback(slope, more)


def test_without_backlog_the_price_is_the_feedforward_and_no_backlog_lifts_it_to_infinity() -> None:
    assert with_feedback(3.0, 0.0) == 3.0
    assert with_feedback(3.0, 1e9) < 1e6
    assert with_feedback(3.0, -1e9) > 0.0


@given(zoos())
def test_the_best_value_is_a_price_in_the_unit_of_cost(
    zoo: tuple[list[float], list[float]],
) -> None:
    cost, rate = zoo
    value = best_value(cost, rate)
    assert 0.0 <= value < 1e6
    assert best_value([8.0 * each for each in cost], rate) == 8.0 * value


@given(st.lists(shares, min_size=1, max_size=6), alphas, backlogs, backlogs, counts)
def test_eligible_are_the_cheapest_up_to_one_that_can_hold_alpha(
    optimistic: list[float], alpha: float, one: float, other: float, requests: int
) -> None:
    by_cost = list(reversed(range(len(optimistic))))
    less, more = sorted((one, other))
    allowed = eligible(by_cost, optimistic, alpha, less, float(requests))
    assert allowed == tuple(by_cost[: len(allowed)])
    assert allowed
    assert all(optimistic[model] >= alpha for model in allowed[-1:]) or len(allowed) == len(by_cost)
    if less <= 0.0:  # nothing to repay: nobody dearer than the first that holds alpha
        assert not any(optimistic[model] >= alpha for model in allowed[:-1])
    # With more to repay nobody drops out, with more time nobody comes in.
    assert set(allowed) <= set(eligible(by_cost, optimistic, alpha, more, requests))
    assert set(eligible(by_cost, optimistic, alpha, less, 2.0 * requests)) <= set(allowed)


def test_where_nobody_can_hold_alpha_all_are_eligible() -> None:
    assert eligible((2, 0, 1), (0.1, 0.2, 0.3), 0.9, -5.0, 100.0) == (2, 0, 1)


def known(
    rate: Sequence[float], deviation: Sequence[float], unseen_labelled: float = 1.0
) -> Knowledge:
    return Knowledge(rate, deviation, (1.5,) * len(rate), False, unseen_labelled)


@given(counts, counts)
def test_probes_get_rarer_and_never_stop(one: int, other: int) -> None:
    earlier, later = sorted((one, other))
    assert 0.0 < trying.probe_probability(later) <= trying.probe_probability(earlier) <= 1.0
    assert trying.probe_probability(10**6) < trying.probe_probability(1) / 5


@given(st.data(), zoos(), alphas)
def test_a_probe_may_lower_the_cost_or_is_among_the_eligible(
    data: st.DataObject, zoo: tuple[list[float], list[float]], alpha: float
) -> None:
    cost, rate = zoo
    deviation = [data.draw(st.integers(0, 8)) / 32 for _ in cost]
    allowed = tuple(range(data.draw(st.integers(1, len(cost)))))
    choice = data.draw(st.sampled_from(allowed))
    tried = trying.to_probe(allowed, choice, cost, known(rate, deviation), alpha)
    assert tried
    assert len(set(tried)) == len(tried)
    assert set(tried) <= set(allowed)
    assert tried == allowed or all(cost[model] < cost[choice] for model in tried)


def test_who_surely_cannot_hold_alpha_is_not_probed_for_one_who_may() -> None:
    cost, rate, sure, unsure = (1.0, 2.0, 9.0), (0.2, 0.6, 0.9), (0.001,) * 3, (0.001, 0.2, 0.001)
    assert trying.to_probe((0, 1, 2), 2, cost, known(rate, unsure), 0.7) == (1,)
    assert trying.to_probe((0, 1, 2), 2, cost, known(rate, sure), 0.7) == (0, 1, 2)


@given(st.data(), zoos(), alphas, shares, shares)
def test_shadows_are_cheaper_and_fewer_where_fewer_get_labels(
    data: st.DataObject,
    zoo: tuple[list[float], list[float]],
    alpha: float,
    one: float,
    other: float,
) -> None:
    cost, rate = zoo
    deviation = [data.draw(st.integers(0, 8)) / 32 for _ in cost]
    allowed = tuple(range(data.draw(st.integers(1, len(cost)))))
    choice = data.draw(st.sampled_from(allowed))
    less, more = (
        set(trying.to_shadow(allowed, choice, cost, known(rate, deviation, share), alpha))
        for share in sorted((one, other))
    )
    assert less <= more <= {model for model in allowed if cost[model] < cost[choice]}


def test_a_shadow_is_worth_its_price_where_the_one_that_serves_is_dear() -> None:
    rates = known((0.6, 0.9), (0.08, 0.01))
    for dear, called in ((50.0, (0,)), (1.5, ())):
        assert trying.to_shadow((0, 1), 1, (1.0, dear), rates, 0.7) == called


@given(shares, st.floats(0.0, 0.5), alphas)
def test_the_chance_to_hold_alpha_is_a_half_at_alpha(
    rate: float, deviation: float, alpha: float
) -> None:
    assert 0.0 <= trying.chance_to_hold(alpha, rate, deviation) <= 1.0
    assert trying.chance_to_hold(alpha, alpha, deviation) == 0.5
    assert (trying.chance_to_hold(alpha, rate, deviation) > 0.5) <= (rate > alpha)


@given(shares, st.floats(0.001, 0.5), alphas, counts, counts)
def test_the_reserve_is_filled_slowly_and_bounded(
    rate: float, deviation: float, alpha: float, one: int, other: int
) -> None:
    earlier, later = sorted((one, other))
    less, more = (reserve(rate, deviation, alpha, requests) for requests in (earlier, later))
    assert 0.0 <= less <= more <= 30.0
    assert less <= 0.05 * earlier


def test_the_reserve_is_larger_where_the_surplus_is_thin() -> None:
    wide, thin = (reserve(rate, 0.001, 0.75, 10_000) for rate in (0.95, 0.8))
    assert wide < thin


@given(counts, st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_the_horizon_holds_fewer_answers_where_fewer_answer(
    requests: int, one: float, other: float
) -> None:
    fewer, more = sorted((one, other))
    assert 0.0 < horizon(requests, fewer) <= horizon(requests, more) <= horizon(10**9, 1.0)
    assert horizon(requests, more) <= horizon(2 * requests, more)
