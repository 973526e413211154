"""The price of a call, in the zoo's unit."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Amount = TypeVar("Amount", float, NDArray[np.float64])
"""Of one call, or of several, as an array."""


class CostUnit(StrEnum):
    """The one unit in which a zoo counts."""

    USD = "usd"
    JOULE = "joule"


@dataclass(frozen=True, slots=True)
class Price:
    """What a call costs, as a sum over what it uses: tokens, seconds, and the call itself.

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
        """The cost of a call, or of each of many; cached and reasoning tokens are among the others,
        not beside them."""
        return (
            self.request
            + self.prompt * prompt_tokens
            + self.completion * completion_tokens
            - self.cached_discount * cached_tokens
            + self.reasoning_surcharge * reasoning_tokens
            + self.second * seconds
        )

    def lowest(self) -> float:
        """The lowest of its parts, each by itself: below zero, or NaN, it is no price at all."""
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
        """The same price in another unit, of which one of this one buys ``factor``."""
        return Price(*(getattr(self, part.name) * factor for part in fields(self)))


def average(prices: Sequence[Price]) -> Price:
    """The price of a candidate whose replicas are priced differently: each is as likely to serve.

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
