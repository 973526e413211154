"""Probes: now and then a cheaper model that may hold alpha is tried instead of the choice.

Why it exists: a model that is never called is never learnt about; and logged probabilities of every
choice are what off-policy evaluation needs. The probability falls with the fourth root of the
requests, as in the paper; but one model is called, not all, and one that could lower the cost where
there is any.
Where the probe would cost the user much, it answers beside the choice instead, unseen: where what
the user stands to lose by it, at the price of satisfaction, is more than one more call, and unseen
calls get labels. With every probe served (10 seeds): zeroeval_mix 1.50 instead of 1.27 times the
hindsight mix, llmdrift 0.93 instead of 0.87, alpaca 1.04 instead of 0.96.
Left out (6 seeds: not shown to matter (0.440 instead of 0.429 MJ, d better between two models);
kept for the logged probabilities and for models that improve while nobody calls them.
"""

import math
from collections.abc import Sequence

from litellm_messplus.routing.knowledge import LEAST_LABELLED, Knowledge

RATE = 0.2
PLAUSIBLE_DEVIATIONS = 3.0


TRIAL = 0.125
"""Share of requests that are trials, while one is called for."""
STANDING = 8.0
"""Requests owed from which a debt calls for a trial."""
UNSURE = 0.05
"""Standard deviation of a rate down to which a model is tried: some 70 labels."""


def trial(known: Knowledge, optimistic: Sequence[float], alpha: float, owed: float) -> int | None:
    """The model to try where a debt stands that no rate, as it is known, can repay; else None.

    It is the least known of those that may hold alpha, whatever it costs. Only under a plan: there
    a few early misses, on prompts that nobody answers, condemn a model for good, for it is called
    on no others (one run in 20 of llmdrift ended 5.9 points below alpha so). By the means alone,
    trials cost more than they found: routerbench_winogrande 1.24 instead of 1.13 times the mix.
    """
    if owed < STANDING or max(known.rate) >= alpha:
        return None
    reaching = [model for model, best in enumerate(optimistic) if best >= alpha]
    model = max(reaching or range(len(optimistic)), key=known.deviation.__getitem__)
    return model if known.deviation[model] > UNSURE else None


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


def is_better_unseen(regret: float, cost: float, labelled: float) -> bool:
    """Whether to make the probe beside the choice: ``regret`` is what the user would lose by it, at
    the price of satisfaction, ``labelled`` the share of unseen calls that got a label lately."""
    return labelled >= LEAST_LABELLED and labelled * regret > cost
