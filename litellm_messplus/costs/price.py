"""The price of a call, in the zoo's unit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

# What one call used.


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of a call. ``cached_tokens`` are among those of the prompt, ``reasoning_tokens``
    among those of the completion. ``is_counted`` where the endpoint did not say, and we counted."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    is_counted: bool = False


# Where dollars and joules meet: what electricity costs, and what it emits.

JOULES_PER_KWH = 3_600_000.0


def dollars_per_joule(price_per_kwh: float) -> float:
    """Convert a price of electricity from USD per kWh."""
    return price_per_kwh / JOULES_PER_KWH


def grams_per_joule(carbon_per_kwh: float) -> float:
    """Convert the CO2e that electricity emits from grams per kWh."""
    return carbon_per_kwh / JOULES_PER_KWH


Amount = TypeVar("Amount", float, NDArray[np.float64])
"""Of one call, or of several, as an array."""


class CostUnit(StrEnum):
    """The one unit in which a zoo counts."""

    USD = "usd"
    JOULE = "joule"


@dataclass(frozen=True, slots=True)
class Price:
    """The costs of a call, as a sum over what it uses: tokens, seconds, and the call itself.

    Zero is a price; an unknown one is no Price. ``cached_discount`` is how much less a prompt
    token costs that the endpoint read from its cache, ``reasoning_surcharge`` how much more a
    completion token that was spent on reasoning; it may be negative.
    """

    prompt: float = 0.0
    completion: float = 0.0
    cached_discount: float = 0.0
    reasoning_surcharge: float = 0.0
    request: float = 0.0
    second: float = 0.0

    def of(
        self,
        prompt_tokens: Amount,
        completion_tokens: Amount,
        *,
        cached_tokens: float = 0.0,
        reasoning_tokens: float = 0.0,
        seconds: Amount | float = 0.0,
    ) -> Amount:
        """Return the cost of a call, or of each of many; cached and reasoning tokens are among the
        others, not beside them."""
        return (
            self.request
            + self.prompt * prompt_tokens
            + self.completion * completion_tokens
            - self.cached_discount * cached_tokens
            + self.reasoning_surcharge * reasoning_tokens
            + self.second * seconds
        )

    def lowest(self) -> float:
        """Return the lowest of its parts, each by itself: below zero, or NaN, it is no price at
        all."""
        parts = (
            self.prompt,
            self.completion,
            self.prompt - self.cached_discount,
            self.completion + self.reasoning_surcharge,
            self.request,
            self.second,
        )
        return min(parts) if all(part == part for part in parts) else float("nan")

    def times(self, factor: float) -> "Price":
        """Convert the price to another unit, of which one of this unit buys ``factor``."""
        return Price(*(getattr(self, part.name) * factor for part in fields(self)))


def average(prices: Sequence[Price]) -> Price:
    """Average the prices of a candidate's replicas: each replica is as likely to serve.

    Raises ValueError for an empty sequence.
    """
    if not prices:
        raise ValueError("the average of no prices is undefined")
    return Price(
        *(
            sum(getattr(price, part.name) for price in prices) / len(prices)
            for part in fields(Price)
        )
    )


# LiteLLM's names of prices, as its price map and an operator's configuration spell them.

PROMPT, COMPLETION = "input_cost_per_token", "output_cost_per_token"
CACHED, REASONING = "cache_read_input_token_cost", "output_cost_per_reasoning_token"
SECOND = ("cost_per_second", "input_cost_per_second", "output_cost_per_second")
TIERS = "tiered_pricing"
RATES = (PROMPT, COMPLETION, *SECOND, TIERS)
"""Any of these makes a price; the price of a cached or a reasoning token alone does not."""


def states_a_price(rates: Mapping[str, Any]) -> bool:
    """Tell whether the rates state a price. Zero is one; a key that is missing or None is none."""
    return any(rates.get(name) is not None for name in RATES)


def price_of_rates(rates: Mapping[str, Any]) -> Price | None:
    """Read a price in USD, by the rules that LiteLLM charges by; None where no price is stated.

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
    """Read one rate as a number: YAML reads `3e-7` as text."""
    found = rates.get(name)
    return None if found is None else float(found)
