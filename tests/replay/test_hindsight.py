"""The yardsticks against brute force."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from litellm_messplus.replay.summary import educated_guess, mix_cost, oracle_cost

Matrix = NDArray[np.float64]


@st.composite
def zoos(draw: st.DrawFn, most_requests: int = 5) -> tuple[Matrix, Matrix]:
    requests, models = draw(st.integers(1, most_requests)), draw(st.integers(2, 3))
    shape = (requests, models)
    cells = requests * models
    satisfied = draw(st.lists(st.booleans(), min_size=cells, max_size=cells))
    cost = draw(st.lists(st.integers(0, 20), min_size=cells, max_size=cells))
    return np.array(satisfied, dtype=float).reshape(shape), np.array(cost, dtype=float).reshape(
        shape
    )


alphas = st.sampled_from([0.05, 0.2, 0.34, 0.5, 0.6, 0.75, 0.9, 0.99])


@given(zoos(), alphas)
def test_no_assignment_is_cheaper_than_the_oracle(zoo: tuple[Matrix, Matrix], alpha: float) -> None:
    satisfied, cost = zoo
    requests = np.arange(len(cost))
    results = []
    for choice in product(range(cost.shape[1]), repeat=len(cost)):
        chosen = list(choice)
        results.append((satisfied[requests, chosen].sum(), cost[requests, chosen].sum()))
    most = max(count for count, _ in results)
    needed = min(np.ceil(alpha * len(cost) - 1e-9), most)

    assert oracle_cost(satisfied, cost, alpha) == pytest.approx(
        min(total for count, total in results if count >= needed)
    )


@given(zoos(most_requests=8), alphas)
def test_no_fine_mix_is_cheaper_than_hindsights(zoo: tuple[Matrix, Matrix], alpha: float) -> None:
    satisfied, cost = zoo
    rates, costs = satisfied.mean(axis=0), cost.sum(axis=0)
    found = mix_cost(satisfied, cost, alpha)
    if rates.max() < alpha:
        assert found == costs[rates == rates.max()].min()
        return

    mixes = np.array(
        [mix for mix in product(np.linspace(0, 1, 41), repeat=len(rates)) if sum(mix) > 0]
    )
    mixes /= mixes.sum(axis=1, keepdims=True)
    meeting = mixes[mixes @ rates >= alpha - 1e-12]

    assert found <= (meeting @ costs).min() + 1e-9


@given(zoos(most_requests=8), alphas)
def test_the_hindsight_mix_meets_alpha(zoo: tuple[Matrix, Matrix], alpha: float) -> None:
    """Some mix of two models costs that and meets alpha."""
    satisfied, cost = zoo
    rates, costs = satisfied.mean(axis=0), cost.sum(axis=0)
    if rates.max() < alpha:
        return
    found = mix_cost(satisfied, cost, alpha)
    pairs = [(low, high) for low in range(len(rates)) for high in range(len(rates))]
    shares = np.linspace(0.0, 1.0, 2001)

    assert any(
        (
            (np.abs(costs[low] + shares * (costs[high] - costs[low]) - found) <= 0.1)
            & (rates[low] + shares * (rates[high] - rates[low]) >= alpha - 1e-3)
        ).any()
        for low, high in pairs
    )


def test_educated_guessing_stays_uniform_where_that_is_enough() -> None:
    assert educated_guess(np.array([0.4, 0.6, 0.8]), 0.6) == pytest.approx([1 / 3] * 3)


def test_educated_guessing_moves_to_better_models_until_alpha_is_met() -> None:
    rates = np.array([0.4, 0.6, 0.8])

    shares = educated_guess(rates, 0.7)

    assert shares is not None
    assert shares.sum() == pytest.approx(1.0)
    assert 0.7 - 1e-6 <= shares @ rates < 0.702
    assert shares[2] > 1 / 3 > shares[1] >= shares[0] > 0.0


def test_educated_guessing_by_hand() -> None:
    """From equal shares, one step: 1 % more for the better model, 1 % less for the other."""
    shares = educated_guess(np.array([0.0, 1.0]), 0.505)

    assert shares == pytest.approx([0.99 / 2.0, 1.01 / 2.0])


def test_educated_guessing_gives_up_out_of_reach() -> None:
    assert educated_guess(np.array([0.4, 0.6]), 0.61) is None
