"""The price of a deployment's tokens, in the zoo's unit."""

from dataclasses import dataclass
from enum import StrEnum


class CostUnit(StrEnum):
    """The one unit in which a zoo counts."""

    USD = "usd"
    JOULE = "joule"


@dataclass(frozen=True, slots=True)
class TokenPrice:
    """Cost per token, in the zoo's unit. Zero is a price; an unknown one is no TokenPrice."""

    prompt: float
    completion: float

    def of(self, prompt_tokens: float, completion_tokens: float) -> float:
        """The cost of a call with that many tokens."""
        return self.prompt * prompt_tokens + self.completion * completion_tokens


def average(prices: list[TokenPrice]) -> TokenPrice:
    """The price of a candidate whose replicas are priced differently: each is as likely to serve.

    Raises ValueError for an empty list.
    """
    if not prices:
        raise ValueError("the average of no prices is undefined")
    return TokenPrice(
        prompt=sum(price.prompt for price in prices) / len(prices),
        completion=sum(price.completion for price in prices) / len(prices),
    )
