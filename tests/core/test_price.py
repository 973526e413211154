"""What the pieces of `adaptive` promise, whatever their constants are: prices, who may be called,
who is tried."""

from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.core import trying
from litellm_messplus.core.price import (
    best_value,
    eligible,
    feedforward,
    horizon,
    lower_hull,
    reserve,
    with_feedback,
)
from litellm_messplus.core.trying import Knowledge

alphas = st.floats(0.01, 0.99)
shares = st.floats(0.0, 1.0)
backlogs = st.floats(-100.0, 100.0)
counts = st.integers(1, 100_000)
Zoo = tuple[list[float], list[float]]


@st.composite
def zoos(draw: st.DrawFn) -> Zoo:
    """Costs, rising, and rates, on grids that make every comparison exact."""
    costs = sorted(draw(st.sets(st.integers(1, 30), min_size=1, max_size=6)))
    return [float(cost) for cost in costs], [draw(st.integers(0, 16)) / 16 for _ in costs]


def undercut(model: int, cost: list[float], rate: list[float]) -> bool:
    """Whether another, or a mix of two others, satisfies as often and costs no more."""
    others = [other for other in range(len(cost)) if other != model]
    if any(cost[other] <= cost[model] and rate[other] >= rate[model] for other in others):
        return True
    for low, high in combinations(sorted(others, key=rate.__getitem__), 2):
        if rate[low] < rate[model] < rate[high]:
            share = (rate[model] - rate[low]) / (rate[high] - rate[low])
            if (1 - share) * cost[low] + share * cost[high] <= cost[model] + 1e-9:
                return True
    return False


@given(zoos(), st.floats(0.01, 0.99))
def test_at_the_feedforward_price_the_mix_is_indifferent(zoo: Zoo, share: float) -> None:
    """Of the hull, which no mix undercuts."""
    cost, rate = zoo
    hull = lower_hull(range(len(cost)), cost, rate)
    assert list(hull) == [model for model in range(len(cost)) if not undercut(model, cost, rate)]
    if len(hull) == 1:  # nothing to mix
        assert feedforward(hull, cost, rate, share) == 0.0
        return
    alpha = rate[hull[0]] + share * (rate[hull[-1]] - rate[hull[0]])
    price = feedforward(hull, cost, rate, alpha)
    high = next(model for model in hull if rate[model] >= alpha)
    low = hull[hull.index(high) - 1]
    worth = [price * rate[model] - cost[model] for model in range(len(cost))]
    assert worth[low] == pytest.approx(worth[high]) == pytest.approx(max(worth))
    prices = [feedforward(hull, cost, rate, each) for each in (alpha / 2, alpha, alpha / 2 + 0.5)]
    assert 0.0 <= prices[0] <= prices[1] <= prices[2]


@given(zoos(), st.floats(0.001, 1000.0), backlogs, backlogs)
def test_more_backlog_never_lowers_price(zoo: Zoo, slope: float, one: float, other: float) -> None:
    less, more = sorted((one, other))
    assert 0.0 < with_feedback(slope, less) <= with_feedback(slope, more)
    assert with_feedback(8.0 * slope, more) == 8.0 * with_feedback(slope, more)
    assert with_feedback(3.0, 0.0) == 3.0
    assert 0.0 < with_feedback(3.0, -1e9) < with_feedback(3.0, 1e9) < 1e6
    cost, rate = zoo
    assert 0.0 <= best_value(cost, rate) < 1e6
    assert best_value([8.0 * each for each in cost], rate) == 8.0 * best_value(cost, rate)


@given(st.lists(shares, min_size=1, max_size=6), alphas, backlogs, backlogs, counts)
def test_eligible_are_the_cheapest_up_to_one_that_can_hold_alpha(
    optimistic: list[float], alpha: float, one: float, other: float, requests: int
) -> None:
    by_cost = list(reversed(range(len(optimistic))))
    less, more = sorted((one, other))
    allowed = eligible(by_cost, optimistic, alpha, less, float(requests))
    assert allowed == tuple(by_cost[: len(allowed)])
    assert all(optimistic[model] >= alpha for model in allowed[-1:]) or len(allowed) == len(by_cost)
    if less <= 0.0:  # nothing to repay: none dearer than the first that holds alpha
        assert not any(optimistic[model] >= alpha for model in allowed[:-1])
    # With more to repay none drops out, with more time none comes in.
    assert set(allowed) <= set(eligible(by_cost, optimistic, alpha, more, requests))
    assert set(eligible(by_cost, optimistic, alpha, less, 2.0 * requests)) <= set(allowed)


def test_where_no_candidate_can_hold_alpha_all_are_eligible() -> None:
    assert eligible((2, 0, 1), (0.1, 0.2, 0.3), 0.9, -5.0, 100.0) == (2, 0, 1)


