"""The price of a call, in the zoo's unit."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

# What one call used.


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of a call. ``cached_tokens`` are among those of the prompt, which the endpoint read
    from its cache; so are ``written_tokens``, which it wrote there, and ``hour_tokens`` are those
    of them that it is to keep for an hour. ``reasoning_tokens`` are among those of the completion.
    ``is_counted`` where the endpoint did not say, and we counted."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    is_counted: bool = False
    written_tokens: int = 0
    hour_tokens: int = 0


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
    """The cost of a call, as a sum over what it uses: tokens, seconds, and the call itself.

    Zero is a price; an unknown one is no Price. ``cached_discount`` is how much less a prompt
    token costs that the endpoint read from its cache, ``written_surcharge`` how much more one that
    it wrote there, and ``hour_surcharge`` one that it is to keep there for an hour;
    ``reasoning_surcharge`` is how much more a completion token costs that was spent on reasoning.
    Surcharges may be negative. A prompt shorter than ``cached_from`` tokens is not cached. Longer
    prompts may cost more: of the ``tiers``, shortest first, the last whose length the prompt
    exceeds prices the whole call.
    """

    prompt: float = 0.0
    completion: float = 0.0
    cached_discount: float = 0.0
    reasoning_surcharge: float = 0.0
    request: float = 0.0
    second: float = 0.0
    written_surcharge: float = 0.0
    hour_surcharge: float = 0.0
    cached_from: float = 0.0
    tiers: tuple["Tier", ...] = ()

    def of(
        self,
        prompt_tokens: Amount,
        completion_tokens: Amount,
        *,
        cached_tokens: float = 0.0,
        written_tokens: float = 0.0,
        hour_tokens: float = 0.0,
        reasoning_tokens: float = 0.0,
        seconds: Amount | float = 0.0,
    ) -> Amount:
        """Compute the cost of a call, or of each of many; cached, written and reasoning tokens are
        among the others, not beside them."""

        def at(price: Price) -> Amount:
            return (
                price.request
                + price.prompt * prompt_tokens
                + price.completion * completion_tokens
                - price.cached_discount * cached_tokens
                + price.written_surcharge * (written_tokens - hour_tokens)
                + price.hour_surcharge * hour_tokens
                + price.reasoning_surcharge * reasoning_tokens
                + price.second * seconds
            )

        cost = at(self)
        for tier in self.tiers:
            if isinstance(prompt_tokens, np.ndarray):
                cost = np.where(prompt_tokens > tier.above, at(tier.price), cost)
            elif prompt_tokens > tier.above:
                cost = at(tier.price)
        return cost

    def of_usage(self, usage: Usage, seconds: float = 0.0) -> float:
        """Compute the cost of a call that used so much."""
        return self.of(
            float(usage.prompt_tokens),
            float(usage.completion_tokens),
            cached_tokens=usage.cached_tokens,
            written_tokens=usage.written_tokens,
            hour_tokens=usage.hour_tokens,
            reasoning_tokens=usage.reasoning_tokens,
            seconds=seconds,
        )

    def within(self, prompt_tokens: float) -> "Price":
        """Find the price, without tiers, of a prompt of so many tokens."""
        found = self
        for tier in self.tiers:
            if prompt_tokens > tier.above:
                found = tier.price
        return replace(found, tiers=(), cached_from=self.cached_from)

    def lowest(self) -> float:
        """Return the lowest of its parts, each by itself: below zero, or NaN, it is no price at
        all."""
        parts = (
            self.prompt,
            self.completion,
            self.prompt - self.cached_discount,
            self.prompt + self.written_surcharge,
            self.prompt + self.hour_surcharge,
            self.completion + self.reasoning_surcharge,
            self.request,
            self.second,
            *(tier.price.lowest() for tier in self.tiers),
        )
        return min(parts) if all(part == part for part in parts) else float("nan")

    def times(self, factor: float) -> "Price":
        """Convert the price to another unit, of which one of this unit buys ``factor``."""
        return Price(
            **{name: getattr(self, name) * factor for name in RATES},
            cached_from=self.cached_from,
            tiers=tuple(Tier(tier.above, tier.price.times(factor)) for tier in self.tiers),
        )


@dataclass(frozen=True, slots=True)
class Tier:
    """The price of a call whose prompt has more than ``above`` tokens."""

    above: float
    price: Price


RATES = tuple(part.name for part in fields(Price) if part.name not in ("cached_from", "tiers"))
"""The parts of a price that are amounts in its unit."""


def average(prices: Sequence[Price]) -> Price:
    """Average the prices of a candidate's replicas, each of which is as likely to serve. A prompt
    counts as cached where every replica caches it.

    Raises ValueError for an empty sequence.
    """
    if not prices:
        raise ValueError("the average of no prices is undefined")
    limits = sorted({tier.above for price in prices for tier in price.tiers})
    tiers = tuple(
        Tier(above, _average([price.within(math.nextafter(above, math.inf)) for price in prices]))
        for above in limits
    )
    return replace(
        _average(prices), tiers=tiers, cached_from=max(price.cached_from for price in prices)
    )


def _average(prices: Sequence[Price]) -> Price:
    """Average their rates alone."""
    return Price(
        **{name: sum(getattr(price, name) for price in prices) / len(prices) for name in RATES}
    )
