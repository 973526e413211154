"""A zoo as configured: its candidates, their prices, its promises."""

from dataclasses import dataclass
from functools import cached_property

from litellm_messplus.costs.price import Price
from litellm_messplus.settings.schema import DEFAULT_LEVEL, ServiceLevel, ZooSettings

TYPICAL = 100.0, 100.0
"""Tokens of a prompt and of an answer of the call, a second long, that finds the most expensive."""


@dataclass(frozen=True)
class Zoo:
    """The deployments behind one `model_name`; ``prices`` holds each candidate's."""

    name: str
    settings: ZooSettings
    prices: dict[str, Price]

    @cached_property
    def candidates(self) -> tuple[str, ...]:
        """The candidates, in the order of the configuration."""
        return tuple(self.prices)

    @cached_property
    def largest(self) -> str:
        """The candidate that stands for quality at any price."""
        if self.settings.largest is not None:
            return self.settings.largest
        return max(self.prices, key=lambda name: self.prices[name].of(*TYPICAL, seconds=1.0))

    @cached_property
    def levels(self) -> dict[str, ServiceLevel]:
        """Every promise of the zoo by name."""
        names = (DEFAULT_LEVEL, *self.settings.service_levels)
        return {name: self.settings.level(name) for name in names}
