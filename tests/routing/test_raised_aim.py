"""A promise with a confidence: how far above alpha is aimed, and that the certificate follows."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.certificate.evidence import Heard, bounds
from litellm_messplus.deciding.decider import Question
from litellm_messplus.errors import ConfigurationError
from litellm_messplus.routing.decision import raised, surplus
from litellm_messplus.settings.load import load_settings
from tests.support.builders import build_engine, build_zoo, labelled, point

alphas = st.floats(0.05, 0.99)
counts = st.integers(0, 10**6)
shares = st.floats(0.01, 1.0)
confidences = st.floats(0.5, 0.999)


@given(alphas, counts, shares, confidences)
def test_the_surplus_begins_at_nothing_and_never_falls(
    alpha: float, answered: int, share: float, confidence: float
) -> None:
    now, after = (surplus(alpha, answered + more, share, confidence) for more in (0, 1))

    assert surplus(alpha, 0, share, confidence) == 0.0
    assert after >= now


@given(alphas, counts, counts, confidences)
def test_the_aim_is_never_below_alpha(
    alpha: float, answered: int, more: int, confidence: float
) -> None:
    assert raised(alpha, answered, answered + more, confidence) >= 0.0


def test_what_the_aim_is_raised_by_adds_up_to_the_surplus() -> None:
    """So the labels of 5,000 requests, of which every fifth has one, hold it at their end."""
    total = sum(raised(0.8, answered, 5 * answered, 0.95) for answered in range(1, 1000))

    assert total == pytest.approx(surplus(0.8, 1000, 0.2, 0.95), abs=0.3)


def test_it_falls_to_nothing_as_evidence_grows() -> None:
    found = [raised(0.8, answered, 5 * answered, 0.95) for answered in (100, 1000, 10_000, 10**6)]

    assert found == sorted(found, reverse=True)
    assert found[-1] < 0.002


def test_where_every_request_has_a_label_only_the_reserve_is_held() -> None:
    assert surplus(0.8, 10**6, 1.0, 0.95) == surplus(0.8, 10**5, 1.0, 0.95) < 10.0
    assert raised(0.8, 10**5, 10**5, 0.95) == 0.0


@given(alphas, counts, shares)
def test_more_confidence_takes_more_surplus(alpha: float, answered: int, share: float) -> None:
    low, high = (surplus(alpha, answered, share, confidence) for confidence in (0.8, 0.99))

    assert low <= high + 1e-9


@pytest.mark.parametrize("answered", [400, 2000, 20_000])
@pytest.mark.parametrize("share", [0.02, 0.2, 0.6])
@pytest.mark.parametrize("confidence", [0.9, 0.99])
def test_with_the_surplus_the_certificate_says_kept_and_hardly_without(
    answered: int, share: float, confidence: float
) -> None:
    """The bound here follows the certificate's, once the aim was raised for long enough."""
    alpha, requests = 0.8, np.array([answered / share])

    def low(surplus_held: float) -> float:
        satisfied = np.array([alpha * answered + surplus_held])
        heard = [Heard(satisfied, 1.0, None), Heard(answered - satisfied, 0.0, None)]
        return float(bounds(requests, heard, alpha, confidence).low[0])

    needed = surplus(alpha, answered, share, confidence)
    assert low(needed) >= alpha
    assert low(0.6 * needed) < alpha


def aims(answers: int, **settings: Any) -> float:
    zoo = build_zoo(**settings)
    level, engine = zoo.levels["default"], build_engine(zoo)
    for _ in range(answers):
        engine.apply(labelled(0.6))
    asked = Question("r1", level, point(1, 0), 40, tuple(engine.zoo.candidates))
    return engine.situation(asked).alpha


def test_the_engine_aims_by_the_labels_that_are_folded_in() -> None:
    alpha = build_zoo().levels["default"].alpha

    assert aims(0) == aims(50) == alpha
    assert alpha < aims(50, confidence=0.95) <= (1.0 + alpha) / 2.0


def config(**given: object) -> dict[str, object]:
    return {"messplus": {"zoos": {"llama": {"alpha": 0.8, **given}}}}


def test_a_service_level_has_its_own_confidence_or_the_zoos() -> None:
    levels = {"gold": {"confidence": 0.99}, "silver": {}}
    zoo = load_settings(config(confidence=0.9, service_levels=levels)).zoos["llama"]

    found = [zoo.level(name).confidence for name in ("default", "gold", "silver")]

    assert found == [0.9, 0.99, 0.9]
    assert load_settings(config()).zoos["llama"].level("default").confidence is None


@pytest.mark.parametrize("value", [0.3, 1.0, 95])
def test_a_confidence_that_is_none_stops_the_start(value: float) -> None:
    with pytest.raises(ConfigurationError, match=r"zoos\.llama\.confidence.*given .*; allowed"):
        load_settings(config(confidence=value))


def test_two_settings_that_raise_the_aim_stop_the_start() -> None:
    with pytest.raises(ConfigurationError, match=r"not both.*'gold'"):
        load_settings(config(confidence=0.9, service_levels={"gold": {"margin": 1.0}}))


def test_the_paper_knows_no_confidence() -> None:
    with pytest.raises(ConfigurationError, match="without confidence"):
        load_settings(config(policy="paper", confidence=0.9))
