"""LiteLLM's names of prices, read by LiteLLM's rules."""

from typing import Any

import pytest

from litellm_messplus.costs.price import Price, Tier, price_of_rates, states_a_price

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
def test_what_is_no_number_is_said(wrong: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        price_of_rates({"input_cost_per_token": wrong})
