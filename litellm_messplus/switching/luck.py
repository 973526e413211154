"""What luck costs: the queue makes up for it, so it shows in what is paid and not in what is held.

Where alpha is within reach and no cheap model gives it by itself, the router holds it at a price
of satisfaction. A stretch of bad luck then raises the price, and moves requests to better models.
So the satisfaction hardly varies from one stretch to the next, and the cost varies all the more. By
how much, the cheapest mixes say: a little more satisfaction costs little as long as a cheap model
can give it, and much beyond.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

PRICES = np.concatenate([[0.0], np.geomspace(0.01, 1000.0, 60)])
"""Of one more satisfied request, in units of what the most expensive candidate costs more than the
cheapest: from one at which nobody pays more to one at which everybody does."""


@dataclass(frozen=True, slots=True)
class Mixes:
    """The cheapest ways to give each request to a candidate, from those of least cost to those of
    most satisfaction: ``rates`` rise, and ``costs`` with them."""

    rates: tuple[float, ...] = ()
    costs: tuple[float, ...] = ()

    @classmethod
    def of(
        cls,
        costs: Sequence[Mapping[str, float]],
        rates: Sequence[Mapping[str, float]],
        candidates: Collection[str],
    ) -> "Mixes":
        """Build them of what was expected of each of these candidates, request by request: at every
        price each request takes the candidate of least cost - price * satisfaction."""
        names = [name for name in sorted(candidates) if any(name in each for each in costs)]
        if not names:
            return cls()
        cost, rate = _matrix(costs, names, np.inf), _matrix(rates, names, 0.0)
        there = np.isfinite(cost).any(axis=1)
        cost, rate = cost[there], rate[there]
        means = np.nanmean(np.where(np.isfinite(cost), cost, np.nan), axis=0)
        spread, rows = float(np.ptp(means)), np.arange(len(cost))
        found = []
        for price in PRICES * spread:
            choice = (cost - price * rate).argmin(axis=1)
            found.append((rate[rows, choice].mean(), cost[rows, choice].mean()))
        rising = np.maximum.accumulate(np.array(found), axis=0)
        return cls(tuple(rising[:, 0].tolist()), tuple(rising[:, 1].tolist()))

    def can_steer(self, alpha: float) -> bool:
        """Tell whether a price holds alpha: whether it lies between the two ends."""
        return bool(self.rates) and self.rates[0] < alpha <= self.rates[-1]

    def extra(self, alpha: float, more: float) -> float:
        """Return what so much ``more`` satisfaction than alpha costs, or less than nothing where it
        is less; beyond the ends nothing is for sale."""
        if not self.rates:
            return 0.0
        asked: Sequence[float] = np.interp([alpha, alpha + more], self.rates, self.costs).tolist()
        return asked[1] - asked[0]


def _matrix(expected: Sequence[Mapping[str, float]], names: Sequence[str], absent: float) -> Matrix:
    return np.array([[each.get(name, absent) for name in names] for each in expected])
