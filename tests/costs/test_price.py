"""What a call costs, by which price."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.costs.price import Price, Tier, Usage, average, price_of_rates, states_a_price


@pytest.mark.parametrize(
    ("price", "used", "seconds", "cost"),
    [
        (Price(2.0, 3.0), Usage(10, 100), 0.0, 320.0),
        (Price(), Usage(10, 100), 3.0, 0.0),
        (
            Price(2.0, 3.0, cached_discount=1.5, reasoning_surcharge=2.0),
            Usage(10, 100, cached_tokens=4, reasoning_tokens=30),
            *(0.0, 6 * 2.0 + 4 * 0.5 + 70 * 3.0 + 30 * 5.0),
        ),
        (Price(request=7.0, second=2.0), Usage(10, 100), 3.0, 13.0),
        (
            Price(2.0, 3.0, cached_discount=1.5, written_surcharge=0.5, hour_surcharge=2.0),
            Usage(10, 1, cached_tokens=4, written_tokens=5, hour_tokens=3),
            *(0.0, 1 * 2.0 + 4 * 0.5 + 2 * 2.5 + 3 * 4.0 + 3.0),
        ),
    ],
    ids=[
        *("prompt and completion", "zero is a price", "cached tokens and reasoning"),
        *("a call and its seconds", "written tokens, and those kept for an hour"),
    ],
)
def test_a_call_costs(price: Price, used: Usage, seconds: float, cost: float) -> None:
    assert price.of_usage(used, seconds) == cost


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
    assert math.isnan(Price(prompt=1.0, second=math.nan).lowest())


def test_the_average_of_replicas_is_taken_of_each_part() -> None:
    """And a prompt is cached where every one of them caches it."""
    assert average([Price(1.0, 10.0), Price(3.0, 40.0)]) == Price(2.0, 25.0)
    assert average([Price(cached_from=1024), Price(cached_from=4096)]).cached_from == 4096
    assert average([Price(0.1, 0.2)]) == Price(0.1, 0.2)
    with pytest.raises(ValueError, match="no prices"):
        average([])


# LiteLLM's names of prices, read by LiteLLM's rules.

TOKENS = {"input_cost_per_token": 2.0, "output_cost_per_token": 8.0}


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        (TOKENS, Price(2.0, 8.0)),
        ({"input_cost_per_token": 2.0}, Price(2.0, 0.0)),
        ({"output_cost_per_token": 8.0}, Price(0.0, 8.0)),
        ({"input_cost_per_token": 0.0, "output_cost_per_token": 0}, Price()),
        ({**TOKENS, "cache_read_input_token_cost": 0.5}, Price(2.0, 8.0, cached_discount=1.5)),
        ({**TOKENS, "cache_read_input_token_cost": 0.0}, Price(2.0, 8.0, cached_discount=2.0)),
        (
            {**TOKENS, "output_cost_per_reasoning_token": 9.0},
            Price(2.0, 8.0, reasoning_surcharge=1.0),
        ),
        ({"cost_per_second": 0.1}, Price(second=0.1)),
        ({"input_cost_per_second": 0.1, "output_cost_per_second": 0.2}, Price(second=0.1)),
        ({"cost_per_second": 0.0, "output_cost_per_second": 0.2}, Price(second=0.0)),
        ({**TOKENS, "cost_per_second": 0.1}, Price(2.0, 8.0)),
        ({"tiered_pricing": [TOKENS, {"input_cost_per_token": 99.0}]}, Price(2.0, 8.0)),
        ({"input_cost_per_token": "3e-7"}, Price(3e-7, 0.0)),
        (
            {**TOKENS, "cache_creation_input_token_cost": 2.5},
            Price(2.0, 8.0, written_surcharge=0.5, hour_surcharge=0.5),
        ),
        (
            {**TOKENS, "cache_creation_input_token_cost_above_1hr": "4.0"},
            Price(2.0, 8.0, hour_surcharge=2.0),
        ),
        ({**TOKENS, "prompt_cache_min_tokens": 1024}, Price(2.0, 8.0, cached_from=1024.0)),
        (
            {
                **TOKENS,
                "cache_read_input_token_cost": 0.5,
                "output_cost_per_token_above_272k_tokens": 12.0,
                "input_cost_per_token_above_200k_tokens": 4.0,
                "input_cost_per_token_above_200k_tokens_priority": 99.0,
                "output_cost_per_token_above_128_tokens": None,
            },
            Price(
                *(2.0, 8.0, 1.5),
                tiers=(
                    Tier(200_000, Price(4.0, 8.0, 3.5, written_surcharge=0.0)),
                    Tier(272_000, Price(4.0, 12.0, 3.5)),
                ),
            ),
        ),
        (
            {
                "tiered_pricing": [
                    {"range": [32, 64], "input_cost_per_token": 4.0},
                    {"range": [0, 32], **TOKENS, "cache_read_input_token_cost": 1.0},
                ],
                "output_cost_per_token": 7.0,
                "cache_read_input_token_cost": 0.5,
            },
            Price(2.0, 8.0, 1.0, tiers=(Tier(32, Price(4.0, 7.0)),)),
        ),
    ],
    ids=str,
)
def test_a_price_as_litellm_spells_it(rates: dict[str, Any], expected: Price) -> None:
    assert price_of_rates(rates) == expected


@pytest.mark.parametrize(
    "rates",
    [
        {},
        {"input_cost_per_token": None, "output_cost_per_token": None},
        {"cache_read_input_token_cost": 0.5},
        {"max_tokens": 8192, "mode": "chat"},
    ],
    ids=str,
)
def test_no_price_is_none_and_not_zero(rates: dict[str, Any]) -> None:
    assert not states_a_price(rates)
    assert price_of_rates(rates) is None


@pytest.mark.parametrize("wrong", ["free", [1.0], True, False], ids=str)
def test_what_is_no_number_is_refused(wrong: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        price_of_rates({"input_cost_per_token": wrong})
