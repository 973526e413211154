"""A zoo: its candidates, their prices, its promises. As configured, and as its models come and
go."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from litellm_messplus.costs.price import Price
from litellm_messplus.settings.promise import ServiceLevel
from litellm_messplus.settings.schema import DEFAULT_LEVEL, ZooSettings
from litellm_messplus.switching.modes import group_value

TYPICAL = 100.0, 100.0
"""Tokens of a prompt and of an answer of the call, a second long, that finds the most expensive."""
FEWEST = 2
"""Candidates between which there is something to choose."""


@dataclass(frozen=True)
class Zoo:
    """The deployments behind one `model_name`; ``prices`` holds each candidate's.

    ``begins_with`` are the configured candidates, None if these are all; ``absent`` are those that
    LiteLLM no longer serves. ``groups`` are the model names of its members, if the zoo is one of
    LiteLLM's routing groups. ``anchor`` stands for quality if the settings name no largest: a
    candidate that comes later, or costs more one day, does not take its place.
    """

    name: str
    settings: ZooSettings
    prices: dict[str, Price]
    begins_with: tuple[str, ...] | None = None
    absent: frozenset[str] = frozenset()
    anchor: str | None = None
    groups: tuple[str, ...] = ()

    @cached_property
    def candidates(self) -> tuple[str, ...]:
        """Every candidate with something learned, in the order in which they came."""
        return tuple(self.prices)

    @cached_property
    def present(self) -> tuple[str, ...]:
        """The candidates that LiteLLM serves."""
        return tuple(name for name in self.prices if name not in self.absent)

    @property
    def configured(self) -> tuple[str, ...]:
        """The candidates that the log is folded from, in the order of the configuration."""
        return self.candidates if self.begins_with is None else self.begins_with

    @property
    def befores(self) -> tuple[str, ...]:
        """What may have served before, other than LiteLLM's choice within the zoo: its candidates,
        and the groups that it consists of."""
        return (*self.candidates, *map(group_value, self.groups))

    @property
    def has_anchor(self) -> bool:
        """Whether the largest is named by the configuration or by the log."""
        return self.settings.largest is not None or self.anchor is not None

    @property
    def is_waiting(self) -> bool:
        """Whether there are too few candidates to choose between."""
        return len(self.present) < FEWEST

    @property
    def concern(self) -> str | None:
        """The trouble with the candidates, in words; None if there is none."""
        if self.is_waiting:
            there = ", ".join(self.present) or "none"
            return (
                f"waiting for at least {FEWEST} models (there: {there}): requests are left to "
                "LiteLLM meanwhile"
            )
        wanted = self.settings.largest or self.anchor
        if wanted is not None and wanted not in self.present:
            return (
                f"the largest, {wanted}, is gone: {self.largest}, the most expensive that is "
                "there, stands for it"
            )
        return None

    @cached_property
    def largest(self) -> str:
        """The candidate that stands for quality at any price: if it is gone, the most expensive one
        that is there; empty in a zoo without candidates."""
        wanted = self.settings.largest or self.anchor
        if wanted is not None and wanted in self.present:
            return wanted
        return most_expensive({name: self.prices[name] for name in self.present or self.prices})

    def largest_of(self, candidates: Iterable[str]) -> str:
        """Return the one that stands for quality among some: the largest of all, else the most
        expensive; empty if none of them is known."""
        prices = {name: self.prices[name] for name in candidates if name in self.prices}
        return self.largest if self.largest in prices else most_expensive(prices)

    @cached_property
    def levels(self) -> dict[str, ServiceLevel]:
        """Every promise of the zoo by name."""
        names = (DEFAULT_LEVEL, *self.settings.service_levels)
        return {name: self.settings.level(name) for name in names}

    @cached_property
    def streams(self) -> dict[str, ServiceLevel]:
        """Every promise by name, with those to callers who request a level."""
        return {name: self.settings.level(name) for name in self.settings.streams}

    def promises(self, requests: Mapping[str, int]) -> tuple[str, ...]:
        """Return the names of the promises: of each service level, and of each to callers who
        request it that has one of the ``requests``, counted by promise."""
        return tuple(name for name in self.streams if name in self.levels or requests.get(name))

    def live(
        self, prices: Mapping[str, Price], absent: frozenset[str], anchor: str | None
    ) -> "Zoo":
        """Return this configured zoo with its current candidates and prices."""
        own = None if self.is_waiting else self.largest
        return replace(
            self,
            prices=dict(prices),
            begins_with=self.configured,
            absent=absent,
            anchor=own or anchor,
        )


def most_expensive(prices: Mapping[str, Price]) -> str:
    """Return the candidate whose typical call costs most; empty if there is none."""
    return max(prices, key=lambda name: prices[name].of(*TYPICAL, seconds=1.0), default="")


class HasZoo(Protocol):
    """An owner of a zoo, which may be another one tomorrow."""

    zoo: Zoo


class Zoos(Mapping[str, Zoo]):
    """The zoos of their owners, each looked up at every access."""

    def __init__(self, owners: Mapping[str, HasZoo]) -> None:
        self._owners = owners

    def __getitem__(self, name: str) -> Zoo:
        return self._owners[name].zoo

    def __iter__(self) -> Iterator[str]:
        return iter(self._owners)

    def __len__(self) -> int:
        return len(self._owners)
