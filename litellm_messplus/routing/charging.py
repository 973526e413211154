"""What the limits beside alpha change in a request: the charge for lateness, and no trials."""

from collections.abc import Sequence
from dataclasses import replace

from litellm_messplus.routing.decision import Decision, Estimate, Situation
from litellm_messplus.routing.held import without_trials
from litellm_messplus.routing.limits import Limits


def charged(situation: Situation) -> Situation:
    """Charge each candidate for being late, and try nothing where the budget is nearly used up."""
    limits = situation.limits
    if limits is None:
        return situation
    if limits.charge > 0.0:
        situation = replace(
            situation,
            estimates=_charged(situation.estimates, limits),
            newcomers=_charged(situation.newcomers, limits),
        )
    return without_trials(situation) if limits.is_tight else situation


def _charged(estimates: Sequence[Estimate], limits: Limits) -> tuple[Estimate, ...]:
    return tuple(
        replace(
            each,
            cost=each.cost + limits.charge * limits.late[each.candidate].now,
            typical_cost=each.typical_cost + limits.charge * limits.late[each.candidate].typical,
        )
        for each in estimates
    )


def without_draw(decision: Decision, limits: Limits | None) -> Decision:
    """State that a decision was certain, where nothing could be tried."""
    if limits is None or not limits.is_tight:
        return decision
    return replace(decision, exploration_probability=0.0, propensity=1.0)
