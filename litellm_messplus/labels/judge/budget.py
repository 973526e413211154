"""What a judge may spend in a day (UTC)."""

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True)
class Spent:
    """What grading came to on a day: how often the judge was asked, and the dollars known of."""

    day: date
    gradings: int = 0
    dollars: float = 0.0


class DailyBudget:
    """Counts what is spent here, and what the log says was spent by everybody; a new day begins at
    zero."""

    def __init__(self, *, gradings: int, dollars: float | None) -> None:
        self._most_gradings = gradings
        self._most_dollars = dollars
        self._spent = Spent(date.min)

    def has_room(self, today: date) -> bool:
        """Whether the judge may be asked once more. Its last grading may go beyond the dollars:
        what it costs is known when it is paid."""
        spent = self._of(today)
        if spent.gradings >= self._most_gradings:
            return False
        return self._most_dollars is None or spent.dollars < self._most_dollars

    def asked(self, today: date) -> None:
        """The judge is asked once more, whatever comes of it."""
        spent = self._of(today)
        self._spent = Spent(today, spent.gradings + 1, spent.dollars)

    def paid(self, today: date, dollars: float) -> None:
        """That cost so much."""
        spent = self._of(today)
        self._spent = Spent(today, spent.gradings, spent.dollars + dollars)

    def learn(self, logged: Spent) -> None:
        """What the log holds of a day: it knows other workers, and not yet all of our own."""
        if logged.day < self._spent.day:  # read just before midnight
            return
        spent = self._of(logged.day)
        self._spent = Spent(
            logged.day,
            max(spent.gradings, logged.gradings),
            max(spent.dollars, logged.dollars),
        )

    def _of(self, today: date) -> Spent:
        return self._spent if self._spent.day == today else Spent(today)
