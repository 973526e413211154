"""What a promise expects of conversations, and who earns the one verdict on each.

Where a promise counts conversations, the first request of one stands for all of it: what is
expected of the conversation, and the verdict on it, are noted under that request's id. The later
requests, its turns, change what is expected where another model takes over. When the verdict
comes, each model that served learns it, by its share of the turns: the shares sum to 1, so that a
task of fifty turns weighs as much as a task of one, and whoever came to the rescue is not blamed
alone.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from litellm_messplus.runtime.bounded import Bounded

Shares = tuple[tuple[str, float], ...]
"""Candidates, and the share of the turns that each served."""


def shares_of(served: Iterable[str | None]) -> Shares:
    """Divide a conversation among those who served its turns; None is somebody outside the zoo, who
    earns a share and learns nothing."""
    turns = Counter(served)
    return tuple((name, count / turns.total()) for name, count in turns.items() if name is not None)


class Course(NamedTuple):
    """The course of a conversation so far: how many ``turns`` it has, the shortfall that is
    ``expected`` of all of it, and that of the model that serves it ``now``."""

    turns: int
    expected: float
    now: float

    @classmethod
    def begun(cls, shortfall: float) -> "Course":
        """Begin with the first request."""
        return cls(1, shortfall, shortfall)

    def went_on(self, shortfall: float | None) -> "Course":
        """Add a turn: None where the model that served before goes on, else what is expected of the
        one that takes over."""
        now = self.now if shortfall is None else shortfall
        turns = self.turns + 1
        return Course(turns, self.expected + (now - self.expected) / turns, now)


CREDITED = 1_024
"""Conversations of which it is remembered who earned the verdict: those judged last."""


class Credits:
    """The memory of who earned a verdict, so that a second one replaces the first exactly, although
    other models may have served since."""

    def __init__(self, most: int = CREDITED) -> None:
        self._shares: Bounded[str, Shares] = Bounded(most)

    def __len__(self) -> int:
        return len(self._shares)

    def of(self, conversation: str) -> Mapping[str, float] | None:
        """Return the shares by which its verdict was learned; None where that is not known."""
        found = self._shares.get(conversation)
        return None if found is None else dict(found)

    def keep(self, conversation: str, shares: Shares) -> None:
        """Remember the shares of the verdict that counts now, and forget the oldest."""
        self._shares[conversation] = shares

    def plain(self) -> dict[str, dict[str, float]]:
        """Return all of it as JSON, the oldest first."""
        return {name: dict(shares) for name, shares in self._shares.items()}

    def load(self, plain: Mapping[str, Mapping[str, float]]) -> None:
        """Take over what ``plain`` gave."""
        self._shares.clear()
        self._shares.update((name, tuple(each.items())) for name, each in plain.items())
