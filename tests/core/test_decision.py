"""What every policy rests on: draws, p_t, the virtual queue, and the aim where labels are not the
whole truth."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.certificate.evidence import LabelGroup, bounds
from litellm_messplus.core.decision import (
    after,
    aim,
    exploration_probability,
    label_weight,
    raised,
    surplus,
)
from litellm_messplus.core.engine import Question
from litellm_messplus.runtime.draws import uniform
from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.settings.load import load_settings
from tests.support.builders import build_engine, build_zoo, labelled, point

alphas = st.floats(0.05, 0.95)
verdicts = st.floats(0.0, 1.0)
counts = st.integers(0, 10**6)
shares = st.floats(0.01, 1.0)
confidences = st.floats(0.5, 0.999)


@pytest.mark.parametrize(
    ("t", "c", "expected"),
    [
        (1, 0.1, 0.1),
        (16, 0.1, 0.05),  # 16^(1/4) = 2
        (81, 0.3, 0.1),  # 81^(1/4) = 3
        (16, 2.0, 1.0),  # 2 / 2, just certain
        (2, 5.0, 1.0),  # more than certain is certain
        (7, 0.0, 0.0),
    ],
)
def test_probability_is_c_over_the_fourth_root_of_t(t: int, c: float, expected: float) -> None:
    assert exploration_probability(t, c) == pytest.approx(expected, rel=1e-12)
    assert exploration_probability(t + 1, c) <= exploration_probability(t, c)


# Draws


@given(st.integers(), st.text(), st.integers(1, 10**12))
def test_a_draw_is_half_open_and_repeatable(seed: int, stream: str, t: int) -> None:
    """And the same in every process: logs and replays rest on it."""
    assert 0.0 <= uniform(seed, stream, t) == uniform(seed, stream, t) < 1.0
    assert uniform(7, "zoo/default", 3) == 0.04881457708066561


def test_draws_are_uniform_and_independent() -> None:
    """Kolmogorov-Smirnov over one stream: at 20,000 draws, 1.95 / sqrt(n) is one in a thousand. The
    correlation of 2,000 independent uniforms is below 0.08 but once in 3,000 times."""
    count = 20_000
    drawn = [uniform(0, "zoo/default", t) for t in range(1, count + 1)]
    furthest = max(
        max(value - rank / count, (rank + 1) / count - value)
        for rank, value in enumerate(sorted(drawn))
    )
    assert furthest < 1.95 / math.sqrt(count)
    for other in (
        [uniform(1, "zoo/default", t) for t in range(1, 2001)],
        [uniform(0, "zoo/gold", t) for t in range(1, 2001)],
        drawn[1:2001],
    ):
        covariance = np.mean((np.array(drawn[:2000]) - 0.5) * (np.array(other) - 0.5))
        assert abs(covariance * 12) < 0.08


# The virtual queue is the shortfall against alpha, and its bound is the promise (paper, Eq. 2).


@pytest.mark.parametrize(
    ("queue", "satisfaction", "expected"), [(0.5, 0.0, 1.25), (0.5, 1.0, 0.25), (0.0, 1.0, 0.0)]
)
def test_a_miss_adds_alpha_no_credit(queue: float, satisfaction: float, expected: float) -> None:
    assert after(queue, 0.75 - satisfaction) == expected


@given(alphas, st.lists(verdicts, min_size=1, max_size=100))
def test_the_queue_is_the_worst_recent_shortfall(alpha: float, answers: list[float]) -> None:
    """Unrolled, Q(T+1) = max over k of the shortfall of the last k requests, k = 0 included; of all
    of them, mean(s) >= alpha - Q(T+1) / T: the guarantee."""
    queue = 0.0
    for satisfaction in answers:
        queue = after(queue, alpha - satisfaction)
    stretches = [answers[start:] for start in range(len(answers) + 1)]
    worst = max(alpha * len(stretch) - sum(stretch) for stretch in stretches)
    assert queue == pytest.approx(worst, abs=1e-9)
    assert sum(answers) / len(answers) >= alpha - queue / len(answers) - 1e-9


@given(st.floats(1.0, 100.0), alphas, verdicts, verdicts)
def test_a_second_verdict_leaves_the_queue_as_if_it_had_been_the_first(
    queue: float, alpha: float, first: float, second: float
) -> None:
    """Exactly so wherever the debt is large enough for no verdict to empty the queue."""
    revised = after(after(queue, alpha - first), first - second)
    assert revised == pytest.approx(after(queue, alpha - second), abs=1e-9)


# The aim


@given(alphas, st.floats(0.0, 5.0))
def test_the_aim_is_at_least_alpha_and_below_one(alpha: float, more: float) -> None:
    assert aim(alpha, 0.0) == alpha
    assert alpha <= aim(alpha, more) < 1.0


@given(alphas, st.floats(0.2, 5.0))
def test_weighted_labels_say_the_rate_of_all_requests(rate: float, bias: float) -> None:
    """A share r is satisfied and answers once, where the others answer ``bias`` times as often."""
    good, bad = rate * label_weight(1.0, bias), (1.0 - rate) * bias * label_weight(0.0, bias)
    assert good / (good + bad) == pytest.approx(rate)
    assert label_weight(0.4, 1.0) == 1.0


# A promise with a confidence: how far above alpha is aimed, and that the certificate follows.


@given(alphas, counts, counts, shares, confidences)
def test_the_surplus_begins_at_nothing_and_never_falls(
    alpha: float, answered: int, more: int, share: float, confidence: float
) -> None:
    now, then = (surplus(alpha, answered + each, share, confidence) for each in (0, 1))
    assert surplus(alpha, 0, share, confidence) == 0.0
    assert then >= now
    assert raised(alpha, answered, answered + more, confidence) >= 0.0
    assert surplus(alpha, answered, share, 0.3) <= surplus(alpha, answered, share, 0.9) + 1e-9


def test_what_the_aim_is_raised_by_adds_up_to_the_surplus_and_falls_to_nothing() -> None:
    """So the labels of 5,000 requests, of which every fifth has one, hold it at their end; where
    every request has one only the reserve is held."""
    total = sum(raised(0.8, answered, 5 * answered, 0.95) for answered in range(1, 1000))
    assert total == pytest.approx(surplus(0.8, 1000, 0.2, 0.95), abs=0.3)
    found = [raised(0.8, answered, 5 * answered, 0.95) for answered in (100, 1000, 10_000, 10**6)]
    assert found == sorted(found, reverse=True)
    assert found[-1] < 0.002
    assert surplus(0.8, 10**6, 1.0, 0.95) == surplus(0.8, 10**5, 1.0, 0.95) < 10.0
    assert raised(0.8, 10**5, 10**5, 0.95) == 0.0


@pytest.mark.parametrize("answered", [400, 2000, 20_000])
@pytest.mark.parametrize("share", [0.02, 0.2, 0.6])
@pytest.mark.parametrize("confidence", [0.9, 0.99])
def test_surplus_makes_the_certificate_kept(answered: int, share: float, confidence: float) -> None:
    """The bound here follows the certificate's, once the aim was raised for long enough."""
    alpha, requests = 0.8, np.array([answered / share])

    def low(surplus_held: float) -> float:
        satisfied = np.array([alpha * answered + surplus_held])
        counts = ((1.0, satisfied), (0.0, answered - satisfied))
        groups = [LabelGroup(count, value, None, alpha) for value, count in counts]
        return float(bounds(requests, alpha * requests, groups, confidence).low[0])

    needed = surplus(alpha, answered, share, confidence)
    assert low(needed) >= alpha > low(0.6 * needed)


