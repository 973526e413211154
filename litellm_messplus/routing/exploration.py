"""When to explore, and how (paper, Section 2.3 and Algorithm 1)."""

from litellm_messplus.routing.decision import Decision, Situation


def exploration_probability(t: int, c: float) -> float:
    """p_t = min(1, c / t^(1/4)) for the t-th request, counted from 1."""
    return float(min(1.0, c / t**0.25))


def every_candidate(situation: Situation, probability: float, reason: str) -> Decision:
    """Call all healthy candidates; the user gets the answer of the largest, else of the most
    expensive."""
    ranked = sorted(
        situation.estimates,
        key=lambda e: (e.candidate != situation.largest, -e.cost, e.candidate),
    )
    names = tuple(estimate.candidate for estimate in ranked)
    return Decision(
        ranking=names,
        explored=names[1:],
        is_exploration=True,
        exploration_probability=probability,
        expected_satisfaction=ranked[0].satisfaction,
        propensity=probability,
        reason=reason,
    )
