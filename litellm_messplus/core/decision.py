"""The input and the output of a policy: numbers in, a decision out."""

from dataclasses import dataclass
from enum import StrEnum
from math import log, sqrt

from litellm_messplus.core.answer_heads import Spread
from litellm_messplus.core.plan import Outlook


class Reason(StrEnum):
    """The reason for a candidate, as the log keeps it; a sentence is made of it where it is shown.

    Every policy adds its own; `none_healthy`, `deadline_missed` and `undecided` are the proxy's.
    """

    AHEAD = "ahead"
    BEHIND = "behind"
    OUT_OF_REACH = "out_of_reach"
    UNLABELLED = "unlabelled"
    PROBE = "probe"
    UNSEEN_PROBE = "unseen_probe"
    NEWCOMER = "newcomer"
    UNSEEN_NEWCOMER = "unseen_newcomer"
    FIRST_REQUEST = "first_request"
    EXPLORATION = "exploration"
    NO_DEBT = "no_debt"
    LEAST_PENALTY = "least_penalty"
    FORCED = "forced"
    HELD = "held"
    TROUBLE = "trouble"
    NONE_HEALTHY = "none_healthy"
    DEADLINE_MISSED = "deadline_missed"
    UNDECIDED = "undecided"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimates of one candidate for one request, before any call.

    ``cost`` is the cost of this request and ``typical_cost`` that of an average one, in the zoo's
    unit; ``satisfaction`` is the paper's s-hat, a probability.
    """

    candidate: str
    cost: float
    typical_cost: float
    satisfaction: float


@dataclass(frozen=True, slots=True)
class Situation:
    """The situation of one request: all that a policy may use, in addition to what it has learned.

    ``t`` counts the requests of the service level from 1; ``alpha`` is the target of its queue.
    ``estimates`` holds the healthy candidates only. ``in_flight`` is the expected shortfall of
    requests that were decided and are not in the log yet. The draws are uniform in [0, 1):
    randomness comes in as numbers, so that the same situation always gives the same decision.
    ``outlook`` covers the recent prompts, its models in the order of ``estimates``; None if there
    are not enough of them. ``is_labelled`` states whether every answer to the request will get a
    label; None if unknown in advance. ``is_forced`` if the gates left a single candidate.
    ``newcomers`` are healthy candidates that are still on trial.
    ``spread`` is what the answers of ``estimates`` usually show; None if the answer to this request
    may not be replaced by a second one.
    """

    t: int
    alpha: float
    queue: float
    in_flight: float
    estimates: tuple[Estimate, ...]
    largest: str
    exploration_draw: float
    choice_draw: float
    outlook: Outlook | None = None
    is_labelled: bool | None = None
    is_forced: bool = False
    newcomers: tuple[Estimate, ...] = ()
    spread: Spread | None = None

    @property
    def everyone(self) -> tuple[Estimate, ...]:
        """The estimates of all healthy candidates."""
        return (*self.estimates, *self.newcomers)


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision for one request, and the reason for it.

    ``ranking`` orders the healthy candidates, the one to serve first, so that a retry goes to the
    next best. ``explored`` are the candidates to call in addition, unseen by the user.
    ``propensity`` is the probability with which the first was chosen; ``price`` what one more
    satisfied request might cost, if the policy has such a price. ``is_within_reach`` states
    whether a candidate may hold alpha, as far as the policy knows. If it ``reads``, the answer
    may be replaced by a second one.
    """

    ranking: tuple[str, ...]
    explored: tuple[str, ...]
    is_exploration: bool
    exploration_probability: float
    expected_satisfaction: float
    propensity: float
    reason: Reason
    price: float | None = None
    is_within_reach: bool = True
    reads: bool = False

    @property
    def chosen(self) -> str:
        """The candidate that is to serve the request."""
        return self.ranking[0]


# When to explore, and how (paper, Section 2.3 and Algorithm 1).


def exploration_probability(t: int, c: float) -> float:
    """Compute p_t = min(1, c / t^(1/4)) for the t-th request, counted from 1."""
    return float(min(1.0, c / t**0.25))


def every_candidate(situation: Situation, probability: float, reason: Reason) -> Decision:
    """Call all healthy candidates; the user gets the answer of the largest one, or of the most
    expensive one if the largest is not healthy."""
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


# The virtual queue: the accumulated shortfall of satisfaction against alpha (paper, Eq. 2).


def after(queue: float, shortfall: float) -> float:
    """Compute Q(t+1) = max(0, Q(t) + alpha - s): a satisfied request repays 1 - alpha of the debt.

    ``shortfall`` is (alpha - s) times the weight of the label; if a second verdict replaces the
    first, it is the difference of the two.
    """
    return max(0.0, queue + shortfall)


# The target of the queue, and the weight of a label, if the labels are not the whole truth.
#
# With a `confidence` the target lies so far above alpha that the certificate's lower bound reaches
# alpha and stays there. The certificate (docs/certificate.md) proves a share from the labels that
# exist: its lower bound lies below the share that they show by about
#
# sqrt(v (2 log(1 / miss) + log(answered) / 2 + FIT)) / answered,
#
# as a mixture of bets does, where v is the variance that the labels leave open: zero if every
# request has one. That surplus, in answered requests, must be there at every look. It grows with
# the root of their number; hence the target is raised by its growth from one answered request to
# the next, which falls to zero.

FIT = 1.5
"""Constant that fits the bound to the certificate's within a tenth, from 100 to 200,000 labels."""
STEEPEST = 0.4
"""Largest raise of the target, at first, as a share of the distance from alpha to 1."""
RESERVE = 14.0
"""Surplus held if every request has a label, in standard deviations of one label: the sum wanders
around its target, and the last request counts as much as the others."""
FILLING = 0.04
"""Raise of the target to fill the reserve, as a share of the distance from alpha to 1. Slowly: if
alpha is close to the rate of the best model, a higher target buys little at a high cost."""


def surplus(alpha: float, answered: int, share: float, confidence: float) -> float:
    """Return the surplus to hold, in answered requests, after ``answered`` requests that are a
    ``share`` of all."""
    above, variance = 1.0 - alpha, alpha * (1.0 - alpha)
    reserve = min(RESERVE * sqrt(variance), FILLING * above * answered)
    left_open = answered * variance * (1.0 - share)
    bound = sqrt(left_open * (-2.0 * log(1.0 - confidence) + log(max(answered, 1)) / 2.0 + FIT))
    return reserve + min(bound, STEEPEST * above * answered)


def raised(alpha: float, answered: int, requests: int, confidence: float) -> float:
    """Return what is added to alpha for the next request, if ``answered`` of all ``requests`` are
    answered."""
    share = min(answered / max(requests, 1), 1.0)
    after = surplus(alpha, answered + 1, share, confidence)
    return after - surplus(alpha, answered, share, confidence)


def aim(alpha: float, raised: float) -> float:
    """Return the share of satisfied labels to aim at; ``raised`` is what a promise with a
    `confidence` adds to alpha."""
    return min(alpha + raised, (1.0 + alpha) / 2.0)


def label_weight(satisfaction: float, response_bias: float) -> float:
    """Weigh a label if unsatisfied users answer ``response_bias`` times as often.

    A satisfied label then stands for that many times as many requests as an unsatisfied one; the
    average of the two weights is 1.
    """
    return 2.0 * (1.0 + (response_bias - 1.0) * satisfaction) / (1.0 + response_bias)
