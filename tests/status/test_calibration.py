"""Reliability and the worth of reading, by hand; and judged calls against the means of their
moment."""

import random
from collections.abc import Iterable
from math import log

import numpy as np
import pytest

from litellm_messplus.core.head import Label
from litellm_messplus.core.predictor import Predictor
from litellm_messplus.core.prompt import Prompt
from litellm_messplus.figures.figure import Plain, part
from litellm_messplus.figures.interval import wilson
from litellm_messplus.status.calibration import (
    READING,
    JudgedCall,
    Prequential,
    ReadingPays,
    Sums,
    log_loss,
)


def reading(calls: list[tuple[float, float, float]]) -> Plain:
    """The value of reading, by (predicted, mean, satisfaction) of each call."""
    return part(READING, sum((Sums.of(*call) for call in calls), Sums()))


def bins(*calls: tuple[float, float]) -> list[Plain]:
    """The bins of one candidate, by (predicted, satisfaction) of each call."""
    places = enumerate(calls)
    (zoo,) = calibration(JudgedCall("zoo", "small", at, at + 1, *call) for at, call in places)
    found: list[Plain] = zoo["candidates"][0]["bins"]
    return found


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
    assert list(low.values())[:5] == [0.1, 0.2, 1, 0.1, 1.0]
    assert list(high.values())[:3] == [0.6, 0.7, 3]
    assert (high["predicted"], high["satisfied"]) == pytest.approx((0.65, 0.5))
    assert (high["satisfied_low"], high["satisfied_high"]) == pytest.approx(
        (interval.low, interval.high)
    )


def test_certain_predictions_have_a_bin_too() -> None:
    found = bins((0.0, 0.0), (1.0, 1.0))

    assert [list(each.values())[:3] for each in found] == [[0.0, 0.1, 1], [0.9, 1.0, 1]]


def test_a_reading_is_means_and_the_interval_of_their_difference() -> None:
    generator = np.random.default_rng(0)
    predicted, mean = generator.uniform(0.05, 0.95, (2, 200))
    satisfied = (generator.random(200) < predicted).astype(float)

    found = reading(list(zip(predicted, mean, satisfied, strict=True)))

    def losses(probability: np.ndarray) -> np.ndarray:
        return -np.log(np.where(satisfied == 1.0, probability, 1.0 - probability))

    gains = losses(mean) - losses(predicted)
    half = 1.96 * gains.std(ddof=1) / np.sqrt(200)
    assert found["log_loss"] == pytest.approx(losses(predicted).mean())
    assert found["log_loss_mean"] == pytest.approx(losses(mean).mean())
    assert found["gain"] == pytest.approx(gains.mean())
    assert (found["gain_low"], found["gain_high"]) == pytest.approx(
        (gains.mean() - half, gains.mean() + half)
    )


def test_one_call_has_no_interval() -> None:
    found = reading([(0.7, 0.5, 1.0)])

    assert (found["gain_low"], found["gain_high"]) == (None, None)
    assert found["reading_pays"] is ReadingPays.TOO_EARLY


SURE = [(0.8, 0.5, 1.0), (0.2, 0.5, 0.0)]
"""A pair of calls that reading predicts, and the mean does not."""


@pytest.mark.parametrize(
    ("calls", "pays"),
    [
        (SURE * 50, ReadingPays.YES),
        (SURE * 49, ReadingPays.TOO_EARLY),
        ([(0.5, 0.5, 1.0), (0.5, 0.5, 0.0)] * 100, ReadingPays.NO),
        ([(0.2, 0.5, 1.0), (0.8, 0.5, 0.0)] * 100, ReadingPays.NO),
        ([*[(0.9, 0.5, 1.0)] * 3, (0.9, 0.5, 0.0)] * 30, ReadingPays.TOO_EARLY),
    ],
    ids=["it surely gains", "of few calls", "it gains nothing", "it loses", "it may do both"],
)
def test_reading_pays_where_it_surely_gains(
    calls: list[tuple[float, float, float]], pays: ReadingPays
) -> None:
    assert reading(calls)["reading_pays"] is pays


# Judged calls against the running means.


