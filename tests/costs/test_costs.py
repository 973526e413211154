"""What a call is expected to cost, and how that follows what calls did cost."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.costs.price import Price, average
from litellm_messplus.costs.token_estimator import MEMORY, TokenEstimator


def test_a_price_counts_prompt_and_completion_apart() -> None:
    assert Price(2.0, 3.0).of(10, 100) == 320.0


def test_zero_is_a_price() -> None:
    assert Price(0.0, 0.0).of(10, 100) == 0.0


def test_cached_tokens_are_among_those_of_the_prompt_and_reasoning_among_the_completion() -> None:
    price = Price(2.0, 3.0, cached_discount=1.5, reasoning_surcharge=2.0)
    cost = price.of(10, 100, cached_tokens=4, reasoning_tokens=30)
    assert cost == 6 * 2.0 + 4 * 0.5 + 70 * 3.0 + 30 * 5.0


def test_a_call_and_its_seconds_may_cost_too() -> None:
    assert Price(request=7.0, second=2.0).of(10, 100, seconds=3.0) == 13.0


PARTS = st.floats(0.0, 1e3)
ANY_PRICE = st.builds(
    Price, PARTS, PARTS, PARTS.map(lambda rate: -rate), PARTS, request=PARTS, second=PARTS
)


@given(ANY_PRICE, st.floats(1e-3, 1e9))
def test_a_price_in_another_unit_costs_that_many_times_as_much(price: Price, factor: float) -> None:
    used = {"cached_tokens": 3.0, "reasoning_tokens": 5.0, "seconds": 0.5}
    assert price.times(factor).of(10, 100, **used) == pytest.approx(
        factor * price.of(10, 100, **used)
    )


@given(st.lists(ANY_PRICE, min_size=1, max_size=5))
def test_a_call_costs_at_the_average_price_what_it_costs_on_average(prices: list[Price]) -> None:
    each = [price.of(10, 100, cached_tokens=3, seconds=0.5) for price in prices]
    found = average(prices).of(10, 100, cached_tokens=3, seconds=0.5)
    assert found == pytest.approx(sum(each) / len(each))


@pytest.mark.parametrize(
    "price",
    [
        Price(prompt=-1.0),
        Price(completion=-1.0),
        Price(1.0, cached_discount=2.0),
        Price(completion=1.0, reasoning_surcharge=-2.0),
        Price(request=-1.0),
        Price(second=-1.0),
    ],
)
def test_a_part_below_zero_shows(price: Price) -> None:
    assert price.lowest() == -1.0


def test_a_part_that_is_no_number_shows() -> None:
    assert math.isnan(Price(prompt=1.0, second=math.nan).lowest())


def test_the_average_of_replicas_is_taken_of_each_part() -> None:
    assert average([Price(1.0, 10.0), Price(3.0, 40.0)]) == Price(2.0, 25.0)


def test_one_replica_is_its_own_average() -> None:
    assert average([Price(0.1, 0.2)]) == Price(0.1, 0.2)


def test_there_is_no_average_of_nothing() -> None:
    with pytest.raises(ValueError, match="no prices"):
        average([])


def test_before_the_first_call_four_characters_are_a_token_and_an_answer_has_a_hundred() -> None:
    estimator = TokenEstimator()
    assert estimator.tokens_of(40) == 10.0
    assert estimator.completion_tokens.value == 100.0


def test_the_first_call_replaces_the_guess() -> None:
    estimator = TokenEstimator()
    estimator.observe(prompt_characters=30, prompt_tokens=10, completion_tokens=7)
    assert estimator.tokens_of(60) == 20.0
    assert estimator.completion_tokens.value == 7.0


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=MEMORY))
def test_the_running_mean_is_the_mean(completions: list[int]) -> None:
    estimator = TokenEstimator()
    for tokens in completions:
        estimator.observe(40, 10, tokens)
    assert estimator.completion_tokens.value == pytest.approx(sum(completions) / len(completions))


def test_the_mean_follows_a_drift_however_long_the_past() -> None:
    estimator = TokenEstimator()
    for _ in range(5_000):
        estimator.observe(40, 10, 10)
    for _ in range(3 * MEMORY):
        estimator.observe(40, 10, 500)
    assert estimator.completion_tokens.value > 450


@pytest.mark.parametrize(("characters", "tokens"), [(0, 10), (40, 0), (0, 0)])
def test_a_ratio_that_means_nothing_is_not_learned(characters: int, tokens: int) -> None:
    """An image has no characters; an endpoint may report no prompt tokens: no division by zero."""
    estimator = TokenEstimator()
    estimator.observe(characters, tokens, 50)
    assert estimator.tokens_of(40) == 10.0
    assert estimator.completion_tokens.value == 50.0


def test_an_empty_prompt_has_no_tokens() -> None:
    assert TokenEstimator().tokens_of(0) == 0.0


def test_before_the_first_call_a_call_takes_a_second() -> None:
    assert TokenEstimator().seconds.value == 1.0


def test_seconds_are_a_running_mean_of_those_that_are_known() -> None:
    estimator = TokenEstimator()
    for seconds in (2.0, None, 4.0):
        estimator.observe(40, 10, 50, seconds)
    assert estimator.seconds.value == 3.0
