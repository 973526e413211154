"""The expected satisfaction of conversations, and which models earn the verdict on each.

If a promise counts conversations, the first request of one stands for all of it: the expectation
and the verdict are kept under that request's id. Later requests, its turns, change the expectation
if another model takes over. When the verdict comes, each model that served learns it by its share
of the turns: the shares sum to 1, so that a task of fifty turns weighs as much as a task of one,
and a model that took over late is not blamed alone.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from litellm_messplus.runtime.bounded import Bounded

Shares = tuple[tuple[str, float], ...]
"""The share of the turns that each candidate served."""


def shares_of(served: Iterable[str | None]) -> Shares:
    """Divide a conversation among the models that served its turns; None is a model outside the
    zoo, which gets a share and learns nothing."""
    turns = Counter(served)
    return tuple((name, count / turns.total()) for name, count in turns.items() if name is not None)


class Course(NamedTuple):
    """The course of a conversation so far: its number of ``turns``, the ``expected`` shortfall of
    all of it, and that of the model that serves it ``now``."""

    turns: int
    expected: float
    now: float

    @classmethod
    def begun(cls, shortfall: float) -> "Course":
        """Begin with the first request."""
        return cls(1, shortfall, shortfall)

    def went_on(self, shortfall: float | None) -> "Course":
        """Add a turn: ``shortfall`` is expected of the model that takes over, None if the same one
        continues."""
        now = self.now if shortfall is None else shortfall
        turns = self.turns + 1
        return Course(turns, self.expected + (now - self.expected) / turns, now)


CREDITED = 1_024
"""The number of last judged conversations whose shares are kept."""


class Credits:
    """The shares by which verdicts were learned, so that a second verdict replaces the first
    exactly, although other models may have served since."""

    def __init__(self) -> None:
        self._shares: Bounded[str, Shares] = Bounded(CREDITED)

    def of(self, conversation: str) -> Mapping[str, float] | None:
        """Return the shares by which its verdict was learned; None if unknown."""
        found = self._shares.get(conversation)
        return None if found is None else dict(found)

    def keep(self, conversation: str, shares: Shares) -> None:
        """Keep the shares of the verdict that counts now, and drop the oldest."""
        self._shares[conversation] = shares

    def plain(self) -> dict[str, dict[str, float]]:
        """Return all of it as JSON, oldest first."""
        return {name: dict(shares) for name, shares in self._shares.items()}

    def load(self, plain: Mapping[str, Mapping[str, float]]) -> None:
        """Load what ``plain`` returned."""
        self._shares.clear()
        self._shares.update((name, tuple(each.items())) for name, each in plain.items())
