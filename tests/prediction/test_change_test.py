"""A model that becomes worse is found out; one that stays as it is is left alone."""

import random

import pytest

from litellm_messplus.prediction.head import Label
from litellm_messplus.prediction.rates import KNOWN, DriftTest, FadingRate


def labels(rate: float, count: int, seed: int) -> list[float]:
    draws = random.Random(seed)
    return [float(draws.random() < rate) for _ in range(count)]


@pytest.mark.parametrize("seed", range(5))
def test_after_a_drop_the_mean_starts_again_from_the_labels_since(seed: int) -> None:
    mean = FadingRate()
    for label in labels(0.85, 600, seed):
        mean.add(label)
    for label in labels(0.45, 200, seed + 100):
        mean.add(label)
    assert mean.restarted < 0.0
    assert mean.weight < 260
    assert mean.total / mean.weight == pytest.approx(0.45, abs=0.15)


@pytest.mark.parametrize("rate", [0.4, 0.7, 0.95])
def test_ordinary_luck_hardly_ever_raises_an_alarm(rate: float) -> None:
    alarms = 0
    for seed in range(20):
        mean = FadingRate()
        for label in labels(rate, 1500, seed):
            mean.add(label)
        alarms += mean.restarted < 0.0
    assert alarms <= 2  # in 30,000 labels


def test_a_model_that_becomes_better_raises_no_alarm() -> None:
    mean = FadingRate()
    for label in [*labels(0.4, 500, 1), *labels(0.9, 500, 2)]:
        mean.add(label)
    assert mean.restarted == 0.0


def test_a_rate_that_rests_on_little_cannot_be_out_of_date() -> None:
    test = DriftTest()
    known = [1.0] * (int(KNOWN) - 1)
    assert not any(test.add(0.0, 1.0, len(known), sum(known), 1.0) for _ in range(3))
    assert test.evidence == 0.0


def test_a_label_from_before_the_restart_is_revised_without_effect() -> None:
    mean = FadingRate()
    marks = [mean.add(label) for label in [1.0] * 300 + [0.0] * 60]
    assert mean.restarted < 0.0
    before = (mean.weight, mean.total)
    mean.revise(marks[0], Label(1.0), Label(0.0))
    assert (mean.weight, mean.total) == before
    mean.revise(marks[-1], Label(0.0), Label(1.0))
    assert mean.total > before[1]
