"""What a judge may spend in a day (UTC)."""

from dataclasses import dataclass
from datetime import date

from litellm_messplus.labels.purchasing import own_share


@dataclass(frozen=True, slots=True)
class Spent:
    """The spending of a day on grading: how often the judge was asked, and the dollars known of."""

    day: date
    gradings: int = 0
    dollars: float = 0.0


class DailyBudget:
    """The budget of a day: it counts what is spent here, what gradings under way are expected to
    cost, and what the log says was spent by everybody; a new day begins at zero. The workers share
    what is left at a look at the log, for none sees what the others spend until the next.
    ``dollars`` is the limit, None without one."""

    def __init__(self, *, gradings: int, dollars: float | None) -> None:
        self._most_gradings = gradings
        self.dollars = dollars
        self._spent = Spent(date.min)
        self._at_look = Spent(date.min)
        self._under_way = 0.0
        self._workers = 1

    def has_room(self, today: date, expected: float = 0.0) -> bool:
        """Tell whether the judge may be asked once more, at an expected cost in dollars."""
        asked, before = self._of(today).gradings, _on(today, self._at_look).gradings
        if own_share(self._most_gradings - before, asked - before, self._workers) <= 0.0:
            return False
        if self.dollars is None:
            return True
        left = self.left(today)
        return left > 0.0 and left >= expected

    def left(self, today: date) -> float:
        """Compute the dollars that this worker may spend until the next look."""
        dollars, before = self._of(today).dollars, _on(today, self._at_look).dollars
        since = dollars - before + self._under_way
        return own_share((self.dollars or 0.0) - before, since, self._workers)

    def begin(self, today: date, expected: float = 0.0) -> None:
        """Count that the judge is asked once more, whatever comes of it, and keep the dollars that
        it is expected to cost."""
        spent = self._of(today)
        self._spent = Spent(today, spent.gradings + 1, spent.dollars)
        self._under_way += expected

    def end(self, today: date, expected: float = 0.0, dollars: float = 0.0) -> None:
        """Count what it did cost, in the place of what was expected."""
        spent = self._of(today)
        self._spent = Spent(today, spent.gradings, spent.dollars + dollars)
        self._under_way -= expected

    def learn(self, logged: Spent, workers: int = 1) -> None:
        """Learn what the log holds of a day: it knows other workers, and not yet all of our own.
        So many workers look at it."""
        self._workers = workers
        if logged.day < self._spent.day:  # read just before midnight
            return
        spent = self._of(logged.day)
        self._spent = Spent(
            logged.day,
            max(spent.gradings, logged.gradings),
            max(spent.dollars, logged.dollars),
        )
        self._at_look = self._spent

    def _of(self, today: date) -> Spent:
        return _on(today, self._spent)


def _on(today: date, spent: Spent) -> Spent:
    return spent if spent.day == today else Spent(today)
