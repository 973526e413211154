"""What a policy is told, and what it answers: numbers in, a decision out."""

from dataclasses import dataclass
from enum import StrEnum
from math import log, sqrt

from litellm_messplus.routing.limits import Limits
from litellm_messplus.routing.plan import Outlook


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


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimates of one candidate for one request, before any call.

    ``cost`` is of this request and ``typical_cost`` of an average one, in the zoo's unit;
    ``satisfaction`` is the paper's s-hat, a probability. ``length`` is how many times as long as
    the candidate's usual answer this one is expected to be.
    """

    candidate: str
    cost: float
    typical_cost: float
    satisfaction: float
    length: float = 1.0


@dataclass(frozen=True, slots=True)
class Situation:
    """The situation of one request: everything a policy may look at, beside what it has learned.

    ``t`` counts the requests of the service level from 1; ``alpha`` is what its queue aims at.
    ``estimates`` holds the healthy candidates only. ``in_flight`` is the expected shortfall of
    requests that were decided and are not in the log yet. The draws are uniform in [0, 1):
    randomness comes in as numbers, so that the same situation always gives the same decision.
    ``outlook`` is of the recent prompts, its models in the order of ``estimates``; None before
    there are enough of them. ``is_labelled`` says whether every answer to the request will get a
    label; None where nobody knows before. ``is_forced`` where the gates left a single candidate.
    ``newcomers`` are healthy candidates too, which are tried with care and not chosen yet.
    ``counted`` is the number of its conversation, from 1, where the promise counts those; None
    where it counts requests.
    ``limits`` are those beside alpha, None where the service level has none; the costs of
    ``outlook`` are charged for lateness by them, those of the estimates are not.
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
    limits: Limits | None = None
    counted: int | None = None

    @property
    def number(self) -> int:
        """The number of what the promise counts, this request or its conversation included."""
        return self.t if self.counted is None else self.counted

    @property
    def strain(self) -> float:
        """The number of times that a unit of cost counts as much as without a budget."""
        return 1.0 if self.limits is None else self.limits.strain

    @property
    def everyone(self) -> tuple[Estimate, ...]:
        """The estimates of all healthy candidates."""
        return (*self.estimates, *self.newcomers)


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision for one request, and the reason for it.

    ``ranking`` orders the healthy candidates, the one to serve first, so that a retry goes to the
    next best. ``explored`` are the candidates to call beside the served one, unseen by the user.
    ``propensity`` is the probability with which the first was chosen; ``price`` what one more
    satisfied request might cost, where the policy has such a price. ``is_within_reach`` says
    whether a candidate may hold alpha, as far as the policy can tell.
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

    @property
    def chosen(self) -> str:
        """The candidate that is to serve the request."""
        return self.ranking[0]


# When to explore, and how (paper, Section 2.3 and Algorithm 1).


def exploration_probability(t: int, c: float) -> float:
    """Compute p_t = min(1, c / t^(1/4)) for the t-th request, counted from 1."""
    return float(min(1.0, c / t**0.25))


def every_candidate(situation: Situation, probability: float, reason: Reason) -> Decision:
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


# The virtual queue: the accumulated shortfall of satisfaction against alpha (paper, Eq. 2).


def after(queue: float, shortfall: float) -> float:
    """Compute Q(t+1) = max(0, Q(t) + alpha - s): a satisfied request pays 1 - alpha of the debt
    back.

    ``shortfall`` is alpha - s, times what the label counts; where a second verdict replaces the
    first, it is the difference of theirs.
    """
    return max(0.0, queue + shortfall)


# What the queue aims at, and how much a label weighs, where the labels are not the whole truth.
#
# With a `confidence` the aim lies so far above alpha that the certificate's lower bound reaches
# alpha and stays there. The certificate (docs/certificate.md) proves a share by the labels that
# there are: its lower bound lies below the share that they show by about
#
# sqrt(v (2 log(1 / miss) + log(answered) / 2 + FIT)) / answered,
#
# as a mixture of bets does, where v is the variance of what the labels leave open: nothing where
# every request has one. So much surplus must be there, in answered requests, whenever somebody
# looks. It grows with the root of their number; hence the aim is raised by what it grows by from
# one answered request to the next, which falls to nothing.

FIT = 1.5
"""Makes the bound follow the certificate's to a tenth, from 100 labels to 200,000."""
STEEPEST = 0.4
"""Share of what lies above alpha by which the aim is raised at first, when nothing is known."""
RESERVE = 14.0
"""Surplus that is held where every request has a label, in standard deviations of one label: what
the sum wanders by around what is aimed at, and the last request counts as much as the others."""
FILLING = 0.04
"""Share of what lies above alpha by which the aim is raised to fill the reserve. Slowly: where
alpha is near to what the best model holds, a higher aim calls an expensive one for little."""


def surplus(alpha: float, answered: int, share: float, confidence: float) -> float:
    """Give the surplus to hold after so many ``answered`` requests, which are that ``share`` of
    all: in answered requests."""
    above, variance = 1.0 - alpha, alpha * (1.0 - alpha)
    reserve = min(RESERVE * sqrt(variance), FILLING * above * answered)
    left_open = answered * variance * (1.0 - share)
    bound = sqrt(left_open * (-2.0 * log(1.0 - confidence) + log(max(answered, 1)) / 2.0 + FIT))
    return reserve + min(bound, STEEPEST * above * answered)


def raised(alpha: float, answered: int, requests: int, confidence: float) -> float:
    """Give what comes on top of alpha for the next request, where that many are ``answered`` of all
    ``requests``."""
    share = min(answered / max(requests, 1), 1.0)
    after = surplus(alpha, answered + 1, share, confidence)
    return after - surplus(alpha, answered, share, confidence)


def aim(alpha: float, *, label_noise: float, raised: float = 0.0) -> float:
    """Compute the share of satisfied labels to hold so that that of satisfied requests is alpha.

    ``raised`` is what a promise with a `confidence` adds. Where a label is wrong with probability
    ``label_noise``, the truth alpha shows as noise + (1 - 2 noise) alpha.
    """
    wanted = min(alpha + raised, (1.0 + alpha) / 2.0)
    return label_noise + (1.0 - 2.0 * label_noise) * wanted


def label_weight(satisfaction: float, response_bias: float) -> float:
    """Weigh a label where unsatisfied users answer ``response_bias`` times as often.

    A satisfied label then stands for that many times as many requests as an unsatisfied one; the
    two weigh 1 on average.
    """
    return 2.0 * (1.0 + (response_bias - 1.0) * satisfaction) / (1.0 + response_bias)
