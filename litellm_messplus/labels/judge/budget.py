"""The budget of a judge for a day (UTC)."""

from dataclasses import dataclass
from datetime import date
from itertools import count

from litellm_messplus.runtime.purse import Purse

GRADINGS_PER_DAY = 10_000
"""Calls of a judge in a day (UTC), failed ones included, whatever they cost."""
LAG_SECONDS = 60.0
"""Seconds until a grading is surely in the log; its settled cost stays reserved for so long."""


@dataclass(frozen=True, slots=True)
class Spent:
    """The spending of a day on grading: the number of calls of the judge, and the known dollars."""

    day: date
    gradings: int = 0
    dollars: float = 0.0


class JudgeBudget:
    """The gradings of a day, and its dollars if ``dollars`` limits them, shared by all workers. The
    budget of a new day begins at the next read of the log."""

    def __init__(self, dollars: float | None, *, gradings: int = GRADINGS_PER_DAY) -> None:
        self.dollars = dollars
        self._most = gradings
        self._gradings = Purse(LAG_SECONDS, float(gradings))
        self._dollars = Purse(LAG_SECONDS, dollars)
        self._numbers = count()

    def has_room(self, expected: float = 0.0) -> bool:
        """Tell whether the judge may be called once more, at an expected cost in dollars."""
        if self._gradings.left <= 0.0:
            return False
        return self.dollars is None or (self.left > 0.0 and self.left >= expected)

    @property
    def left(self) -> float:
        """The dollars that this worker may spend until it reads the log again."""
        return self._dollars.left

    def begin(self, expected: float = 0.0) -> str:
        """Count one more call of the judge, whatever its outcome, and reserve its expected dollars;
        return the name of that grading."""
        name = str(next(self._numbers))
        self._gradings.reserve(name, 1.0)
        self._dollars.reserve(name, expected)
        return name

    def end(self, name: str, dollars: float = 0.0) -> None:
        """Replace the expected cost of a grading by the actual one."""
        self._dollars.reserve(name, dollars)
        for purse in (self._gradings, self._dollars):
            purse.settled(name)

    def learn(self, logged: Spent, read_at: float) -> None:
        """Learn a day's spending as logged at ``read_at``, and how many workers share the rest."""
        self._gradings.learn(self._most - logged.gradings, read_at)
        if self.dollars is not None:
            self._dollars.learn(self.dollars - logged.dollars, read_at)
