"""Judged calls against the running means of their moment."""

import random
from collections.abc import Iterable

import pytest

from litellm_messplus.prediction.head import Label
from litellm_messplus.prediction.predictor import Predictor
from litellm_messplus.prediction.prompt import Prompt
from litellm_messplus.status.calibration import (
    JudgedCall,
    Prequential,
    ReadingPays,
    ZooCalibration,
    log_loss,
)


def calibration(calls: Iterable[JudgedCall]) -> list[ZooCalibration]:
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
    """What a predictor that cannot read says of each call at its decision."""
    predictor = Predictor(("large", "small"), 1)
    said = []
    waiting = list(calls)
    for call in calls:
        for due in sorted(waiting, key=lambda each: each.known_at):
            if due.known_at < call.decided_at:
                waiting.remove(due)
                call_id = str(due.decided_at)
                label = Label(due.satisfaction)
                predictor.learn(due.candidate, call_id, call_id, Prompt(None), label)
        said.append(predictor.satisfaction(Prompt(None))[predictor.index[call.candidate]])
    return said


@pytest.mark.parametrize("delay", [0, 7])
def test_the_means_are_those_that_the_router_falls_back_to(delay: int) -> None:
    calls = traffic(300, delay=delay)
    expected = [
        log_loss(mean, call.satisfaction)
        for mean, call in zip(means_of_the_router(calls), calls, strict=True)
    ]

    (found,) = calibration(calls)

    assert found.reading.log_loss_mean == pytest.approx(sum(expected) / 300)


def test_verdicts_that_never_came_in_time_teach_nothing() -> None:
    calls = traffic(50, delay=1000)

    (found,) = calibration(calls)

    first = [log_loss(0.7, call.satisfaction) for call in calls]
    assert found.reading.log_loss_mean == pytest.approx(sum(first) / 50)


def test_what_tells_prompts_apart_pays_and_what_does_not_does_not() -> None:
    (informed,) = calibration(traffic(500))
    (blind,) = calibration(traffic(500, is_informed=False))

    assert informed.reading.reading_pays is ReadingPays.YES
    assert informed.reading.gain > 0.2
    assert blind.reading.reading_pays is ReadingPays.NO


def test_candidates_add_up_to_the_zoo() -> None:
    (found,) = calibration(traffic(200))
    parts = found.candidates

    assert [part.candidate for part in parts] == ["large", "small"]
    assert sum(part.reading.calls for part in parts) == found.reading.calls == 200
    assert sum(part.reading.gain * part.reading.calls for part in parts) == pytest.approx(
        found.reading.gain * 200
    )
    for part in parts:
        assert sum(each.calls for each in part.bins) == part.reading.calls


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

    assert found.reading.calls == 1
    assert found.reading.log_loss_mean < 0.1  # a hundred misses are known: 0.7 would lose 1.2
    assert calibration(calls[:99]) == []