def test_the_engine_aims_by_the_labels_that_are_folded_in() -> None:
    def aims(answers: int, **settings: Any) -> float:
        engine = build_engine(build_zoo(alpha=0.6, **settings))
        for _ in range(answers):
            engine.apply(labelled(0.6))
        level = engine.zoo.levels["default"]
        question = Question("r1", level, point(1, 0), 40, tuple(engine.zoo.candidates))
        return engine.situation(question).alpha

    assert aims(0) == aims(50) == 0.6 < aims(50, confidence=0.95) <= 0.8


def config(**settings: object) -> dict[str, object]:
    return {"messplus": {"zoos": {"llama": {"alpha": 0.8, **settings}}}}


def test_a_service_level_has_its_own_confidence_or_the_zoos() -> None:
    levels = {"gold": {"confidence": 0.99}, "silver": {}}
    zoo = load_settings(config(confidence=0.9, service_levels=levels)).zoos["llama"]
    assert [zoo.level(name).confidence for name in ("default", "gold", "silver")] == [
        0.9,
        0.99,
        0.9,
    ]
    assert load_settings(config()).zoos["llama"].level("default").confidence is None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        *(
            ({"confidence": each}, r"zoos\.llama\.confidence.*given .*; allowed")
            for each in (0.3, 1, 95)
        ),
        ({"confidence": 0.9, "policy": "paper"}, "without confidence"),
    ],
    ids=["too low", "certain", "a percentage", "the paper's policy"],
)
def test_a_confidence_that_is_none_stops_the_start(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        load_settings(config(**settings))
