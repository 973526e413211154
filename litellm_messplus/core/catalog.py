"""The candidates of a zoo, from the changes in the log.

A worker logs what its router shows, and every worker folds the log, so that all workers and any
later fold have the same zoo. Candidates of the configuration without a logged change are present.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from litellm_messplus.core.entries import CandidateChanged
from litellm_messplus.costs.price import Price, Tier
from litellm_messplus.runtime.vocabulary import Change
from litellm_messplus.settings.zoo import most_expensive

MOST = 32
"""The most candidates of a zoo with a learned state, of some 0.8 MB each. One more replaces the one
that is gone for longest; if all are present, it is left out."""


@dataclass(slots=True)
class Standing:
    """The standing of one candidate: whether it is present, ``since`` when, in seconds since 1970,
    its last reported price, and its number of logged ``changes``."""

    is_present: bool
    since: float
    price: Price | None
    changes: int = 1


@dataclass(slots=True)
class Catalog:
    """The standings of the candidates with logged changes. ``anchor`` is the reference for quality,
    set when a zoo without configured candidates decided its first request; ``left_out`` are
    candidates without room."""

    standings: dict[str, Standing] = field(default_factory=dict)
    anchor: str | None = None
    left_out: list[str] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether no change was logged."""
        return not self.standings and self.anchor is None

    @property
    def absent(self) -> frozenset[str]:
        """The candidates that are gone."""
        return frozenset(name for name, each in self.standings.items() if not each.is_present)

    @property
    def prices(self) -> dict[str, Price]:
        """The last reported prices, by candidate."""
        return {name: each.price for name, each in self.standings.items() if each.price is not None}

    def apply(self, entry: CandidateChanged) -> None:
        """Apply one change."""
        known = self.standings.get(entry.candidate)
        is_present = entry.change is not Change.GONE
        moved = known is None or known.is_present != is_present
        self.standings[entry.candidate] = Standing(
            is_present,
            entry.at if known is None or moved else known.since,
            entry.price or (None if known is None else known.price),
            entry.number,
        )

    def settle(self) -> None:
        """Make the most expensive present candidate the anchor from now on."""
        there = {name: price for name, price in self.prices.items() if name not in self.absent}
        self.anchor = most_expensive(there) or None

    def leave_out(self, candidate: str) -> None:
        """Note that there is no room for a candidate; the last ``MOST`` such are kept."""
        del self.standings[candidate]
        self.left_out = [*(each for each in self.left_out if each != candidate), candidate][-MOST:]

    def room_for_one(self, known: Sequence[str]) -> str | None:
        """Return the candidate to forget for a new one: the one gone for longest; None if all are
        present."""
        gone = [name for name in known if name in self.absent]
        return min(gone, key=lambda name: self.standings[name].since, default=None)

    def plain(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "anchor": self.anchor,
            "left_out": self.left_out,
            "standings": {
                name: [each.is_present, each.since, plain_price(each.price), each.changes]
                for name, each in self.standings.items()
            },
        }

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "Catalog":
        """Rebuild it from ``plain``."""
        standings = {
            name: Standing(is_present, since, price_of(price), changes)
            for name, (is_present, since, price, changes) in plain["standings"].items()
        }
        return cls(standings, plain["anchor"], list(plain["left_out"]))


# A price as JSON, exactly.


def plain_price(price: Price | None) -> dict[str, Any] | None:
    """Return a price as JSON, without the parts that are zero."""
    if price is None:
        return None
    parts = {
        name: getattr(price, name)
        for name in Price.__dataclass_fields__
        if name != "tiers" and getattr(price, name) != 0.0
    }
    tiers = [[tier.above, plain_price(tier.price)] for tier in price.tiers]
    return {**parts, "tiers": tiers} if tiers else parts


def price_of(plain: Mapping[str, Any] | None) -> Price | None:
    """Rebuild the price that ``plain_price`` gave."""
    if plain is None:
        return None
    parts = {name: float(value) for name, value in plain.items() if name != "tiers"}
    tiers = tuple(
        Tier(float(above), price_of(price) or Price()) for above, price in plain.get("tiers", ())
    )
    return Price(**parts, tiers=tiers)
