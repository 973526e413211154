"""Policy `paper`: Algorithm 1 of MESS+, exactly."""

from litellm_messplus.core.decision import (
    Decision,
    Estimate,
    Reason,
    Situation,
    every_candidate,
    exploration_probability,
)


def decide(situation: Situation, V: float, c: float) -> Decision:
    """Explore every candidate, or serve the one that minimises V E + Q (alpha - s-hat).

    At t = 1, and with probability p_t, all candidates are called and the user gets the answer of
    the largest (Section 2.3). ``V`` has the unit queue per cost, so it must fit the zoo's unit:
    the paper's 1e-4 is per joule.
    """
    probability = 1.0 if situation.t == 1 else exploration_probability(situation.t, c)
    if situation.exploration_draw < probability:
        reason = Reason.FIRST_REQUEST if situation.t == 1 else Reason.EXPLORATION
        return every_candidate(situation, probability, reason)
    ranked = sorted(
        situation.estimates, key=lambda estimate: _penalty(estimate, situation.queue, V)
    )
    return Decision(
        ranking=tuple(estimate.candidate for estimate in ranked),
        explored=(),
        is_exploration=False,
        exploration_probability=probability,
        expected_satisfaction=ranked[0].satisfaction,
        propensity=1.0 - probability,
        reason=Reason.NO_DEBT if situation.queue == 0.0 else Reason.LEAST_PENALTY,
    )


def _penalty(estimate: Estimate, queue: float, V: float) -> tuple[float, float, str]:
    """Compute drift plus penalty of one candidate (Eq. 3); the constant Q alpha orders nothing.

    Equal penalties go to the cheaper, then to the first by name, so that a decision never depends
    on the order in which LiteLLM lists the deployments.
    """
    drift_plus_penalty = V * estimate.cost - queue * estimate.satisfaction
    return drift_plus_penalty, estimate.cost, estimate.candidate
