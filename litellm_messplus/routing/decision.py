"""What a policy is told, and what it answers: numbers in, a decision out."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is expected of one candidate for one request, before any call.

    ``cost`` is in the zoo's unit; ``satisfaction`` is the paper's s-hat, a probability.
    """

    candidate: str
    cost: float
    satisfaction: float


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything a policy may look at for one request.

    ``t`` counts the requests of the service level from 1. ``estimates`` holds the healthy
    candidates only. ``exploration_draw`` is uniform in [0, 1): randomness comes in as a number, so
    that the same situation always gives the same decision.
    """

    t: int
    queue: float
    estimates: tuple[Estimate, ...]
    largest: str
    exploration_draw: float


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do with one request, and why.

    ``ranking`` orders the healthy candidates, the one to serve first, so that a retry goes to the
    next best. ``explored`` are the candidates to call beside the served one, unseen by the user.
    """

    ranking: tuple[str, ...]
    explored: tuple[str, ...]
    is_exploration: bool
    exploration_probability: float
    reason: str

    @property
    def chosen(self) -> str:
        """The candidate that is to serve the request."""
        return self.ranking[0]
