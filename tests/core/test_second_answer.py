"""A second answer is called for where it is worth its cost, and never without a sign."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.core.answer_heads import Spread
from litellm_messplus.core.plan import Outlook
from litellm_messplus.core.second_answer import gains, gains_of, second, shares

MODELS = 3
chance = st.floats(0.02, 0.98)
costs = st.lists(st.floats(0.01, 2.0), min_size=MODELS, max_size=MODELS)
chances = st.lists(chance, min_size=MODELS, max_size=MODELS)
prices = st.floats(0.0, 50.0)


def spread(size: float, likeness: float = 0.3, margin: float = 0.0) -> Spread:
    scores = np.tile(np.linspace(-size, size, 10), (MODELS, 1))
    return Spread(scores, np.full((MODELS, MODELS), likeness), np.array([margin]), np.zeros(1))


@given(chances, costs, prices)
def test_answers_that_show_nothing_are_worth_exactly_nothing(
    known: list[float], cost: list[float], price: float
) -> None:
    for found in gains_of(known, cost, spread(0.0), price):
        assert not found.any()


@given(chances, costs, prices, st.floats(0.1, 3.0))
def test_what_reading_adds_is_never_less_than_nothing(
    known: list[float], cost: list[float], price: float, size: float
) -> None:
    value, rate, paid = gains_of(known, cost, spread(size), price)
    assert (value >= 0.0).all()
    assert np.allclose(value, price * rate - paid)


@given(chances, costs, prices, st.floats(0.0, 3.0))
def test_what_is_paid_is_the_cost_of_those_that_replace(
    known: list[float], cost: list[float], price: float, size: float
) -> None:
    found = shares(np.array([known]), np.array([cost]), spread(size), price)[0]
    paid = gains_of(known, cost, spread(size), price).cost[0, 0]
    assert np.allclose(found @ np.array(cost), paid)
    assert (found.diagonal() == 0.0).all()


@given(chances, costs, prices, st.integers(0, MODELS - 1))
def test_an_answer_that_looks_as_expected_is_kept(
    known: list[float], cost: list[float], price: float, first: int
) -> None:
    assert second(first, known[first], known, cost, spread(1.0), price) is None


def test_a_bad_answer_is_replaced_by_the_model_that_is_worth_most() -> None:
    known, cost = [0.7, 0.72, 0.9], [0.1, 0.3, 1.0]
    found = second(0, 0.1, known, cost, spread(1.0), 3.0)
    assert found is not None
    assert found.place == 2
    assert 0.1 < found.chance < 0.9  # the prompt is harder than it looked
    assert second(0, 0.1, known, cost, spread(1.0), 0.3) is None  # not at this price
    assert second(0, 0.65, known, cost, spread(1.0), 3.0) is None  # it does not look bad enough


@given(chances, costs, st.floats(0.1, 50.0))
def test_one_model_has_no_second(known: list[float], cost: list[float], price: float) -> None:
    alone = Spread(np.linspace(-3.0, 3.0, 10)[None], np.ones((1, 1)), np.zeros(1), np.zeros(1))
    assert not gains_of(known[:1], cost[:1], alone, price).value.any()
    assert second(0, 0.02, known[:1], cost[:1], alone, price) is None


@given(chances, costs, st.floats(0.1, 50.0), st.floats(0.1, 3.0))
def test_the_gain_is_that_of_the_answers_that_would_be_replaced(
    known: list[float], cost: list[float], price: float, size: float
) -> None:
    """What the plan expects of reading is what reading then does, quantile by quantile."""
    expected = gains_of(known, cost, spread(size), price)
    scores = np.linspace(-size, size, 10)
    for first in range(MODELS):
        odds = np.log(known[first] / (1.0 - known[first]))
        shown = 1.0 / (1.0 + np.exp(-(odds + scores)))
        shown = np.clip(shown + known[first] - shown.mean(), 0.01, 0.99)
        paid = rate = 0.0
        for each in shown.tolist():
            then = second(first, each, known, cost, spread(size), price)
            if then is not None:
                paid, rate = paid + cost[then.place] / 10, rate + (then.chance - each) / 10
        assert expected.cost[0, 0, first] == pytest.approx(paid, abs=1e-9)
        assert expected.rate[0, 0, first] == pytest.approx(rate, abs=1e-9)


def test_a_margin_keeps_more_answers() -> None:
    known, cost = [0.7, 0.72, 0.9], [0.1, 0.3, 1.0]
    assert second(0, 0.35, known, cost, spread(1.0), 3.0) is not None
    assert second(0, 0.35, known, cost, spread(1.0, margin=0.2), 3.0) is None


def test_the_frontier_with_reading_is_the_one_without_where_answers_show_nothing() -> None:
    draws = np.random.default_rng(0)
    rates, cost = draws.random((60, MODELS)), draws.random((60, MODELS)) * [1.0, 2.0, 4.0]
    without = Outlook(rates, cost, [0.0] * MODELS).frontier([0, 1, 2], is_hopeful=False)
    silent = Outlook(rates, cost, [0.0] * MODELS, spread(0.0))
    assert silent.frontier([0, 1, 2], is_hopeful=False) == without


def test_reading_buys_the_same_satisfaction_for_less() -> None:
    draws = np.random.default_rng(0)
    rates = np.clip(draws.normal([0.6, 0.7, 0.85], 0.05, (60, MODELS)), 0.05, 0.95)
    cost = np.tile([0.1, 0.3, 1.0], (60, 1))
    without = Outlook(rates, cost, [0.0] * MODELS).frontier([0, 1, 2], is_hopeful=False)
    read = Outlook(rates, cost, [0.0] * MODELS, spread(2.5)).frontier([0, 1, 2], is_hopeful=False)
    assert read.at(0.8).cost < 0.8 * without.at(0.8).cost
    assert read.rates == sorted(read.rates)


def test_gains_of_several_prompts_are_those_of_each() -> None:
    draws = np.random.default_rng(1)
    known, cost = draws.random((4, MODELS)), draws.random((4, MODELS))
    together = gains(known, cost, spread(2.0), np.array([1.0, 5.0]))
    for row in range(4):
        alone = gains(known[row : row + 1], cost[row : row + 1], spread(2.0), np.array([1.0, 5.0]))
        for found, wanted in zip(together, alone, strict=True):
            assert np.allclose(found[:, row], wanted[:, 0])
