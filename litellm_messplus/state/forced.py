"""Forced requests as the log tells of them: what share they are of the judged ones, at what rate.

A request is forced where the gates left one candidate. The share is of judged requests, for the
promise is about those; a zoo whose forced requests nobody judges has none to make up for.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from litellm_messplus.prediction.head import Label
from litellm_messplus.routing.gates import free_aim

MEMORY = 500
"""Judged requests over which the share is taken, and forced ones over which the rate is."""
PRIOR = 8.0
"""Forced verdicts' worth of belief that they are as good as expected, before there are any."""


@dataclass(slots=True)
class ForcedRequests:
    """The forced requests of one service level. ``weight`` is of the verdicts that ``rate`` is the
    mean of."""

    share: float = 0.0
    rate: float = 0.0
    weight: float = 0.0

    def answered(
        self, verdict: Label, judged: int, *, is_forced: bool, counts: float = 1.0
    ) -> None:
        """Count the first verdict on a request, the ``judged``-th of its level, as many times as it
        ``counts``: ``verdict`` is weighed so already."""
        part = min(counts / min(max(judged, 1), MEMORY), 1.0)
        self.share += (float(is_forced) - self.share) * part
        if is_forced:
            self.weight = min(self.weight + verdict.weight, MEMORY)
            self.rate += (verdict.value - self.rate) * verdict.weight / self.weight

    def revised(self, previous: Label, verdict: Label) -> None:
        """Put a later verdict on a forced request in the place of the one before."""
        gained = verdict.weight * (verdict.value - self.rate)
        lost = previous.weight * (previous.value - self.rate)
        self.rate = min(max(self.rate + (gained - lost) / max(self.weight, 1.0), 0.0), 1.0)

    def expected(self, otherwise: float) -> float:
        """Return the rate that a forced request is expected to have; ``otherwise`` is what is
        expected of it where no verdicts are there to say so."""
        return (self.weight * self.rate + PRIOR * otherwise) / (self.weight + PRIOR)

    def free_aim(self, aim: float) -> float:
        """Return what the free requests of a level aim at, whose requests together aim at
        ``aim``."""
        return free_aim(aim, self.share, self.expected(aim))

    def plain(self) -> list[float]:
        return [self.share, self.rate, self.weight]

    @classmethod
    def of(cls, plain: Sequence[float]) -> "ForcedRequests":
        """Rebuild what ``plain`` gave."""
        return cls(*plain)
