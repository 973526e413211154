"""The plan over recent prompts: what each price buys, and which price holds alpha."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.core.plan import PRICES, SAVING, Frontier, Matrix, Outlook, Owed, plan

seeds = st.integers(0, 2**32)
alphas = st.floats(0.05, 0.95)
backlogs = st.floats(-200.0, 200.0)
counts = st.integers(1, 6)


def rolled(seed: int, models: int) -> tuple[Matrix, Matrix, list[float]]:
    """Satisfactions, costs and hopes on 50 prompts, of models by rising mean cost."""
    random = np.random.default_rng(seed)
    satisfaction = random.random((50, models))
    cost = np.sort(10.0 ** random.uniform(-1, 1, models)) * random.uniform(0.5, 2.0, (50, models))
    order = np.argsort(cost.mean(axis=0))
    return satisfaction, cost[:, order], random.uniform(0.0, 0.3, models).tolist()


def outlook(seed: int, models: int) -> Outlook:
    return Outlook(*rolled(seed, models))


def identical(rates: Sequence[float], costs: Sequence[float], prompts: int = 40) -> Outlook:
    """Prompts that are all alike, of which the rates are known."""
    shape = prompts, len(rates)
    return Outlook(np.broadcast_to(rates, shape), np.broadcast_to(costs, shape), [0.0] * len(rates))


def bought(
    satisfaction: Matrix, cost: Matrix, models: Sequence[int], price: float
) -> tuple[float, float]:
    """By its definition: each prompt takes the model of least cost - price * satisfaction."""
    prompts = range(len(cost))
    chosen = [
        min(models, key=lambda model: cost[prompt, model] - price * satisfaction[prompt, model])
        for prompt in prompts
    ]
    return float(satisfaction[prompts, chosen].mean()), float(cost[prompts, chosen].mean())


@given(seeds, counts, st.floats(-0.2, 1.2))
def test_a_frontier_is_what_each_price_buys(seed: int, models: int, rate: float) -> None:
    """A higher price never buys less or costs less; between two it is interpolated."""
    satisfaction, cost, hope = rolled(seed, models)
    found = Outlook(satisfaction, cost, hope)
    hopeful, frontier = (found.frontier(range(models), is_hopeful=each) for each in (True, False))
    for each in (hopeful, frontier):
        for column in (each.prices, each.rates, each.costs):
            assert len(column) == len(PRICES)
            assert all(low <= high for low, high in pairwise(column))
    assert frontier.most - 1e-6 <= hopeful.most <= 1.0
    for chosen, line in ((range(models), frontier), (range(0, models, 2), None)):
        line = line or found.frontier(tuple(chosen), is_hopeful=False)
        for place in range(0, len(PRICES), 7):
            bought_rate, spent = bought(satisfaction, cost, chosen, line.prices[place])
            # Two that are as good as tied may change places by rounding.
            assert line.rates[place] == pytest.approx(bought_rate, abs=0.021)
            assert line.costs[place] == pytest.approx(spent, rel=0.05)
    point = frontier.at(rate)
    assert point.rate == pytest.approx(min(max(rate, frontier.rates[0]), frontier.most))
    assert 0.0 <= point.price <= frontier.prices[-1]
    assert frontier.costs[0] <= point.cost <= frontier.costs[-1] + 1e-9


def test_interpolation_by_hand() -> None:
    frontier = Frontier([0.0, 1.0, 3.0, 9.0], [0.2, 0.2, 0.6, 0.6], [1.0, 1.0, 5.0, 5.0])
    assert frontier.at(0.1) == frontier.at(0.2) == (0.0, 0.2, 1.0)
    assert frontier.at(0.3) == pytest.approx((1.5, 0.3, 2.0))
    assert frontier.at(0.6) == pytest.approx((3.0, 0.6, 5.0))
    assert frontier.at(0.9).rate == 0.6
    assert frontier.at(0.9).price <= 9.0


@given(seeds, counts, st.booleans())
def test_frontiers_at_once_are_those_on_demand(seed: int, models: int, is_hopeful: bool) -> None:
    """Of every beginning of the models by cost; the other outlook knows them in another order of
    its columns, so that it has to make what is requested."""
    satisfaction, cost, hope = rolled(seed, models)
    found = Outlook(satisfaction, cost, hope)
    for last in range(1, models + 1):
        alone = Outlook(satisfaction[:, :last], cost[:, :last], hope[:last])
        alone._prices = found._prices  # the same grid: it is of the dearest and the cheapest
        alone._frontiers.clear()
        again = alone.frontier(range(last), is_hopeful=is_hopeful)
        assert again == found.frontier(range(last), is_hopeful=is_hopeful)


@given(seeds, counts, alphas, backlogs, backlogs, st.data())
def test_with_more_to_repay_the_price_does_not_fall_and_it_is_bounded(
    seed: int, models: int, alpha: float, one: float, other: float, data: st.DataObject
) -> None:
    """Who may be called is decided by what it saves."""
    found = outlook(seed, models)
    by_cost = tuple(range(models))
    last = found.frontier(by_cost, is_hopeful=False).prices[-1]
    less, more = (plan(found, by_cost, by_cost, alpha, Owed(each)) for each in sorted((one, other)))
    assert less.models == more.models
    assert 0.0 <= plan(found, by_cost, by_cost, alpha, Owed(0.0)).price <= last
    assert less.price <= more.price <= np.exp(0.7) * last
    allowed = tuple(sorted(data.draw(st.sets(st.sampled_from(by_cost), min_size=1))))
    every, needed = (
        found.frontier(some, is_hopeful=True).at(alpha).cost for some in (by_cost, allowed)
    )
    expected = by_cost if every <= (1.0 - SAVING) * needed else allowed
    assert plan(found, by_cost, allowed, alpha, Owed(one)).models == expected


@given(backlogs, st.integers(0, 10_000), st.integers(0, 10_000), st.floats(-0.5, 0.5))
def test_a_debt_is_repaid_the_more_slowly_the_later_and_what_is_overrated_is_added(
    backlog: float, one: int, other: int, overrated: float
) -> None:
    """What predictions promise too little is not taken off: it is no reason to risk the promise."""
    early, late = (Owed(backlog, requests) for requests in sorted((one, other)))
    assert abs(late.raised) <= abs(early.raised) <= 0.2
    assert late.raised * backlog >= 0.0
    aware = late._replace(overrated=overrated)
    assert aware.raised - late.raised == pytest.approx(max(overrated, 0.0))


@given(st.floats(0.05, 0.4), st.floats(0.2, 0.5), st.floats(0.1, 5.0), st.floats(2.0, 50.0), alphas)
def test_where_all_prompts_are_alike_the_price_is_the_slope_between_two_models(
    low: float, more: float, cheap: float, factor: float, share: float
) -> None:
    """Within one step of the grid: alpha lies between their rates, so both have to serve."""
    rates, costs = (low, low + more), (cheap, cheap * factor)
    alpha = low + share * more
    slope = (costs[1] - costs[0]) / more
    price = plan(identical(rates, costs), (0, 1), (0, 1), alpha, Owed(0.0)).price
    step = float(PRICES[2] / PRICES[1])
    assert slope / step <= price * 1.001
    assert price <= slope * step * 1.001


def test_of_three_models_the_two_that_bracket_alpha_set_the_price() -> None:
    found = identical((0.3, 0.6, 0.9), (1.0, 4.0, 20.0))
    step = float(PRICES[2] / PRICES[1])
    for alpha, slope in ((0.45, 3.0 / 0.3), (0.75, 16.0 / 0.3)):
        price = plan(found, (0, 1, 2), (0, 1, 2), alpha, Owed(0.0)).price
        assert slope / step <= price <= slope * step


def test_where_prompts_differ_each_gets_the_model_that_is_worth_its_cost() -> None:
    """Half of the prompts are easy: the dear model serves the others alone, at their slope."""
    easy = np.arange(40) < 20
    satisfaction = np.column_stack([np.where(easy, 0.9, 0.1), np.full(40, 0.95)])
    cost = np.broadcast_to([1.0, 10.0], (40, 2))
    found = Outlook(satisfaction, cost, (0.0, 0.0))
    frontier = found.frontier((0, 1), is_hopeful=False)
    between = [n for n, price in enumerate(frontier.prices) if 9.0 / 0.85 < price < 9.0 / 0.05]
    assert len(between) > 5
    assert [frontier.costs[n] for n in between] == pytest.approx([5.5] * len(between))
    assert [frontier.rates[n] for n in between] == pytest.approx([0.925] * len(between))


def test_models_that_the_means_rule_out_are_called_where_they_save_enough() -> None:
    """The middle model holds alpha alone; the small and the large one together do so at less cost
    where prompts differ, and at no less where they do not."""
    easy = np.arange(40) < 30
    cost = np.broadcast_to([1.0, 8.0, 20.0], (40, 3))

    def planned(large: float) -> tuple[int, ...]:
        satisfaction = np.column_stack(
            [np.where(easy, 0.9, 0.1), np.full(40, 0.8), np.where(easy, 0.9, large)]
        )
        found = Outlook(satisfaction, cost, (0.0, 0.0, 0.0))
        return plan(found, (0, 1, 2), (1,), 0.8, Owed(0.0)).models

    assert planned(0.9) == (0, 1, 2)
    alike = identical((0.1, 0.8, 0.9), (1.0, 8.0, 20.0))
    assert plan(alike, (0, 1, 2), (1,), 0.8, Owed(0.0)).models == (1,)


def test_the_unit_of_cost_is_that_of_the_price() -> None:
    satisfaction, cost, hope = rolled(5, 3)
    plain, other = (Outlook(satisfaction, unit * cost, hope) for unit in (1.0, 2.0**-20))
    first, second = (plan(found, (0, 1, 2), (0, 1, 2), 0.7, Owed(3.0)) for found in (plain, other))
    assert second == (first.models, 2.0**-20 * first.price)


@pytest.mark.parametrize(
    ("rates", "costs"),
    [((0.4, 0.9), (1.0, 1.0)), ((0.5,), (3.0,)), ((0.0,), (3.0,)), ((1.0,), (3.0,))],
)
def test_one_cost_or_model_has_a_plan(rates: tuple[float, ...], costs: tuple[float, ...]) -> None:
    by_cost = tuple(reversed(range(len(rates))))
    planned = plan(identical(rates, costs), by_cost, by_cost, 0.7, Owed(-4.0))
    assert planned.models == by_cost
    assert np.isfinite(planned.price)
