"""What is believed of weights: exact for a linear target, and never less sure by looking."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from litellm_messplus.core.head import BLOCK, Belief, Observed, Vector, correct, observe

WIDTH, PRIOR, NOISE = 6, 0.5, 0.3
seeds = st.integers(0, 2**32)


def drawn(seed: int, count: int, width: int = WIDTH) -> tuple[Vector, Vector]:
    """Rows of features, and a noisy linear target of them."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(count, width)).astype(np.float32)
    weights = random.normal(size=width)
    target = rows @ weights + NOISE**0.5 * random.normal(size=count)
    return rows, target.astype(np.float32)


def learn(belief: Belief, row: Vector, target: float) -> float:
    surprise = target - float(belief.mean @ row)
    return observe([Observed(belief, row)], surprise / NOISE, 1.0 / NOISE)


def taught_on(rows: Vector, target: Vector) -> Belief:
    belief = Belief(rows.shape[1], PRIOR)
    for row, value in zip(rows, target, strict=True):
        learn(belief, row, float(value))
    return belief


def taught(seed: int, count: int, width: int = WIDTH) -> Belief:
    return taught_on(*drawn(seed, count, width))


def regression(rows: Vector, target: Vector) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of Bayesian linear regression, in one step and in float64."""
    wide = rows.astype(np.float64)
    covariance = np.linalg.inv(np.eye(rows.shape[1]) / PRIOR + wide.T @ wide / NOISE)
    return covariance @ wide.T @ target / NOISE, covariance


def whole(belief: Belief) -> np.ndarray:
    """The covariance, with all that was observed taken off."""
    return np.array([belief.spread(row) for row in np.eye(len(belief.mean), dtype=np.float32)])


@example(seed=0, count=5000)
@given(seeds, st.integers(0, 60))
def test_observing_one_by_one_is_the_regression_on_all(seed: int, count: int) -> None:
    rows, target = drawn(seed, count)
    mean, covariance = regression(rows, target)
    belief = taught(seed, count)
    np.testing.assert_allclose(belief.mean, mean, atol=2e-4 if count < 100 else 1e-3)
    np.testing.assert_allclose(whole(belief), covariance, atol=2e-4)


@given(seeds)
def test_the_variance_expected_of_an_observation_is_that_of_the_regression(seed: int) -> None:
    rows, target = drawn(seed, 20)
    _, covariance = regression(rows[:-1], target[:-1])
    found = learn(taught_on(rows[:-1], target[:-1]), rows[-1], float(target[-1]))
    assert found == pytest.approx(float(rows[-1] @ covariance @ rows[-1]), abs=1e-3, rel=1e-3)


@given(seeds)
def test_no_observation_makes_a_weight_less_sure(seed: int) -> None:
    belief = Belief(WIDTH, PRIOR)
    probes = drawn(seed + 1, 5)[0]
    before = np.full(len(probes), np.inf)
    for row, target in zip(*drawn(seed, 3 * BLOCK + 1), strict=True):
        learn(belief, row, float(target))
        now = np.array([float(each @ belief.spread(each)) for each in probes])
        assert (now <= before + 1e-5).all()
        assert (now > 0.0).all()
        before = now


@given(seeds, st.integers(0, 4 * BLOCK), st.sampled_from([1, WIDTH, 205, 256]))
def test_the_covariance_is_symmetric_to_the_bit(seed: int, count: int, width: int) -> None:
    """Of a snapshot only one half is kept."""
    covariance = taught(seed, count, width).covariance
    assert covariance.tobytes() == covariance.T.copy().tobytes()


@given(seeds, st.integers(0, 19), st.floats(-5.0, 5.0))
def test_correcting_is_having_learned_the_other_value(seed: int, place: int, value: float) -> None:
    rows, target = drawn(seed, 20)
    corrected = taught_on(rows, target)
    difference = (value - float(target[place])) / NOISE
    correct([Observed(corrected, rows[place])], difference)
    target[place] = value
    direct = taught_on(rows, target)
    np.testing.assert_allclose(corrected.mean, direct.mean, atol=5e-4)
    assert whole(corrected).tobytes() == whole(direct).tobytes()


def test_two_beliefs_share_a_surprise_by_their_uncertainty() -> None:
    """Each as if the other were noise; the one that is less sure takes more."""
    bold, cautious = Belief(WIDTH, 0.9), Belief(WIDTH, 0.1)
    row = drawn(0, 1)[0][0]
    observe([Observed(bold, row), Observed(cautious, row)], 2.0 / NOISE, 1.0 / NOISE)
    assert bold.mean == pytest.approx(9.0 * cautious.mean, rel=1e-5)
    predicted = float((bold.mean + cautious.mean) @ row)
    length = float(row @ row)
    assert predicted == pytest.approx(2.0 * length / (length + NOISE), rel=1e-5)


@given(seeds, st.integers(0, 3 * BLOCK))
def test_what_was_saved_goes_on_to_the_bit(seed: int, count: int) -> None:
    belief, loaded = taught(seed, count), Belief(WIDTH, 7.0)
    numbers = belief.numbers()
    assert numbers.dtype == np.float32
    loaded.load(numbers)
    assert loaded.numbers().tobytes() == numbers.tobytes()
    for row, target in zip(*drawn(seed + 1, BLOCK + 1), strict=True):
        for each in (belief, loaded):
            learn(each, row, float(target))
            correct([Observed(each, row)], 0.25)
    assert loaded.mean.tobytes() == belief.mean.tobytes()
    assert loaded.numbers().tobytes() == belief.numbers().tobytes()
    assert whole(loaded).tobytes() == whole(belief).tobytes()


@pytest.mark.parametrize("other", [1, WIDTH - 1, WIDTH + 1])
def test_a_belief_of_another_width_is_refused(other: int) -> None:
    with pytest.raises(ValueError, match=f"not of width {WIDTH}"):
        Belief(WIDTH, PRIOR).load(Belief(other, PRIOR).numbers())
