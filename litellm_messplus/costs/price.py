"""The price of a call in the zoo's unit."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

# The usage of one call.


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of a call. Of the prompt's, the endpoint read ``cached_tokens`` from its cache and
    wrote ``written_tokens`` to it, of which ``hour_tokens`` are to be kept for an hour.
    ``reasoning_tokens`` are part of the completion's. ``is_counted`` if the endpoint reported no
    usage, and the tokens were counted here."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    is_counted: bool = False
    written_tokens: int = 0
    hour_tokens: int = 0


# Conversion of joules to dollars.

JOULES_PER_KWH = 3_600_000.0


def dollars_per_joule(price_per_kwh: float) -> float:
    """Convert a price of electricity from USD per kWh."""
    return price_per_kwh / JOULES_PER_KWH


Amount = TypeVar("Amount", float, NDArray[np.float64])
"""Amount of one call, or of several, as an array."""


class CostUnit(StrEnum):
    """The one unit in which a zoo counts."""

    USD = "usd"
    JOULE = "joule"


@dataclass(frozen=True, slots=True)
class Price:
    """The cost of a call, as a sum over its usage: tokens, seconds, and the call itself.

    Zero is a price; an unknown price is not a Price. ``cached_discount`` is how much less a prompt
    token costs that the endpoint read from its cache, ``written_surcharge`` how much more one that
    it wrote there, which may be negative. A prompt shorter than ``cached_from`` tokens is not
    cached. Longer prompts may cost more: the last of the ``tiers``, shortest first, whose length
    the prompt exceeds prices the whole call.
    """

    prompt: float = 0.0
    completion: float = 0.0
    cached_discount: float = 0.0
    request: float = 0.0
    second: float = 0.0
    written_surcharge: float = 0.0
    cached_from: float = 0.0
    tiers: tuple["Tier", ...] = ()

    def of(
        self,
        prompt_tokens: Amount,
        completion_tokens: Amount,
        *,
        cached_tokens: float = 0.0,
        written_tokens: float = 0.0,
        seconds: Amount | float = 0.0,
    ) -> Amount:
        """Compute the cost of a call, or of each of many; cached and written tokens are included in
        the prompt's, not added to them."""
        if self.tiers and isinstance(prompt_tokens, np.ndarray):
            many: Amount = self._of_many(prompt_tokens, completion_tokens, seconds)
            return many
        price = self
        for tier in self.tiers:
            if prompt_tokens > tier.above:
                price = tier.price
        return (
            price.request
            + price.prompt * prompt_tokens
            + price.completion * completion_tokens
            - price.cached_discount * cached_tokens
            + price.written_surcharge * written_tokens
            + price.second * seconds
        )

    def _of_many(self, prompt_tokens: Any, completion_tokens: Any, seconds: Any) -> Any:
        """Compute the cost of many calls, each by the tier of its prompt."""
        cost = replace(self, tiers=()).of(prompt_tokens, completion_tokens, seconds=seconds)
        for tier in self.tiers:
            above = tier.price.of(prompt_tokens, completion_tokens, seconds=seconds)
            cost = np.where(prompt_tokens > tier.above, above, cost)
        return cost

    def of_usage(self, usage: Usage, seconds: float = 0.0) -> float:
        """Compute the cost of a call from its usage."""
        return self.of(
            float(usage.prompt_tokens),
            float(usage.completion_tokens),
            cached_tokens=usage.cached_tokens,
            written_tokens=usage.written_tokens,
            seconds=seconds,
        )

    def within(self, prompt_tokens: float) -> "Price":
        """Return the price, without tiers, of a prompt of ``prompt_tokens``."""
        if not self.tiers:
            return self
        found = self
        for tier in self.tiers:
            if prompt_tokens > tier.above:
                found = tier.price
        return replace(found, tiers=(), cached_from=self.cached_from)

    def lowest(self) -> float:
        """Return the lowest of its parts, each by itself: if it is below zero or NaN, the price is
        invalid."""
        parts = (
            self.prompt,
            self.completion,
            self.prompt - self.cached_discount,
            self.prompt + self.written_surcharge,
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
    """Average the prices of a candidate's replicas, which are equally likely to serve. A prompt
    counts as cached if every replica caches it.

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
    """Average the rates alone."""
    return Price(
        **{name: sum(getattr(price, name) for price in prices) / len(prices) for name in RATES}
    )
