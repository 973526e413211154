"""The plan over recent prompts: which model would serve which prompt at each price, at what cost.

Why it exists: the models' means give the satisfaction that a dollar buys on the average request.
If prompts differ, the same dollar buys more on some of them, so the cheapest way to hold alpha is a
model for every prompt, not a mix. The plan finds it on the recently judged prompts: at every price
each prompt takes the model of least cost - price * satisfaction, and the price at which the mean
satisfaction is alpha is the price to decide by.

Left out (10 seeds): llmdrift ends 0.70 points below alpha instead of at it; tiny costs 0.55 instead
of 0.53 times the hindsight mix.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.core.answer_heads import Spread
from litellm_messplus.core.second_answer import gains

PRICES = np.concatenate(([0.0], np.geomspace(0.02, 100.0, 56))).astype(np.float32)
"""Multiples of the difference in mean cost between the most expensive model and the cheapest."""
EVIDENCE = 5.0
"""Nats by which predictions from the prompt must have beaten the means alone."""
FEWEST = 32
"""Least number of recent prompts for a plan."""
SAVING = 0.05
"""Share of the cost that models ruled out by the means must save to be called anyway."""
REPAYMENT, PATIENCE = 300.0, 0.5
"""Requests over which the plan repays a backlog, by raising its target, and how many more for each
request so far: the faster a debt is repaid, the more it costs."""
READ_PROMPTS, READ_PRICES = 50, 4
"""Prompts on which the gain from reading answers is computed, and how many prices are passed over
for each one at which it is."""
LARGEST_BACKLOG, LARGEST_CREDIT = 60.0, 30.0
NEAR = 0.9
"""Share of the way from alpha to the models' best rate: beyond it the price grows without bound."""
GAIN, GAIN_BACKLOG = 0.015, 20.0
"""Feedback on the price, in the exponent, and its largest backlog. It repays the backlog that the
plan does not foresee, as when prompts are worth more today."""

Matrix = NDArray[np.float64]


class Point(NamedTuple):
    """A point of the frontier: a price, and the mean satisfaction and mean cost that it buys."""

    price: float
    rate: float
    cost: float


@dataclass(frozen=True, slots=True)
class Frontier:
    """The frontier: what each price buys, rising; ``prices``, ``rates`` and ``costs`` have the same
    length."""

    prices: list[float]
    rates: list[float]
    costs: list[float]

    @property
    def most(self) -> float:
        """The highest mean satisfaction that any price buys."""
        return self.rates[-1]

    def at(self, rate: float) -> Point:
        """Return the point where the mean satisfaction is ``rate``, between two prices; the end if
        it is never reached."""
        high = bisect_left(self.rates, rate)
        if high == 0:
            return Point(0.0, self.rates[0], self.costs[0])
        high = min(high, len(self.rates) - 1)
        low = high - 1
        step = self.rates[high] - self.rates[low]
        share = min(max((rate - self.rates[low]) / step, 0.0), 1.0) if step > 0.0 else 1.0
        return Point(
            self.prices[low] + share * (self.prices[high] - self.prices[low]),
            self.rates[low] + share * step,
            self.costs[low] + share * (self.costs[high] - self.costs[low]),
        )


class Outlook:
    """Recent prompts with their latest predictions: ``satisfaction`` and ``cost`` of shape
    (prompts, models), ``hope`` of shape (models,): the most that optimism adds to each model.

    The frontiers of the models by rising mean cost are computed together, in the time of one
    (0.15 ms for three models); those of other sets on demand.
    """

    def __init__(
        self,
        satisfaction: Matrix,
        cost: Matrix,
        hope: Sequence[float],
        spread: Spread | None = None,
    ) -> None:
        self._satisfaction = np.ascontiguousarray(satisfaction.T, dtype=np.float32)
        self._cost = np.ascontiguousarray(cost.T, dtype=np.float32)
        self._hope = np.asarray(hope, dtype=np.float32)
        means = self._cost.mean(axis=1)
        self._prices = PRICES * max(float(np.ptp(means)), 1e-12)
        self._reading = None
        if spread is not None and spread.scores.any():
            self._reading = ReadingGains(satisfaction, cost, spread, self._prices)
        self._frontiers: dict[tuple[frozenset[int], bool], Frontier] = {}
        self._by_cost = np.argsort(means, kind="stable").tolist()
        for is_hopeful in (False, True):
            self._make(self._by_cost, is_hopeful, len(self._by_cost))

    def frontier(self, models: Sequence[int], *, is_hopeful: bool) -> Frontier:
        """Return the frontier of these models alone, from the predictions as they are or with the
        optimism added."""
        key = frozenset(models), is_hopeful
        if key not in self._frontiers:
            self._make(models, is_hopeful, 1)
        return self._frontiers[key]

    def _make(self, models: Sequence[int], is_hopeful: bool, prefixes: int) -> None:
        """Compute the frontiers of all ``models``, and of the ``prefixes`` - 1 shorter prefixes of
        that list."""
        shape = len(self._prices), self._cost.shape[1]
        least = np.full(shape, np.inf, np.float32)
        rate, cost = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        for place, model in enumerate(models, start=1):
            hoped = self._satisfaction[model]
            if is_hopeful:
                hoped = np.minimum(hoped + self._hope[model], 1.0)
            score = self._cost[model] - self._prices[:, None] * hoped
            is_better = score < least
            np.copyto(least, score, where=is_better)
            np.copyto(rate, np.broadcast_to(hoped, shape), where=is_better)
            np.copyto(cost, np.broadcast_to(self._cost[model], shape), where=is_better)
            if place > len(models) - prefixes:
                key = frozenset(models[:place]), is_hopeful
                means = rate.mean(axis=1, dtype=np.float64), cost.mean(axis=1, dtype=np.float64)
                if self._reading is not None:
                    means = self._reading.added(models[:place], *means)
                self._frontiers[key] = Frontier(self._prices.tolist(), *map(rising, means))


