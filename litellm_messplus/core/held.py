"""Requests without a choice: those that stay with their conversation, and those that only one
candidate can take."""

from dataclasses import replace

from litellm_messplus.core.decision import Decision, Reason, Situation
from litellm_messplus.rows import public, record

# Requests that stay with their conversation: nothing is decided, tried or called in addition.
#
# The policy's ranking is kept for the retries, and its price for the records. The queue counts on
# the model that is held.


def without_trials(situation: Situation) -> Situation:
    """Set the draw so that no policy probes, and treat the answers as never labelled."""
    return replace(situation, exploration_draw=1.0, is_labelled=False)


def alone(decision: Decision) -> Decision:
    """Remove the unseen calls: the paper's first request explores in any case."""
    return replace(decision, explored=(), is_exploration=False) if decision.explored else decision


def held(decision: Decision, situation: Situation, candidate: str) -> Decision:
    """Put a candidate first in the ranking of a decision.

    Raises KeyError for a candidate that cannot take the request.
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
    """Move from a candidate up to the first one in the ranking with a higher expected satisfaction;
    None if there is none. Newcomers are not tried in trouble."""
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


# Gates: which candidates can take a request at all, and the target of the free requests.
#
# Before candidates are ranked, each one is checked for whether it can take the request: its images,
# its tools, its length. The policy decides among those that can; the others come last. If only one
# can, the request is *forced*: nothing is decided or tried, and its outcome is no evidence on what
# a choice would have led to.
#
# A promise covers all requests, so the free ones have to make up for the forced ones: with a
# share f of forced requests at rate r, their target is (alpha - f r) / (1 - f).


FAILED = "gates_failed"
"""Logged in place of the gates that differed between candidates if checking them failed: then
only the largest is eligible."""
LEAST_FREE = 0.02
"""Least share of free requests in the correction: with fewer, the target could be anything."""
HIGHEST, LOWEST = 0.995, 0.0
"""Bounds on the target of free requests."""


@record
class Gated:
    """The candidates that could take a request, where not all could, for the log."""

    eligible: tuple[str, ...] = public(
        "The healthy candidates that could take the request, if not all could. With a single one, "
        "the request was forced."
    )
    gated_by: tuple[str, ...] | None = public(
        "Why the others could not, in words, such as `images`; NULL if all could.", default=None
    )

    @property
    def is_forced(self) -> bool:
        """Whether a single candidate could take it."""
        return len(self.eligible) == 1


def forced(situation: Situation, expected_satisfaction: float) -> Decision:
    """Decide for the single candidate that can take the request, with probability 1."""
    (only,) = situation.estimates
    return Decision(
        ranking=(only.candidate,),
        explored=(),
        is_exploration=False,
        exploration_probability=0.0,
        expected_satisfaction=expected_satisfaction,
        propensity=1.0,
        reason=Reason.FORCED,
    )


def baseline(situation: Situation) -> str:
    """Return the baseline of savings if not all candidates can take the request: the largest if it
    can, else the most expensive one that can."""
    able = {estimate.candidate: estimate.cost for estimate in situation.estimates}
    return situation.largest if situation.largest in able else max(able, key=able.__getitem__)


def free_aim(aim: float, share: float, rate: float) -> float:
    """Return the target of free requests at which all together reach ``aim``: a ``share`` is
    forced, of which ``rate`` are satisfied. Clipped if no rate could make up for them."""
    if share <= 0.0:
        return aim
    wanted = (aim - share * rate) / max(1.0 - share, LEAST_FREE)
    return min(max(wanted, LOWEST), HIGHEST)