def known(
    rate: Sequence[float], deviation: Sequence[float], unseen_labelled: float = 1.0
) -> Knowledge:
    return Knowledge(rate, deviation, (1.5,) * len(rate), False, unseen_labelled)


@given(st.data(), zoos(), alphas, shares, shares)
def test_probes_and_shadows_are_of_cheaper_models_and_fewer_where_fewer_get_labels(
    data: st.DataObject, zoo: Zoo, alpha: float, one: float, other: float
) -> None:
    cost, rate = zoo
    deviation = [data.draw(st.integers(0, 8)) / 32 for _ in cost]
    allowed = tuple(range(data.draw(st.integers(1, len(cost)))))
    choice = data.draw(st.sampled_from(allowed))
    tried = trying.to_probe(allowed, choice, cost, known(rate, deviation), alpha)
    assert tried == allowed or (tried and all(cost[model] < cost[choice] for model in tried))
    less, more = (
        set(trying.to_shadow(allowed, choice, cost, known(rate, deviation, share), alpha))
        for share in sorted((one, other))
    )
    assert less <= more <= {model for model in allowed if cost[model] < cost[choice]}


def test_who_surely_cannot_hold_alpha_is_not_probed_for_one_who_may() -> None:
    cost, rate, sure, unsure = (1.0, 2.0, 9.0), (0.2, 0.6, 0.9), (0.001,) * 3, (0.001, 0.2, 0.001)
    assert trying.to_probe((0, 1, 2), 2, cost, known(rate, unsure), 0.7) == (1,)
    assert trying.to_probe((0, 1, 2), 2, cost, known(rate, sure), 0.7) == (0, 1, 2)


@pytest.mark.parametrize(("dear", "called"), [(50.0, (0,)), (1.5, ())])
def test_a_shadow_is_worth_its_price_if_serving_is(dear: float, called: tuple[int, ...]) -> None:
    rates = known((0.6, 0.9), (0.08, 0.01))
    assert trying.to_shadow((0, 1), 1, (1.0, dear), rates, 0.7) == called


@pytest.mark.parametrize(
    ("rate", "deviation", "owed", "found"),
    [
        ((0.5, 0.6), (0.02, 0.1), 9.0, 1),  # the least known of those that may hold alpha
        ((0.5, 0.4), (0.2, 0.3), 9.0, 1),
        ((0.5, 0.6), (0.02, 0.1), 7.0, None),  # no debt stands
        ((0.5, 0.9), (0.02, 0.1), 9.0, None),  # one can repay it
        ((0.5, 0.7), (0.02, 0.04), 9.0, None),  # all are known well
        ((0.1, 0.2), (0.2, 0.01), 9.0, 0),  # none may: the least known that may be the best
        ((0.3, 0.44), (0.06, 0.03), 9.0, 0),  # though the other's bound is higher
        ((0.3, 0.6), (0.06, 0.04), 9.0, 1),
        ((0.3, 0.6), (0.06, 0.02), 9.0, None),  # until that is beyond doubt
    ],
)
def test_a_debt_that_no_rate_repays_calls_for_a_trial(
    rate: tuple[float, ...], deviation: tuple[float, ...], owed: float, found: int | None
) -> None:
    optimistic = [each + 2.0 * extra for each, extra in zip(rate, deviation, strict=True)]
    assert trying.trial(known(rate, deviation), optimistic, 0.75, owed) == found


@given(shares, st.floats(0.001, 0.5), alphas, counts, counts)
def test_what_time_brings(
    rate: float, deviation: float, alpha: float, one: int, other: int
) -> None:
    """Probes get rarer and never stop; the reserve is filled slowly and bounded, the horizon grows,
    and holds fewer answers where fewer answer."""
    earlier, later = sorted((one, other))
    probes = trying.probe_probability
    assert 0.0 < probes(later) <= probes(earlier) <= 1.0
    assert probes(10**6) < probes(1) / 5
    less, more = (reserve(rate, deviation, alpha, requests) for requests in (earlier, later))
    assert 0.0 <= less <= more <= 30.0
    assert less <= 0.05 * earlier
    assert 0.0 < horizon(earlier, rate / 2) <= horizon(earlier, rate) <= horizon(later, rate)
    assert horizon(10**9, 1.0) == horizon(later + 10**6, 1.0)
    assert 0.0 <= trying.chance_to_hold(alpha, rate, deviation) <= 1.0
    assert trying.chance_to_hold(alpha, alpha, deviation) == 0.5
    assert (trying.chance_to_hold(alpha, rate, deviation) > 0.5) <= (rate > alpha)


def test_the_reserve_is_larger_where_the_surplus_is_thin() -> None:
    assert reserve(0.95, 0.001, 0.75, 10_000) < reserve(0.8, 0.001, 0.75, 10_000)
