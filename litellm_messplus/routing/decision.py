"""What a policy is told, and what it answers: numbers in, a decision out."""

from dataclasses import dataclass

from litellm_messplus.routing.plan import Outlook


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is expected of one candidate for one request, before any call.

    ``cost`` is of this request and ``typical_cost`` of an average one, in the zoo's unit;
    ``satisfaction`` is the paper's s-hat, a probability.
    """

    candidate: str
    cost: float
    typical_cost: float
    satisfaction: float


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything a policy may look at for one request, beside what it has learned.

    ``t`` counts the requests of the service level from 1; ``alpha`` is what its queue aims at.
    ``estimates`` holds the healthy candidates only. ``in_flight`` is the expected shortfall of
    requests that were decided and are not in the log yet. The draws are uniform in [0, 1):
    randomness comes in as numbers, so that the same situation always gives the same decision.
    ``outlook`` is of the recent prompts, its models in the order of ``estimates``; None before
    there are enough of them.
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


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do with one request, and why.

    ``ranking`` orders the healthy candidates, the one to serve first, so that a retry goes to the
    next best. ``explored`` are the candidates to call beside the served one, unseen by the user.
    ``propensity`` is the probability with which the first was chosen; ``price`` what one more
    satisfied request might cost, where the policy has such a price.
    """

    ranking: tuple[str, ...]
    explored: tuple[str, ...]
    is_exploration: bool
    exploration_probability: float
    expected_satisfaction: float
    propensity: float
    reason: str
    price: float | None = None
    is_within_reach: bool = True

    @property
    def chosen(self) -> str:
        """The candidate that is to serve the request."""
        return self.ranking[0]
