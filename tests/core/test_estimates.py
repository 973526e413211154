"""What a request is expected to cost at each candidate, before any call."""

from typing import Any

import pytest

from litellm_messplus.core.decision import Estimate
from litellm_messplus.core.encoder import Features
from litellm_messplus.core.engine import Engine, Question
from litellm_messplus.core.prompt import Prompt
from litellm_messplus.costs.price import Price
from litellm_messplus.costs.usage import COMPLETION_TOKENS, SECONDS
from tests.support.builders import (
    LARGE,
    MEDIUM,
    SMALL,
    build_engine,
    build_zoo,
    example,
    pair,
    settled,
)

PRICES = {SMALL: Price(0.1, 1.0), LARGE: Price(1.0, 10.0)}


def engine(prices: dict[str, Price] | None = None) -> Engine:
    return build_engine(build_zoo(prices or PRICES))


def estimates(
    engine: Engine, features: Features | None = None, **request: Any
) -> dict[str, Estimate]:
    level = engine.zoo.levels["default"]
    built = engine.situation(
        Question("r1", level, Prompt(features), 40, engine.zoo.candidates, **request)
    )
    return {estimate.candidate: estimate for estimate in built.estimates}


def test_each_candidates_own_usage_is_expected_of_it() -> None:
    built = engine()
    built.apply(settled(SMALL, prompt_tokens=20, completion_tokens=7))
    built.apply(settled(LARGE, position=2, prompt_tokens=10, completion_tokens=50))
    found = estimates(built)
    assert found[SMALL].cost == pytest.approx(20 * 0.1 + 7 * 1.0)
    assert found[LARGE].cost == pytest.approx(10 * 1.0 + 50 * 10.0)


def test_no_answer_is_expected_to_be_longer_than_the_request_allows() -> None:
    built = engine()
    free = estimates(built)
    assert estimates(built, most_completion_tokens=1e6) == free
    short = estimates(built, most_completion_tokens=5.0)
    assert free[LARGE].cost == pytest.approx(10 * 1.0 + COMPLETION_TOKENS * 10.0)
    assert short[LARGE].cost == pytest.approx(10 * 1.0 + 5 * 10.0)
    assert short[LARGE].typical_cost == free[LARGE].typical_cost


def test_the_limit_holds_for_a_prompt_with_long_answers_too() -> None:
    built = engine()
    for position in range(1, 60):
        built.apply(
            settled(
                LARGE,
                position=position,
                completion_tokens=400 if position % 2 else 100,
                example=example(LARGE, features=pair(1, 0) if position % 2 else pair(-1, 0)),
            )
        )
    long = estimates(built, pair(1, 0))[LARGE].cost
    assert long > 1.5 * estimates(built, pair(-1, 0))[LARGE].cost
    assert estimates(built, pair(1, 0), most_completion_tokens=30.0)[LARGE].cost < 0.2 * long


def test_a_price_by_the_second_is_expected_from_the_seconds_of_the_candidates_calls() -> None:
    built = engine({SMALL: Price(second=2.0), LARGE: Price(second=3.0)})
    assert estimates(built)[LARGE].cost == 3.0 * SECONDS
    built.apply(settled(SMALL, seconds=0.5))
    built.apply(settled(LARGE, position=2, seconds=2.0))
    found = estimates(built)
    assert (found[SMALL].cost, found[LARGE].cost) == (1.0, 6.0)
    found = estimates(engine({SMALL: Price(request=2.0), LARGE: Price(request=3.0)}))
    assert (found[SMALL].cost, found[LARGE].typical_cost) == (2.0, 3.0)


def test_of_a_candidate_that_was_never_called_the_mean_of_the_others_is_expected() -> None:
    """All get the same prompt; before the first call of any, a fixed number of tokens."""
    built = engine({SMALL: Price(0.0, 1.0), MEDIUM: Price(0.0, 1.0), LARGE: Price(0.0, 10.0)})
    assert estimates(built)[LARGE].cost == pytest.approx(10.0 * COMPLETION_TOKENS)
    built.apply(settled(SMALL, completion_tokens=20))
    assert estimates(built)[LARGE].cost == pytest.approx(200.0)
    built.apply(settled(MEDIUM, position=2, completion_tokens=40))
    found = estimates(built)
    assert found[LARGE].cost == pytest.approx(300.0)
    assert (found[SMALL].cost, found[MEDIUM].cost) == pytest.approx((20.0, 40.0))
    built.apply(settled(LARGE, position=3, completion_tokens=7))
    assert estimates(built)[LARGE].cost == pytest.approx(70.0)
