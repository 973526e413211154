"""Probes: now and then a cheaper model that may hold alpha is tried instead of the choice.

Why it exists: a model that is never called is never learnt about; and logged probabilities of every
choice are what off-policy evaluation needs. The probability falls with the fourth root of the
requests, as in the paper; but one model is called, not all, and one that could lower the cost where
there is any.
Left out (6 seeds): not shown to matter (0.440 instead of 0.429 MJ, d better between two models);
kept for the logged probabilities and for models that improve while nobody calls them.
"""

import math
from collections.abc import Sequence

from litellm_messplus.routing.knowledge import Knowledge

RATE = 0.2
PLAUSIBLE_DEVIATIONS = 3.0


def probability(requests: int) -> float:
    return min(1.0, RATE / math.sqrt(math.sqrt(max(requests, 1))))


def candidates(
    eligible: Sequence[int],
    choice: int,
    cost: Sequence[float],
    known: Knowledge,
    alpha: float,
) -> tuple[int, ...]:
    """Cheaper eligible models that may plausibly hold alpha; where there is none, all eligible."""
    plausible = tuple(
        model
        for model in eligible
        if cost[model] < cost[choice]
        and known.rate[model] + PLAUSIBLE_DEVIATIONS * known.deviation[model] >= alpha
    )
    return plausible or tuple(eligible)
