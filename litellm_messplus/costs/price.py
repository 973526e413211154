"""The price of a call in the zoo's unit, and LiteLLM's names of prices."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any, TypeVar, overload

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


# Conversion of joules to dollars and to CO2e.

JOULES_PER_KWH = 3_600_000.0


def dollars_per_joule(price_per_kwh: float) -> float:
    """Convert a price of electricity from USD per kWh."""
    return price_per_kwh / JOULES_PER_KWH


def grams_per_joule(carbon_per_kwh: float) -> float:
    """Convert the CO2e emissions of electricity from grams per kWh."""
    return carbon_per_kwh / JOULES_PER_KWH


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
    it wrote there, and ``hour_surcharge`` one that it is to keep there for an hour;
    ``reasoning_surcharge`` is how much more a completion token costs that was spent on reasoning.
    Surcharges may be negative. A prompt shorter than ``cached_from`` tokens is not cached. Longer
    prompts may cost more: the last of the ``tiers``, shortest first, whose length the prompt
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
        included in the other counts, not added to them."""
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
            + price.written_surcharge * (written_tokens - hour_tokens)
            + price.hour_surcharge * hour_tokens
            + price.reasoning_surcharge * reasoning_tokens
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
            hour_tokens=usage.hour_tokens,
            reasoning_tokens=usage.reasoning_tokens,
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


# LiteLLM's names of prices, as its price map and an operator's configuration spell them.

PROMPT, COMPLETION = "input_cost_per_token", "output_cost_per_token"
CACHED, REASONING = "cache_read_input_token_cost", "output_cost_per_reasoning_token"
ABOVE_200K = "{}_above_200k_tokens"
WRITTEN, HOUR = "cache_creation_input_token_cost", "cache_creation_input_token_cost_above_1hr"
SECOND = ("cost_per_second", "input_cost_per_second", "output_cost_per_second")
TIERS = "tiered_pricing"
CACHED_FROM = "prompt_cache_min_tokens"
STATED = (PROMPT, COMPLETION, *SECOND, TIERS)
"""Keys of which any one makes a price; that of a cached or a reasoning token alone does not."""
ABOVE = re.compile(
    rf"(?P<name>{PROMPT}|{COMPLETION}|{CACHED}|{WRITTEN}|{HOUR})"
    r"_above_(?P<tokens>\d+)(?P<thousand>k?)_tokens"
)
"""The key of a token's price in a prompt above a length."""


def states_a_price(rates: Mapping[str, Any]) -> bool:
    """Tell whether a price is stated. Zero is a price; a key that is missing or None is not."""
    return any(rates.get(name) is not None for name in STATED)


def price_of_rates(rates: Mapping[str, Any], *, is_inclusive: bool = False) -> Price | None:
    """Read the price in USD, by LiteLLM's rules of charging; None if no price is stated.

    Rates that are not stated are zero, except that cached and written tokens cost as much as other
    prompt tokens, those kept for an hour as much as other written ones, and reasoning tokens as
    much as other completion tokens. Seconds count only if tokens cost nothing.
    ``is_inclusive``: a prompt exactly as long as a tier's limit is above it. Raises TypeError or
    ValueError for a price that is not a number.
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
    """List the rates by length: each tier states some, and keeps the others of shorter ones."""
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
    """Read tiers, each pricing a whole call: only the completion's price may stand outside."""
    tiers = [tier for tier in rates[TIERS] if len(tier.get("range") or ()) == 2] or rates[TIERS][:1]
    own = {COMPLETION: rates.get(COMPLETION)}
    priced = ((_lower_limit(tier), _flat({**own, **tier})) for tier in tiers)
    return sorted(priced, key=lambda each: each[0])


def _lower_limit(tier: Mapping[str, Any]) -> float:
    return float((tier.get("range") or (0.0,))[0])


def _flat(rates: Mapping[str, Any]) -> Price:
    """Read the price, ignoring the prompt's length."""
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
    """Read a price. YAML reads `3e-7` as text, so numeric text is accepted; `true` is not.

    Raises TypeError or ValueError for anything that is not a number.
    """
    if isinstance(given, bool):
        raise TypeError(f"{given} is no number")
    return float(given)
