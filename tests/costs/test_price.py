"""What a call costs, by which price."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.costs.price import Price, Tier, Usage, average


@pytest.mark.parametrize(
    ("price", "used", "seconds", "cost"),
    [
        (Price(2.0, 3.0), Usage(10, 100), 0.0, 320.0),
        (Price(), Usage(10, 100), 3.0, 0.0),
        (
            Price(2.0, 3.0, cached_discount=1.5),
            Usage(10, 100, cached_tokens=4, reasoning_tokens=30),
            *(0.0, 6 * 2.0 + 4 * 0.5 + 100 * 3.0),
        ),
        (Price(request=7.0, second=2.0), Usage(10, 100), 3.0, 13.0),
        (
            Price(2.0, 3.0, cached_discount=1.5, written_surcharge=0.5),
            Usage(10, 1, cached_tokens=4, written_tokens=5, hour_tokens=3),
            *(0.0, 1 * 2.0 + 4 * 0.5 + 5 * 2.5 + 3.0),
        ),
    ],
    ids=[
        *("prompt and completion", "zero is a price", "cached tokens"),
        *("a call and its seconds", "written tokens"),
    ],
)
def test_a_call_costs(price: Price, used: Usage, seconds: float, cost: float) -> None:
    assert price.of_usage(used, seconds) == cost


LONG = Price(2.0, 3.0, tiers=(Tier(10, Price(4.0, 6.0)), Tier(20, Price(8.0, 9.0))))


@pytest.mark.parametrize(
    ("tokens", "cost"), [(0, 3), (10, 23), (10.5, 48), (11, 50), (20, 86), (21, 177)]
)
def test_the_longest_tier_exceeded_prices_the_whole_call(tokens: float, cost: float) -> None:
    assert LONG.of(tokens, 1.0) == cost
    assert LONG.within(tokens).of(tokens, 1.0) == cost
    assert LONG.of(np.array([tokens, 1.0]), np.ones(2)).tolist() == [cost, 5.0]


PARTS = st.floats(0.0, 1e3)
RATES = (PARTS, PARTS, PARTS.map(lambda rate: -rate), PARTS, PARTS, PARTS)
TIERS = st.lists(
    st.builds(Tier, st.floats(1, 100), st.builds(Price, *RATES)),
    max_size=3,
    unique_by=lambda tier: tier.above,
).map(lambda tiers: tuple(sorted(tiers, key=lambda tier: tier.above)))
ANY_PRICE = st.builds(Price, *RATES, cached_from=PARTS, tiers=TIERS)


@given(ANY_PRICE, st.floats(1e-3, 1e9))
def test_a_price_in_another_unit_costs_that_many_times_as_much(price: Price, factor: float) -> None:
    used = Usage(10, 100, cached_tokens=3, written_tokens=2)
    found = price.times(factor)
    assert found.of_usage(used, 0.5) == pytest.approx(factor * price.of_usage(used, 0.5))
    assert found.cached_from == price.cached_from


@given(st.lists(ANY_PRICE, min_size=1, max_size=5), st.integers(0, 120))
def test_the_average_price_costs_as_much_on_average(prices: list[Price], tokens: int) -> None:
    used = Usage(tokens, 100, cached_tokens=3, written_tokens=2)
    each = [price.of_usage(used, 0.5) for price in prices]
    found = average(prices).of_usage(used, 0.5)
    assert found == pytest.approx(sum(each) / len(each))


@pytest.mark.parametrize(
    "price",
    [
        Price(prompt=-1.0),
        Price(completion=-1.0),
        Price(1.0, cached_discount=2.0),
        Price(request=-1.0),
        Price(second=-1.0),
        Price(1.0, written_surcharge=-2.0),
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
