"""Newcomers: models that come while a zoo serves, brought in without staking the promise on them.

Why it exists: nothing is known of a new model, so it may hold alpha as far as anybody can tell, and
where it is the cheapest it would serve every request until the first labels come. So a newcomer is
no candidate of the usual choice. It is tried by one request in twenty, unseen where unseen calls
get labels, until its labels say that it holds alpha, that it does not, or are many. From there on
the policy knows what to do with it.
"""

from dataclasses import replace

from litellm_messplus.routing.decision import Decision, Estimate, Reason, Situation
from litellm_messplus.routing.trying import LEAST_LABELLED

SHARE = 0.05
"""Of requests that try a newcomer, however many there are: one at a time, the cheapest first."""
FEWEST = 5
"""Labelled calls before which nothing is told: its rate is that of the other models until then."""
ENOUGH = 50
"""Labelled calls from which on a model is no newcomer any more, whatever they say."""
BEST = 0.5
"""Probability that the best choice has at least, and that no probe of another candidate has."""
SURE = 1.5
"""Standard deviations between a newcomer's rate and alpha from which on it holds alpha. At 2, one
that satisfies 95 % where 80 % are promised takes 12 labels instead of 8."""
DEBT = 1.0
"""Requests owed from which on it is a debt: a zoo that just holds alpha owes less, every other
request."""


def is_settled(labelled: int, alpha: float, rate: float, deviation: float, optimism: float) -> bool:
    """Return whether it is told by now, by so many labelled calls: that it holds alpha, or that it
    does not even at the best that may be hoped."""
    if labelled < FEWEST:
        return False
    return rate - SURE * deviation >= alpha or rate + optimism * deviation < alpha


def tried(decision: Decision, situation: Situation, unseen_labelled: float) -> Decision:
    """Try the cheapest newcomer in the place of the decision where that is due; else rank the
    newcomers last, for retries.

    Nothing is tried where answers will not be labelled, nor in debt, unless no other candidate can
    hold alpha: then a newcomer is the way out. The draw that says so is the one that probes: they
    take its two ends.
    """
    ranked = sorted(situation.newcomers, key=lambda each: each.typical_cost)
    last = tuple(each.candidate for each in ranked)
    decision = replace(decision, ranking=(*decision.ranking, *last))
    owed = situation.queue + situation.in_flight
    if (owed >= DEBT and decision.is_within_reach) or situation.is_labelled is False:
        return decision
    is_due = situation.exploration_draw >= 1.0 - SHARE
    if situation.is_labelled or unseen_labelled >= LEAST_LABELLED:
        return _beside(decision, ranked[0]) if is_due else decision
    return _in_place(decision, ranked[0]) if is_due else _by_others(decision)


def _beside(decision: Decision, newcomer: Estimate) -> Decision:
    """Call the newcomer too, unseen by the user."""
    return replace(
        decision,
        explored=(*decision.explored, newcomer.candidate),
        is_exploration=True,
        reason=Reason.UNSEEN_NEWCOMER,
    )


def _in_place(decision: Decision, newcomer: Estimate) -> Decision:
    """Let the newcomer serve."""
    others = tuple(name for name in decision.ranking if name != newcomer.candidate)
    return replace(
        decision,
        ranking=(newcomer.candidate, *others),
        explored=(),
        is_exploration=True,
        exploration_probability=SHARE,
        expected_satisfaction=newcomer.satisfaction,
        propensity=SHARE,
        reason=Reason.NEWCOMER,
    )


def _by_others(decision: Decision) -> Decision:
    """Note that the best choice serves that much less often; a probe takes nothing from it."""
    if decision.propensity < BEST:
        return decision
    return replace(decision, propensity=decision.propensity - SHARE)