def rising(means: Matrix) -> list[float]:
    """Keep the means from falling by rounding."""
    rising: list[float] = np.maximum.accumulate(means).tolist()
    return rising


class ReadingGains:
    """Addition of reading answers to a frontier: the difference that it makes on a part of the
    prompts and prices. A frontier of its own on so few would be coarser than what there is to
    gain."""

    def __init__(
        self, satisfaction: Matrix, cost: Matrix, spread: Spread, prices: NDArray[np.float32]
    ) -> None:
        step = -(-len(satisfaction) // READ_PROMPTS)
        self._rate, self._cost = satisfaction[::step], cost[::step]
        self._places = np.arange(0, len(prices), READ_PRICES)
        self._all = np.arange(len(prices))
        self._prices = prices[self._places].astype(np.float64)
        self._gains = gains(self._rate, self._cost, spread, self._prices)

    def added(self, models: Sequence[int], rate: Matrix, cost: Matrix) -> tuple[Matrix, Matrix]:
        """Add to the mean ``rate`` and ``cost`` at each price what reading the answers of these
        ``models`` changes."""
        chosen = list(models)
        rates, costs = self._rate[:, chosen], self._cost[:, chosen]
        score = costs - self._prices[:, None, None] * rates
        value, more, paid = (each[..., chosen] for each in self._gains)
        before, after = score.argmin(axis=-1), (score - value).argmin(axis=-1)
        shape = score.shape
        found = []
        for base, extra in ((rates, more), (costs, paid)):
            with_reading = np.take_along_axis(base + extra, after[..., None], -1)
            without = np.take_along_axis(np.broadcast_to(base, shape), before[..., None], -1)
            changed = (with_reading - without).mean(axis=(1, 2))
            found.append(np.interp(self._all, self._places, changed))
        return rate + found[0], cost + found[1]


class Owed(NamedTuple):
    """The debt that a plan repays: the ``backlog`` of satisfied requests after so many
    ``requests``, and ``overrated``, by how much the predictions for the served answers exceeded
    their labels lately."""

    backlog: float
    requests: int = 0
    overrated: float = 0.0

    @property
    def raised(self) -> float:
        """The increase of the plan's target: what the predictions promise too much, and a part of
        the backlog."""
        bounded = min(max(self.backlog, -LARGEST_CREDIT), LARGEST_BACKLOG)
        return max(self.overrated, 0.0) + bounded / (REPAYMENT + PATIENCE * self.requests)

    @property
    def gain(self) -> float:
        """The exponent of the feedback on the price."""
        return GAIN * min(max(self.backlog, -GAIN_BACKLOG), GAIN_BACKLOG)


class Planned(NamedTuple):
    """The plan for a request: the models that may serve, and the price of satisfaction."""

    models: tuple[int, ...]
    price: float


def plan(
    outlook: Outlook,
    by_cost: Sequence[int],
    eligible: Sequence[int],
    alpha: float,
    owed: Owed,
) -> Planned:
    """Plan over all models if that saves enough against the ``eligible`` ones, which the means
    require; else over these alone."""
    every = outlook.frontier(by_cost, is_hopeful=True).at(alpha).cost
    needed = outlook.frontier(eligible, is_hopeful=True).at(alpha).cost
    models = tuple(by_cost if every <= (1.0 - SAVING) * needed else eligible)
    frontier = outlook.frontier(models, is_hopeful=False)
    reached = min(alpha + owed.raised, NEAR * frontier.most + (1.0 - NEAR) * alpha)
    return Planned(models, frontier.at(reached).price * math.exp(owed.gain))
