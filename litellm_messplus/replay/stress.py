"""What goes wrong with labels: few, biased, late, flipped ones, and a model that degrades."""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.replay.recording import Matrix, ReplayError

DEGRADED_SHARE = 0.5
"""Of a degraded model's labels that become the other's."""

Item = TypeVar("Item")


@dataclass(frozen=True)
class Degrade:
    """A model that gets worse: from the share ``start`` of a run on, half of ``model``'s answers
    are as good as ``other``'s answer to the same request. Its costs stay."""

    model: str
    other: str
    start: float

    @classmethod
    def parse(cls, text: str, models: tuple[str, ...]) -> "Degrade":
        """Parse `MODEL=OTHER@0.5`. Raises ReplayError for anything else, or an unknown model."""
        match = re.fullmatch(r"(?P<model>.+)=(?P<other>.+)@(?P<start>0?\.\d+|[01])", text)
        if match is None or not {match["model"], match["other"]} <= set(models):
            raise ReplayError(
                f"--degrade: given '{text}'; allowed: MODEL=OTHER@START, two of "
                f"{', '.join(models)}, and the share of the run from 0 to 1 at which it starts"
            )
        return cls(match["model"], match["other"], float(match["start"]))

    def first(self, requests: int) -> int:
        """Return the place of the first request that it can strike."""
        return int(self.start * requests)


@dataclass(frozen=True)
class Stress:
    """The stress of a run. ``feedback`` is the probability that a satisfied user answers;
    unsatisfied ones do so ``feedback_bias`` times as often. Where that is more than 1, they always
    answer, and satisfied ones with probability 1 / ``feedback_bias``. Labels arrive ``delay``
    requests late, and are wrong with probability ``flip``."""

    feedback: float = 1.0
    feedback_bias: float = 1.0
    delay: int = 0
    flip: float = 0.0
    degrade: Degrade | None = None

    def answer_shares(self) -> tuple[float, float]:
        """Return how likely a satisfied and an unsatisfied user answer."""
        unsatisfied = min(1.0, self.feedback * self.feedback_bias)
        return min(self.feedback, unsatisfied / self.feedback_bias), unsatisfied


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers of every call that could be made in a run; shapes (requests, models).

    ``truth`` is whether its answer satisfies, ``label`` what is said of it, and ``is_given``
    whether anything is said at all.
    """

    truth: Matrix
    label: Matrix
    is_given: NDArray[np.bool_]


def answers(
    satisfied: Matrix, models: tuple[str, ...], stress: Stress, generator: np.random.Generator
) -> Answers:
    """Draw what a run under stress finds. Every option has draws of its own, whether it is on or
    not, so that runs of one seed differ by the options alone."""
    degraded = generator.random(len(satisfied))
    answered, flipped = generator.random((2, *satisfied.shape))
    truth = _degrade(satisfied, models, stress.degrade, degraded)
    if_satisfied, if_unsatisfied = stress.answer_shares()
    share = if_unsatisfied + truth * (if_satisfied - if_unsatisfied)
    label = np.where(flipped < stress.flip, 1.0 - truth, truth)
    return Answers(truth, label, answered < share)


def _degrade(
    satisfied: Matrix, models: tuple[str, ...], degrade: Degrade | None, draws: Matrix
) -> Matrix:
    if degrade is None:
        return satisfied
    model, other = models.index(degrade.model), models.index(degrade.other)
    struck = draws < DEGRADED_SHARE
    struck[: degrade.first(len(satisfied))] = False
    truth = satisfied.copy()
    truth[struck, model] = satisfied[struck, other]
    return truth


class Late(Generic[Item]):
    """Labels on their way: that of request i is there before request i + 1 + delay is decided."""

    def __init__(self, delay: int) -> None:
        self._delay = delay
        self._waiting: deque[tuple[int, Item]] = deque()

    def add(self, request: int, item: Item) -> None:
        self._waiting.append((request + 1 + self._delay, item))

    def due(self, request: int) -> Iterator[Item]:
        """Yield what has arrived before ``request`` is decided, in the order in which it was
        added."""
        while self._waiting and self._waiting[0][0] <= request:
            yield self._waiting.popleft()[1]
