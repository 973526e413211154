"""Requests that stay where their conversation is: nothing is decided, tried or called beside them.

What the policy would have ranked is kept for the retries, and its price for whoever looks at it.
The queue counts on the model that is held.
"""

from dataclasses import replace

from litellm_messplus.routing.decision import Decision, Reason, Situation


def without_trials(situation: Situation) -> Situation:
    """Change the draws so that no policy probes, and no answer teaches as if it were chosen."""
    return replace(situation, exploration_draw=1.0, is_labelled=False)


def alone(decision: Decision) -> Decision:
    """Call nobody beside the one that serves: paper's first request explores in any case."""
    return replace(decision, explored=(), is_exploration=False) if decision.explored else decision


def held(decision: Decision, situation: Situation, candidate: str) -> Decision:
    """Put a candidate before all others of a decision.

    Raises KeyError for one that cannot take the request.
    """
    expected = {each.candidate: each.satisfaction for each in situation.everyone}[candidate]
    is_chosen = decision.chosen == candidate
    return _settled(
        decision,
        (candidate, *(name for name in decision.ranking if name != candidate)),
        decision.expected_satisfaction if is_chosen else expected,
        Reason.HELD,
    )


def upwards(decision: Decision, situation: Situation, candidate: str) -> Decision | None:
    """Go from a candidate up to the first of a decision that is expected to satisfy more often;
    None where none is. In trouble no newcomer is tried."""
    expected = {each.candidate: each.satisfaction for each in situation.everyone}
    known = {each.candidate for each in situation.estimates}
    better = [
        name for name in decision.ranking if name in known and expected[name] > expected[candidate]
    ]
    if not better:
        return None
    others = (name for name in decision.ranking if name not in better)
    return _settled(decision, (*better, *others), expected[better[0]], Reason.TROUBLE)


def _settled(
    decision: Decision, ranking: tuple[str, ...], expected_satisfaction: float, reason: Reason
) -> Decision:
    return replace(
        decision,
        ranking=ranking,
        explored=(),
        is_exploration=False,
        exploration_probability=0.0,
        expected_satisfaction=expected_satisfaction,
        propensity=1.0,
        reason=reason,
    )
