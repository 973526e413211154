"""The price of satisfaction: what one more satisfied request may cost now.

Why it exists: with a price, every request is decided alone: cost - price * satisfaction.
Feedforward: the price at which the mix of models that meets alpha is indifferent, the slope of the
lower hull of (mean cost, optimistic rate) where it crosses alpha. It carries the unit of cost, so
none is assumed, and no V. Feedback: proportional to the backlog in the exponent, so that the same
backlog multiplies any price. The reference controller (price in units of the most expensive minus
the cheapest, found by an integral term) ends 1.7 and 2.0 points below alpha between the two best
models, whose price is 13 to 25 such units.

An integral term was tried and left out: it cost d 0.14 points on the five shared recordings, and
one more way to wind up.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

GAIN = 0.2
LARGEST_BACKLOG = 10.0
LARGEST_CREDIT = 30.0
LEAST_SPREAD = 0.1


def lower_hull(
    models: Sequence[int], cost: Sequence[float], rate: Sequence[float]
) -> tuple[int, ...]:
    """The models no mix of others undercuts, cheapest first; models are given by rising cost."""
    hull: list[int] = []
    for model in models:
        if hull and rate[model] <= rate[hull[-1]]:
            continue
        while len(hull) >= 2 and _undercut(hull[-2], hull[-1], model, cost, rate):
            hull.pop()
        hull.append(model)
    return tuple(hull)


def _undercut(
    low: int, middle: int, high: int, cost: Sequence[float], rate: Sequence[float]
) -> bool:
    left = (cost[middle] - cost[low]) * (rate[high] - rate[middle])
    return left >= (cost[high] - cost[middle]) * (rate[middle] - rate[low])


def feedforward(
    hull: Sequence[int], cost: Sequence[float], rate: Sequence[float], alpha: float
) -> float:
    """Slope of the hull where it crosses alpha; of its last piece where it stays below."""
    slope = 0.0
    for low, high in pairwise(hull):
        slope = (cost[high] - cost[low]) / (rate[high] - rate[low])
        if rate[high] >= alpha:
            break
    return slope


def with_feedback(slope: float, backlog: float) -> float:
    """Multiply by exp(gain * backlog), the backlog bounded on both sides."""
    return slope * math.exp(GAIN * min(max(backlog, -LARGEST_CREDIT), LARGEST_BACKLOG))


def best_value(cost: Sequence[float], rate: Sequence[float]) -> float:
    """The most that is paid where nothing holds alpha: the average price over the whole zoo."""
    return (max(cost) - min(cost)) / max(max(rate) - min(rate), LEAST_SPREAD)
