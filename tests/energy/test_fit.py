"""The fit recovers what a token costs, says how far off it is, and refuses what says nothing."""

from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.energy.measure import Grid
from litellm_messplus.energy.meter import FitError
from litellm_messplus.energy.profile import Sample, fit

joules = st.floats(min_value=1e-3, max_value=10.0)
GRID = Grid(concurrency=(4,), repeats=2)


def windows(
    costs: tuple[float, float, float], noise: float = 0.0, seed: int = 0, grid: Grid = GRID
) -> list[Sample]:
    """Every window of the grid, of 3 to 20 requests, with relative noise."""
    draw = np.random.default_rng(seed)
    found = []
    for cell in grid.cells():
        requests = int(draw.integers(3, 21))
        work = (requests * cell.prompt_tokens, requests * cell.completion_tokens, requests)
        exact = sum(cost * each for cost, each in zip(costs, work, strict=True))
        found.append(Sample(cell, *work, exact * float(draw.normal(1.0, noise))))
    return found


@given(st.tuples(joules, joules, joules))
def test_without_noise_the_costs_are_recovered_exactly(costs: tuple[float, float, float]) -> None:
    found = fit(windows(costs))

    assert astuple(found.coefficients) == pytest.approx(costs, rel=1e-6)
    assert found.relative_error < 1e-6
    assert found.windows == len(GRID.cells())


@given(st.integers(min_value=0, max_value=2**31))
def test_under_noise_the_costs_of_tokens_are_recovered_within_a_tenth(seed: int) -> None:
    found = fit(windows((0.05, 0.5, 2.0), noise=0.01, seed=seed))

    assert found.coefficients.joules_per_prompt_token == pytest.approx(0.05, rel=0.1)
    assert found.coefficients.joules_per_completion_token == pytest.approx(0.5, rel=0.1)


@given(
    st.lists(joules, min_size=len(GRID.cells()), max_size=len(GRID.cells())),
    st.integers(min_value=0, max_value=2**31),
)
def test_no_cost_is_below_zero_whatever_was_read(read: list[float], seed: int) -> None:
    samples = [
        Sample(each.cell, each.prompt_tokens, each.completion_tokens, each.requests, energy)
        for each, energy in zip(windows((1.0, 1.0, 1.0), seed=seed), read, strict=True)
    ]

    found = fit(samples)

    assert min(astuple(found.coefficients)) >= 0
    assert max(astuple(found.coefficients)) > 0


def test_the_relative_error_is_that_of_windows_the_fit_has_not_seen() -> None:
    """With 8 % of noise, each cell is predicted about that far off by the others."""
    errors = [fit(windows((0.05, 0.5, 2.0), 0.08, seed)).relative_error for seed in range(40)]

    assert 0.07 < np.mean(errors) < 0.11


def test_standard_errors_are_the_spread_of_the_estimates() -> None:
    costs = (0.05, 0.5, 20.0)
    fits = [fit(windows(costs, 0.05, seed)) for seed in range(200)]

    spread = np.std([astuple(each.coefficients) for each in fits], axis=0)
    stated = np.mean([astuple(each.standard_errors) for each in fits], axis=0)
    assert stated == pytest.approx(spread, rel=0.25)


def test_a_cost_of_zero_stays_zero_and_the_others_do_not_suffer() -> None:
    found = fit(windows((0.05, 0.5, 0.0))).coefficients

    assert found.joules_per_request == pytest.approx(0.0, abs=1e-9)
    assert found.joules_per_completion_token == pytest.approx(0.5)


def test_too_few_windows_are_an_error_that_says_how_many() -> None:
    with pytest.raises(FitError, match="5 windows can be used, and 6 are the least"):
        fit(windows((0.05, 0.5, 2.0))[:5])


def test_windows_of_one_length_do_not_tell_the_costs_apart() -> None:
    (first, *_) = windows((0.05, 0.5, 2.0))

    with pytest.raises(FitError, match="apart"):
        fit([first] * 8)


def test_an_endpoint_that_counts_no_completion_tokens_is_refused() -> None:
    samples = [
        Sample(each.cell, each.prompt_tokens, 0, each.requests, each.joules)
        for each in windows((0.05, 0.5, 2.0))
    ]

    with pytest.raises(FitError, match="apart"):
        fit(samples)
