"""Confidence sequences: right at every look, narrow enough, and the same whatever the order."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from litellm_messplus.certificate.sequence import (
    GRID,
    LEAST_PROBABILITY,
    SampledSums,
    Vector,
    cost,
    is_surely_below,
    least_made,
    rate_bounds,
)

MADE = -math.log(0.05)
shares = st.floats(0.0, 1.0)
errors = st.floats(-1.0, 1.0)
probabilities = st.floats(LEAST_PROBABILITY, 1.0)


def one(value: float) -> Vector:
    return np.array([value])


@given(errors, probabilities, st.floats(0.01, 0.9))
def test_a_bet_is_fair_in_expectation(error: float, probability: float, stake: float) -> None:
    """The equation on which everything rests, for errors of both signs and all probabilities."""
    rate = one(stake * -math.log1p(-min(probability, 0.999)))
    paid = float(cost(rate, one(error), one(probability))[0, 0])
    seen = math.exp(float(rate[0]) * error * (1.0 / probability - 1.0) - paid)
    unseen = math.exp(-float(rate[0]) * error)

    assert probability * seen + (1.0 - probability) * unseen == pytest.approx(1.0)


@pytest.mark.parametrize("probability", [0.02, 0.3, 0.9])
@pytest.mark.parametrize("rate", [0.1, 0.5, 0.95])
def test_the_truth_is_inside_at_every_look(probability: float, rate: float) -> None:
    generator = np.random.default_rng(1)
    streams, every = 1000, 50
    sums = SampledSums(np.full(streams, probability))
    truth, is_inside = np.zeros(streams), np.ones(streams, dtype=np.bool_)
    for _ in range(60):
        error = (generator.random((streams, every)) < rate) - 0.6
        is_seen = generator.random((streams, every)) < probability
        for value in (0.4, -0.6):
            count = ((error == value) & is_seen).sum(axis=1).astype(float)
            sums.add(np.full(streams, value), np.full(streams, probability), count)
        truth += error.sum(axis=1)
        low, high = sums.bounds(MADE)
        is_inside &= (low <= truth) & (truth <= high)

    assert is_inside.mean() >= 0.95


def test_an_interval_for_one_look_is_left_at_some_look() -> None:
    """What the sequence is for: 1.96 standard errors, looked at again and again, do not hold."""
    generator = np.random.default_rng(1)
    draws = (generator.random((1000, 5000)) < 0.8).astype(float)
    counts = np.arange(1, 5001)
    error = np.abs(draws.cumsum(axis=1) / counts - 0.8)[:, 99::100]
    is_left = error > 1.96 * 0.4 / np.sqrt(counts[99::100])

    assert is_left.any(axis=1).mean() > 0.2


@pytest.mark.parametrize("labels", [50, 500, 50_000])
def test_it_is_at_most_twice_as_wide_as_an_interval_for_one_look(labels: int) -> None:
    probability = 0.02
    sums = SampledSums(one(probability))
    for error, share in ((0.2, 0.8), (-0.8, 0.2)):
        sums.add(one(error), one(probability), one(labels * share))
    low, high = sums.bounds(MADE)
    requests = labels / probability
    once = 2 * 1.96 * math.sqrt(0.16 * (1 - probability) / labels) * requests

    assert once < float(high[0] - low[0]) < 2.0 * once


def test_nothing_is_open_where_every_request_was_sure_to_be_labelled() -> None:
    sums = SampledSums(one(1.0))
    for error in (0.2, -0.8):
        sums.add(one(error), one(1.0), one(100.0))
    low, high = sums.bounds(MADE)

    assert low == pytest.approx(-60.0, abs=0.5)
    assert high == pytest.approx(-60.0, abs=0.5)


@given(st.lists(st.tuples(errors, st.floats(0.1, 1.0)), min_size=1, max_size=20))
def test_the_order_of_the_labels_changes_nothing(labels: list[tuple[float, float]]) -> None:
    found = []
    for order in (labels, labels[::-1]):
        sums = SampledSums(one(0.1))
        for error, probability in order:
            sums.add(one(error), one(probability), one(1.0))
        found.append(sums.bounds(MADE))

    assert found[0][0] == pytest.approx(found[1][0])
    assert found[0][1] == pytest.approx(found[1][1])


@given(st.floats(0.5, 0.99), st.floats(0.5, 0.99))
def test_more_confidence_widens_around_the_same_estimate(first: float, second: float) -> None:
    sums = SampledSums(one(0.1))
    sums.add(one(0.3), one(0.1), one(40.0))
    (low, high), (lower, higher) = (
        sums.bounds(-math.log(1.0 - level)) for level in sorted((first, second))
    )

    assert lower[0] <= low[0] <= sums.estimate[0] <= high[0] <= higher[0]


def test_the_memory_is_the_same_after_a_million_labels_as_after_one() -> None:
    sums = SampledSums(one(0.1))
    sizes = []
    for count in (1.0, 1e6):
        sums.add(one(0.3), one(0.1), one(count))
        sizes.append(sum(value.size for value in vars(sums).values()))

    assert sizes[0] == sizes[1] <= 4 * GRID


@pytest.mark.parametrize("probability", [0.05, 1.5])
def test_a_label_less_likely_than_announced_is_refused(probability: float) -> None:
    with pytest.raises(ValueError, match="less likely than announced"):
        SampledSums(one(0.1)).add(one(0.3), one(probability), one(1.0))


@pytest.mark.parametrize("rate", [0.02, 0.5, 0.9])
def test_a_rate_is_inside_at_every_look(rate: float) -> None:
    generator = np.random.default_rng(2)
    yes = (generator.random((2000, 1000)) < rate).cumsum(axis=1)[:, 9::30].astype(float)
    trials = np.broadcast_to(np.arange(10.0, 1001.0, 30.0), yes.shape)
    low, high = rate_bounds(yes, trials, MADE)

    assert ((low <= rate) & (rate <= high)).all(axis=1).mean() >= 0.95


@given(st.integers(0, 500), st.integers(0, 500))
def test_a_rate_is_between_0_and_1_around_the_share_seen(yes: int, no: int) -> None:
    low, high = rate_bounds(one(float(yes)), one(float(yes + no)), MADE)

    assert 0.0 <= low[0] <= yes / max(yes + no, 1) <= high[0] <= 1.0 or yes + no == 0
    assert least_made(one(float(yes)), one(float(yes + no)))[0] <= 1e-9


def test_without_a_trial_any_rate_may_be() -> None:
    low, high = rate_bounds(one(0.0), one(0.0), MADE)

    assert (low[0], high[0]) == (0.0, 1.0)


@given(st.integers(0, 400), st.integers(0, 400), st.floats(0.01, 0.99))
def test_a_rate_is_surely_below_where_its_bound_is(yes: int, no: int, rate: float) -> None:
    seen, trials = one(float(yes)), one(float(yes + no))
    _, high = rate_bounds(seen, trials, MADE)
    assume(abs(rate - high[0]) > 1e-6)

    assert is_surely_below(seen, trials, rate, MADE)[0] == (high[0] < rate)
