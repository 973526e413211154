"""Reliability and the worth of reading, by hand."""

from math import log

import numpy as np
import pytest

from litellm_messplus.figures.interval import wilson
from litellm_messplus.status.calibration import (
    Bin,
    JudgedCall,
    Prequential,
    PromptGain,
    ReadingPays,
    Sums,
    log_loss,
)


def reading(calls: list[tuple[float, float, float]]) -> PromptGain:
    """The value of reading, by (predicted, mean, satisfaction) of each call."""
    return sum((Sums.of(*call) for call in calls), Sums()).reading()


def bins(*calls: tuple[float, float]) -> tuple[Bin, ...]:
    """The bins of one candidate, by (predicted, satisfaction) of each call."""
    prequential = Prequential()
    for place, (predicted, satisfaction) in enumerate(calls):
        prequential.add(JudgedCall("zoo", "small", place, place + 1, predicted, satisfaction))
    (zoo,) = prequential.calibration()
    return zoo.candidates[0].bins


def test_log_loss_by_hand() -> None:
    assert log_loss(0.8, 1.0) == pytest.approx(-log(0.8))
    assert log_loss(0.8, 0.0) == pytest.approx(-log(0.2))
    assert log_loss(0.8, 0.25) == pytest.approx(-0.25 * log(0.8) - 0.75 * log(0.2))


def test_one_surprise_is_bounded() -> None:
    assert log_loss(0.0, 1.0) == log_loss(1.0, 0.0) == pytest.approx(-log(0.01))


def test_bins_by_hand() -> None:
    low, high = bins((0.62, 1.0), (0.68, 0.0), (0.65, 0.5), (0.1, 1.0))
    interval = wilson(0.5, 3)

    assert interval is not None
    assert (low.low, low.high, low.calls, low.predicted, low.satisfied) == (0.1, 0.2, 1, 0.1, 1.0)
    assert (high.low, high.high, high.calls) == (0.6, 0.7, 3)
    assert (high.predicted, high.satisfied) == pytest.approx((0.65, 0.5))
    assert (high.satisfied_low, high.satisfied_high) == pytest.approx((interval.low, interval.high))


def test_certain_predictions_have_a_bin_too() -> None:
    found = bins((0.0, 0.0), (1.0, 1.0))

    assert [(each.low, each.high, each.calls) for each in found] == [(0.0, 0.1, 1), (0.9, 1.0, 1)]


def test_a_reading_is_means_and_the_interval_of_their_difference() -> None:
    generator = np.random.default_rng(0)
    predicted, mean = generator.uniform(0.05, 0.95, (2, 200))
    satisfied = (generator.random(200) < predicted).astype(float)

    found = reading(list(zip(predicted, mean, satisfied, strict=True)))

    def losses(probability: np.ndarray) -> np.ndarray:
        return -np.log(np.where(satisfied == 1.0, probability, 1.0 - probability))

    gains = losses(mean) - losses(predicted)
    half = 1.96 * gains.std(ddof=1) / np.sqrt(200)
    assert found.calls == 200
    assert found.log_loss == pytest.approx(losses(predicted).mean())
    assert found.log_loss_mean == pytest.approx(losses(mean).mean())
    assert found.gain == pytest.approx(gains.mean())
    assert (found.gain_low, found.gain_high) == pytest.approx(
        (gains.mean() - half, gains.mean() + half)
    )


def test_one_call_has_no_interval() -> None:
    found = reading([(0.7, 0.5, 1.0)])

    assert (found.gain_low, found.gain_high) == (None, None)
    assert found.reading_pays is ReadingPays.TOO_EARLY


def informed(calls: int) -> list[tuple[float, float, float]]:
    return [(0.8, 0.5, 1.0), (0.2, 0.5, 0.0)] * (calls // 2)


def test_reading_pays_where_it_surely_gains() -> None:
    assert reading(informed(100)).reading_pays is ReadingPays.YES


def test_a_few_calls_are_too_early_whatever_they_say() -> None:
    assert reading(informed(98)).reading_pays is ReadingPays.TOO_EARLY


def test_reading_does_not_pay_where_it_surely_gains_next_to_nothing() -> None:
    same = [(0.5, 0.5, 1.0), (0.5, 0.5, 0.0)] * 100
    worse = [(0.2, 0.5, 1.0), (0.8, 0.5, 0.0)] * 100

    assert reading(same).reading_pays is ReadingPays.NO
    assert reading(worse).reading_pays is ReadingPays.NO


def test_it_is_too_early_where_the_interval_spans_both() -> None:
    unclear = [(0.9, 0.5, 1.0), (0.9, 0.5, 1.0), (0.9, 0.5, 1.0), (0.9, 0.5, 0.0)] * 30

    found = reading(unclear)

    assert found.gain_low is not None
    assert found.gain_high is not None
    assert found.gain_low < 0.0 < found.gain_high
    assert found.reading_pays is ReadingPays.TOO_EARLY
