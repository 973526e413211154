"""Requests without a choice: those that stay with their conversation, and those that one candidate
alone can take."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import IntEnum

from litellm_messplus.routing.decision import Decision, Reason, Situation
from litellm_messplus.rows import public, record

# Requests that stay where their conversation is: nothing is decided, tried or called beside them.
#
# What the policy would have ranked is kept for the retries, and its price for whoever looks at
# it. The queue counts on the model that is held.


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


# Gates: who can take a request at all, and what the others aim at where there is no choice.
#
# Before candidates are ranked, each one is asked whether it can take the request: its images, its
# tools, its length. The policy decides among those that can; the others come last. Where only one
# can, the request is *forced*: nothing is decided, nothing is tried beside it, and what came of
# it says nothing of what a choice would have.
#
# A promise is about all requests, so the free ones have to make up for the forced ones: with a
# share f of forced requests at rate r, they aim at (alpha - f r) / (1 - f).


class Answer(IntEnum):
    """The answer to whether something can take a request; a larger one is preferred."""

    NO = 0
    UNKNOWN = 1
    YES = 2


FAILED = "gates_failed"
"""The word of the log, in place of what told candidates apart, where asking them failed: the
largest alone is eligible then."""
LEAST_FREE = 0.02
"""Share of free requests that the correction counts on at least: fewer could be asked anything."""
HIGHEST, LOWEST = 0.995, 0.0
"""What free requests may be asked to aim at."""


@record
class Gated:
    """The candidates that could take a request, where not all could, for the log."""

    eligible: tuple[str, ...] = public(
        "The healthy candidates that could take the request, where not all could: the others "
        "were ranked last. With one of them alone the request was forced."
    )
    gated_by: tuple[str, ...] | None = public(
        "What told them apart, in words, such as `images`; NULL where all could.", default=None
    )

    @property
    def is_forced(self) -> bool:
        """Whether a single candidate could take it."""
        return len(self.eligible) == 1


def all_of(answers: Iterable[Answer]) -> Answer:
    """Return the answer to a request that needs all of these; one that needs nothing is taken."""
    return min(answers, default=Answer.YES)


def passing(answers: Mapping[str, Answer]) -> frozenset[str] | None:
    """Return the names with the best answer; None where nothing is to be gated.

    That is so where all answer the same, and where all answer NO in particular: then nobody is
    known to be the right one, and the request goes where it would have gone.
    """
    best = max(answers.values(), default=Answer.NO)
    if best is Answer.NO:
        return None
    found = frozenset(name for name, answer in answers.items() if answer is best)
    return None if len(found) == len(answers) else found


ROOM = 1.1
"""Times the tokens that were counted: models have tokenizers of their own."""


def fits(tokens: float, answer_tokens: float, window: int | None) -> Answer:
    """Return whether a prompt and its answer find room in a window; UNKNOWN where only the prompt
    does for sure. A window that nobody states takes everything."""
    if window is None:
        return Answer.YES
    if tokens > window:
        return Answer.NO
    return Answer.YES if ROOM * tokens + answer_tokens <= window else Answer.UNKNOWN


def forced(situation: Situation, expected_satisfaction: float) -> Decision:
    """Decide where a single candidate can take the request: that one, for sure."""
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
    """Return what savings compare with where not all can take the request: the largest, if it can;
    else the most expensive of those that can."""
    able = {estimate.candidate: estimate.cost for estimate in situation.estimates}
    return situation.largest if situation.largest in able else max(able, key=able.__getitem__)


def free_aim(aim: float, share: float, rate: float) -> float:
    """Return what free requests aim at, so that all come to ``aim``: a ``share`` is forced, of
    which ``rate`` are satisfied. Clipped where no rate could make up for them."""
    if share <= 0.0:
        return aim
    wanted = (aim - share * rate) / max(1.0 - share, LEAST_FREE)
    return min(max(wanted, LOWEST), HIGHEST)