def calibration(calls: Iterable[JudgedCall]) -> list[Plain]:
    prequential = Prequential()
    for call in calls:
        prequential.add(call)
    return prequential.calibration()


def traffic(
    requests: int, *, delay: int = 0, is_informed: bool = True, zoo: str = "zoo"
) -> list[JudgedCall]:
    """Each prompt is easy or hard; a verdict comes so many requests after its own. Predictions
    that are not informed are of another prompt."""
    generator = random.Random(0)
    calls = []
    for request in range(requests):
        truth, other = generator.choice((0.1, 0.9)), generator.choice((0.1, 0.9))
        calls.append(
            JudgedCall(
                zoo=zoo,
                candidate=generator.choice(("small", "large")),
                decided_at=10 * request,
                known_at=10 * (request + delay) + 1,
                predicted=truth if is_informed else other,
                satisfaction=float(generator.random() < truth),
            )
        )
    return calls


def means_of_the_router(calls: list[JudgedCall]) -> list[float]:
    """What a predictor that cannot read predicts of each call at its decision."""
    predictor = Predictor(("large", "small"), 1)
    predicted = []
    waiting = list(calls)
    for call in calls:
        for due in sorted(waiting, key=lambda each: each.known_at):
            if due.known_at < call.decided_at:
                waiting.remove(due)
                call_id = str(due.decided_at)
                label = Label(due.satisfaction)
                predictor.learn(due.candidate, call_id, call_id, Prompt(None), label)
        predicted.append(predictor.satisfaction(Prompt(None))[predictor.index[call.candidate]])
    return predicted


@pytest.mark.parametrize("delay", [0, 7])
def test_the_means_are_those_that_the_router_falls_back_to(delay: int) -> None:
    calls = traffic(300, delay=delay)
    expected = [
        log_loss(mean, call.satisfaction)
        for mean, call in zip(means_of_the_router(calls), calls, strict=True)
    ]

    (found,) = calibration(calls)

    assert found["reading"]["log_loss_mean"] == pytest.approx(sum(expected) / 300)


def test_verdicts_that_never_came_in_time_teach_nothing() -> None:
    calls = traffic(50, delay=1000)

    (found,) = calibration(calls)

    first = [log_loss(0.7, call.satisfaction) for call in calls]
    assert found["reading"]["log_loss_mean"] == pytest.approx(sum(first) / 50)


def test_what_tells_prompts_apart_pays_and_what_does_not_does_not() -> None:
    (informed,) = calibration(traffic(500))
    (blind,) = calibration(traffic(500, is_informed=False))

    assert informed["reading"]["reading_pays"] is ReadingPays.YES
    assert informed["reading"]["gain"] > 0.2
    assert blind["reading"]["reading_pays"] is ReadingPays.NO


def test_candidates_add_up_to_the_zoo() -> None:
    (found,) = calibration(traffic(200))
    parts = found["candidates"]

    assert [each["candidate"] for each in parts] == ["large", "small"]
    readings = [each["reading"] for each in parts]
    assert sum(each["calls"] for each in readings) == found["reading"]["calls"] == 200
    gains = sum(each["gain"] * each["calls"] for each in readings)
    assert gains == pytest.approx(found["reading"]["gain"] * 200)
    for each in parts:
        assert sum(bin["calls"] for bin in each["bins"]) == each["reading"]["calls"]


def test_zoos_know_nothing_of_each_other() -> None:
    first, second = traffic(100), traffic(100, is_informed=False, zoo="another")
    both = [call for pair in zip(first, second, strict=True) for call in pair]

    assert calibration(both) == [*calibration(second), *calibration(first)]


def test_what_is_not_scored_only_teaches() -> None:
    calls = [
        JudgedCall("zoo", "small", 10 * place, 10 * place + 1, 0.5, 0.0, is_scored=place == 99)
        for place in range(100)
    ]

    (found,) = calibration(calls)

    assert found["reading"]["calls"] == 1
    assert found["reading"]["log_loss_mean"] < 0.1  # a hundred misses are known: 0.7 would lose 1.2
    assert calibration(calls[:99]) == []
