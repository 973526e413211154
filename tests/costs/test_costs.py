"""What a call is expected to cost, and how that follows what calls did cost."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.costs.price import Price, Tier, Usage, average
from litellm_messplus.costs.usage import MEMORY, TokenEstimator


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


def test_written_tokens_are_among_those_of_the_prompt_and_those_kept_an_hour_among_them() -> None:
    price = Price(2.0, 3.0, cached_discount=1.5, written_surcharge=0.5, hour_surcharge=2.0)
    used = Usage(10, 1, cached_tokens=4, written_tokens=5, hour_tokens=3)
    assert price.of_usage(used) == 1 * 2.0 + 4 * 0.5 + 2 * 2.5 + 3 * 4.0 + 3.0


def test_a_warm_turn_and_a_cold_one_of_sonnet_by_hand() -> None:
    """60,000 prompt tokens: 58,000 from the cache and 1,000 written; or 59,000 written."""
    million = 1e-6
    sonnet = Price(
        3 * million,
        15 * million,
        cached_discount=2.7 * million,
        written_surcharge=0.75 * million,
    )
    warm = sonnet.of_usage(Usage(60_000, 400, cached_tokens=58_000, written_tokens=1_000))
    cold = sonnet.of_usage(Usage(60_000, 400, written_tokens=59_000))
    assert warm == pytest.approx(0.0174 + 0.00375 + 0.003 + 0.006)
    assert cold == pytest.approx(0.22125 + 0.003 + 0.006)
    assert sonnet.of(60_000.0, 400.0) == pytest.approx(0.186)


LONG = Price(2.0, 3.0, tiers=(Tier(10, Price(4.0, 6.0)), Tier(20, Price(8.0, 9.0))))


@pytest.mark.parametrize(
    ("tokens", "cost"), [(0, 3), (10, 23), (10.5, 48), (11, 50), (20, 86), (21, 177)]
)
def test_the_longest_tier_that_a_prompt_exceeds_prices_the_whole_call(
    tokens: float, cost: float
) -> None:
    assert LONG.of(tokens, 1.0) == cost
    assert LONG.within(tokens).of(tokens, 1.0) == cost
    assert LONG.of(np.array([tokens, 1.0]), np.ones(2)).tolist() == [cost, 5.0]


PARTS = st.floats(0.0, 1e3)
RATES = (PARTS, PARTS, PARTS.map(lambda rate: -rate), PARTS, PARTS, PARTS, PARTS, PARTS)
TIERS = st.lists(
    st.builds(Tier, st.floats(1, 100), st.builds(Price, *RATES)),
    max_size=3,
    unique_by=lambda tier: tier.above,
).map(lambda tiers: tuple(sorted(tiers, key=lambda tier: tier.above)))
ANY_PRICE = st.builds(Price, *RATES, cached_from=PARTS, tiers=TIERS)


@given(ANY_PRICE, st.floats(1e-3, 1e9))
def test_a_price_in_another_unit_costs_that_many_times_as_much(price: Price, factor: float) -> None:
    used = Usage(10, 100, cached_tokens=3, reasoning_tokens=5, written_tokens=2, hour_tokens=1)
    found = price.times(factor)
    assert found.of_usage(used, 0.5) == pytest.approx(factor * price.of_usage(used, 0.5))
    assert found.cached_from == price.cached_from


@given(st.lists(ANY_PRICE, min_size=1, max_size=5), st.integers(0, 120))
def test_a_call_costs_at_the_average_price_what_it_costs_on_average(
    prices: list[Price], tokens: int
) -> None:
    used = Usage(tokens, 100, cached_tokens=3, reasoning_tokens=5, written_tokens=2, hour_tokens=1)
    each = [price.of_usage(used, 0.5) for price in prices]
    found = average(prices).of_usage(used, 0.5)
    assert found == pytest.approx(sum(each) / len(each))


def test_replicas_cache_a_prompt_where_all_of_them_do() -> None:
    assert average([Price(cached_from=1024), Price(cached_from=4096)]).cached_from == 4096


@pytest.mark.parametrize(
    "price",
    [
        Price(prompt=-1.0),
        Price(completion=-1.0),
        Price(1.0, cached_discount=2.0),
        Price(completion=1.0, reasoning_surcharge=-2.0),
        Price(request=-1.0),
        Price(second=-1.0),
        Price(1.0, written_surcharge=-2.0),
        Price(1.0, hour_surcharge=-2.0),
        Price(tiers=(Tier(10, Price(prompt=-1.0)),)),
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
