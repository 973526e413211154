"""LiteLLM's names of prices, as its price map and an operator's configuration spell them."""

from collections.abc import Mapping
from typing import Any

from litellm_messplus.costs.price import Price

PROMPT, COMPLETION = "input_cost_per_token", "output_cost_per_token"
CACHED, REASONING = "cache_read_input_token_cost", "output_cost_per_reasoning_token"
SECOND = ("cost_per_second", "input_cost_per_second", "output_cost_per_second")
TIERS = "tiered_pricing"
RATES = (PROMPT, COMPLETION, *SECOND, TIERS)
"""Any of these makes a price; the price of a cached or a reasoning token alone does not."""


def states_a_price(rates: Mapping[str, Any]) -> bool:
    """Whether there is a price in it. Zero is one; a key that is missing or None is none."""
    return any(rates.get(name) is not None for name in RATES)


def price_of_rates(rates: Mapping[str, Any]) -> Price | None:
    """In USD, by the rules that LiteLLM charges by; None where no price is stated.

    What is left out beside a stated price is zero, except that cached tokens cost as much as other
    prompt tokens and reasoning tokens as much as other completion tokens. Seconds count only where
    tokens cost nothing. Where the price depends on the length of the prompt, it is the one of the
    shortest. Raises TypeError or ValueError for a price that is no number.
    """
    if not states_a_price(rates):
        return None
    if rates.get(TIERS):
        rates = {**rates, **rates[TIERS][0]}
    prompt, completion = _rate(rates, PROMPT) or 0.0, _rate(rates, COMPLETION) or 0.0
    cached, reasoning = _rate(rates, CACHED), _rate(rates, REASONING)
    if not prompt and not completion:
        seconds = (_rate(rates, name) for name in SECOND)
        return Price(second=next((rate for rate in seconds if rate is not None), 0.0))
    return Price(
        prompt,
        completion,
        cached_discount=0.0 if cached is None else prompt - cached,
        reasoning_surcharge=0.0 if reasoning is None else reasoning - completion,
    )


def _rate(rates: Mapping[str, Any], name: str) -> float | None:
    """YAML reads `3e-7` as text, so text that is a number is one."""
    found = rates.get(name)
    return None if found is None else float(found)
