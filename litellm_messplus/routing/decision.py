"""What a policy is told, and what it answers: numbers in, a decision out."""

from dataclasses import dataclass
from enum import StrEnum

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
