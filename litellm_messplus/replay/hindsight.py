"""Yardsticks that know every label beforehand, and so can be met, but hardly beaten."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.replay.recording import Matrix

Vector = NDArray[np.float64]

GUESSING_STEPS = 5000
GUESSING_STEP = 0.01
GUESSING_TOLERANCE = 1e-6
GUESSING_LEAST = 1e-10
GUESSING_DECAY = 0.8
"""Constants of the paper's listing."""


def mix_cost(satisfied: Matrix, cost: Matrix, alpha: float) -> float:
    """Compute the total cost of the cheapest fixed mix of models whose expected satisfaction rate
    is alpha.

    A linear programme with one constraint beside the simplex has an optimum on at most two models,
    so it is enough to look at every single model that meets alpha and at every pair around alpha.
    Where no model reaches alpha: the cost of the most satisfying model (the cheaper on a tie).
    """
    rates, costs = satisfied.mean(axis=0), cost.sum(axis=0)
    reaching = np.flatnonzero(rates >= alpha)
    if len(reaching) == 0:
        return float(costs[np.lexsort((costs, -rates))[0]])
    best = float(costs[reaching].min())
    for low in np.flatnonzero(rates < alpha):
        share = (alpha - rates[low]) / (rates[reaching] - rates[low])
        best = min(best, float((costs[low] + share * (costs[reaching] - costs[low])).min()))
    return best


def oracle_cost(satisfied: Matrix, cost: Matrix, alpha: float) -> float:
    """Compute the total cost of the cheapest per-request assignment whose satisfaction rate is at
    least alpha.

    Start from the cheapest call for every request. It satisfies already, or can be made to at a
    surcharge: that of the cheapest satisfying model over the cheapest model. Every surcharge buys
    exactly one satisfied request, so taking the smallest of them until alpha is met is exact. Where
    even all do not reach alpha, all are taken.
    """
    cheapest = cost.min(axis=1)
    satisfying = np.where(satisfied > 0.5, cost, np.inf).min(axis=1)
    surcharge = np.sort((satisfying - cheapest)[np.isfinite(satisfying)])
    needed = int(np.ceil(alpha * len(cost) - 1e-9))
    return float(cheapest.sum() + surcharge[:needed].sum())


@dataclass(frozen=True)
class Hindsight:
    """The figures of one run that only hindsight gives. ``satisfaction`` and ``cost`` (a total) are
    those of always calling one model."""

    lp_cost: float
    oracle_cost: float
    satisfaction: Vector
    cost: Vector

    @classmethod
    def of(cls, satisfied: Matrix, cost: Matrix, alpha: float) -> "Hindsight":
        """Compute them from two matrices of shape (requests, models)."""
        return cls(
            lp_cost=mix_cost(satisfied, cost, alpha),
            oracle_cost=oracle_cost(satisfied, cost, alpha),
            satisfaction=satisfied.mean(axis=0),
            cost=cost.sum(axis=0),
        )


def educated_guess(rates: Vector, alpha: float) -> Vector | None:
    """Compute the paper's baseline (Appendix, "Random Baseline with Constraint Satisfaction"): how
    often to call each model, at random, given the satisfaction rate of each.

    From equal shares on, models better than the mean of the mix get 1 % more and the others 1 %
    less, until the mean meets alpha. None where no model meets alpha.
    """
    if alpha > rates.max():
        return None
    shares = np.full(len(rates), 1.0 / len(rates))
    for _ in range(GUESSING_STEPS):
        mean = float(shares @ rates)
        if mean >= alpha - GUESSING_TOLERANCE:
            return shares
        shares = shares * np.where(rates > mean, 1.0 + GUESSING_STEP, 1.0 - GUESSING_STEP)
        shares /= shares.sum()
    return _by_rank(rates)


def _by_rank(rates: Vector) -> Vector:
    """Share calls by rank, the listing's last resort: 80 % of what is left to each model from the
    best down, times its place between the worst and the best; the worst takes the rest."""
    order = np.argsort(rates)[::-1]
    best, worst = rates[order[0]], rates[order[-1]]
    shares = np.full(len(rates), GUESSING_LEAST)
    left = 1.0 - len(rates) * GUESSING_LEAST
    for model in order[:-1]:
        given = left * GUESSING_DECAY * (rates[model] - worst) / (best - worst)
        shares[model] += given
        left -= given
    shares[order[-1]] += left
    total: Vector = shares / shares.sum()
    return total
