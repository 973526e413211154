"""Eligibility: the cheapest model that may still hold alpha caps what may be called.

Why it exists: a more expensive model than needed buys satisfaction at several times the price per
request; as long as a cheaper one can repay the backlog within a horizon by itself, the more
expensive ones stay out. "Can" is judged at the optimistic rate. The horizon grows with the requests
seen (so that early noise does not unlock the most expensive model) up to a limit (so that a
shortfall is repaid in finite time).

Left out (6 seeds): 0.640 instead of 0.429 MJ; with eleven models 3.4 instead of 1.1 times the mix.
"""

from collections.abc import Sequence

HORIZON_PER_REQUEST = 4.0
HORIZON = 800.0


def horizon(requests: int, answered_share: float) -> float:
    """Answered requests within which a backlog is to be repaid, after so many requests."""
    repaid_within = min(HORIZON_PER_REQUEST * max(requests, 1), HORIZON)
    return max(answered_share * repaid_within, HORIZON_PER_REQUEST)


def eligible(
    by_cost: Sequence[int],
    optimistic: Sequence[float],
    alpha: float,
    backlog: float,
    horizon: float,
) -> tuple[int, ...]:
    """The models up to the cheapest that can hold alpha and repay the backlog; else all of them."""
    target = alpha + max(backlog, 0.0) / horizon
    for position, model in enumerate(by_cost):
        if optimistic[model] >= target:
            return tuple(by_cost[: position + 1])
    return tuple(by_cost)
