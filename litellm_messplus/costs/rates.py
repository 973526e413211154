"""LiteLLM's names of prices, as its price map and an operator's configuration spell them."""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, overload

from litellm_messplus.costs.price import Price, Tier

PROMPT, COMPLETION = "input_cost_per_token", "output_cost_per_token"
CACHED, REASONING = "cache_read_input_token_cost", "output_cost_per_reasoning_token"
ABOVE_200K = "{}_above_200k_tokens"
WRITTEN, HOUR = "cache_creation_input_token_cost", "cache_creation_input_token_cost_above_1hr"
SECOND = ("cost_per_second", "input_cost_per_second", "output_cost_per_second")
TIERS = "tiered_pricing"
CACHED_FROM = "prompt_cache_min_tokens"
RATES = (PROMPT, COMPLETION, *SECOND, TIERS)
"""Any of these makes a price; the price of a cached or a reasoning token alone does not."""
ABOVE = re.compile(
    rf"(?P<name>{PROMPT}|{COMPLETION}|{CACHED}|{WRITTEN}|{HOUR})"
    r"_above_(?P<tokens>\d+)(?P<thousand>k?)_tokens"
)
"""The price of a token where the prompt is longer."""


def states_a_price(rates: Mapping[str, Any]) -> bool:
    """Tell whether there is a price in it. Zero is one; a key that is missing or None is none."""
    return any(rates.get(name) is not None for name in RATES)


def price_of_rates(rates: Mapping[str, Any], *, is_inclusive: bool = False) -> Price | None:
    """Read the price in USD, by the rules that LiteLLM charges by; None where no price is stated.

    What is left out beside a stated price is zero, except that cached and written tokens cost as
    much as other prompt tokens, those kept for an hour as much as other written ones, and reasoning
    tokens as much as other completion tokens. Seconds count only where tokens cost nothing.
    ``is_inclusive``: a prompt exactly as long as a tier's limit is above it. Raises TypeError or
    ValueError for a price that is no number.
    """
    if not states_a_price(rates):
        return None
    if rates.get(TIERS):
        prices = _by_range(rates)
    else:
        prices = [(above, _flat(found)) for above, found in _by_threshold(rates)]
    (_, first), *others = prices
    tiers = (
        Tier(math.nextafter(above, 0.0) if is_inclusive else above, price)
        for above, price in others
    )
    return replace(first, tiers=tuple(tiers), cached_from=_rate(rates, CACHED_FROM) or 0.0)


def _by_threshold(rates: Mapping[str, Any]) -> list[tuple[float, Mapping[str, Any]]]:
    """List the rates by length: each states some anew, and keeps the others of shorter ones."""
    stated: dict[float, dict[str, Any]] = {}
    for key, value in rates.items():
        found = ABOVE.fullmatch(key)
        if found is not None and value is not None:
            above = float(found["tokens"]) * (1000 if found["thousand"] else 1)
            stated.setdefault(above, {})[found["name"]] = value
    tiers: list[tuple[float, Mapping[str, Any]]] = [(0.0, rates)]
    for above in sorted(stated):
        tiers.append((above, {**tiers[-1][1], **stated[above]}))
    return tiers


def _by_range(rates: Mapping[str, Any]) -> list[tuple[float, Price]]:
    """Read tiers, each of which prices a whole call: only the answer's price may stand outside."""
    tiers = [tier for tier in rates[TIERS] if len(tier.get("range") or ()) == 2] or rates[TIERS][:1]
    own = {COMPLETION: rates.get(COMPLETION)}
    priced = ((_lower_limit(tier), _flat({**own, **tier})) for tier in tiers)
    return sorted(priced, key=lambda each: each[0])


def _lower_limit(tier: Mapping[str, Any]) -> float:
    return float((tier.get("range") or (0.0,))[0])


def _flat(rates: Mapping[str, Any]) -> Price:
    """Read the price without regard to the prompt's length."""
    prompt, completion = _rate(rates, PROMPT) or 0.0, _rate(rates, COMPLETION) or 0.0
    if not prompt and not completion:
        seconds = (_rate(rates, name) for name in SECOND)
        return Price(second=next((rate for rate in seconds if rate is not None), 0.0))
    cached = _rate(rates, CACHED, prompt)
    written = _rate(rates, WRITTEN, prompt)
    return Price(
        prompt,
        completion,
        cached_discount=prompt - cached,
        reasoning_surcharge=_rate(rates, REASONING, completion) - completion,
        written_surcharge=written - prompt,
        hour_surcharge=_rate(rates, HOUR, written) - prompt,
    )


@overload
def _rate(rates: Mapping[str, Any], name: str) -> float | None: ...
@overload
def _rate(rates: Mapping[str, Any], name: str, missing: float) -> float: ...
def _rate(rates: Mapping[str, Any], name: str, missing: float | None = None) -> float | None:
    found = rates.get(name)
    return missing if found is None else number(found)


def number(given: Any) -> float:
    """Read a price. YAML reads `3e-7` as text, so text that is a number is one; `true` is none.

    Raises TypeError or ValueError for what is no number.
    """
    if isinstance(given, bool):
        raise TypeError(f"{given} is no number")
    return float(given)
