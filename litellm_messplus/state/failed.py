"""What is owed for failed requests where a promise counts them: of an outage, no more than a few.

No choice of model answers a request that every deployment refuses, and satisfying others better is
no help to whoever got an error. So failures are made up for as long as they are a few among many,
and an outage is not repaid: its debt is bounded by what `REPAID` satisfied requests repay, each of
which repays 1 - alpha. Where alpha is 1, nothing ever could.
"""

from dataclasses import dataclass

REPAID = 20.0
"""Satisfied requests that repay all that is owed of one outage."""
FEW = 0.05
"""Failures for each judged request that are made up for in full, however long they go on; beyond
that share the alert `failing` stands."""


@dataclass(slots=True)
class FailureDebt:
    """The debt of failures that was taken on and is not worn off, in judged requests."""

    taken: float = 0.0

    def failed(self, alpha: float, answered_share: float) -> float:
        """Return what a failed request is owed: alpha, for it counts as unsatisfied, as far as the
        bound has room. Of requests some users judge, of failures all are known: so one counts as
        the share of answers."""
        most = answered_share * REPAID * (1.0 - alpha)
        owed = min(answered_share * alpha, max(most - self.taken, 0.0))
        self.taken += owed
        return owed

    def judged(self) -> None:
        """Make room, as an answer was judged."""
        self.taken = max(self.taken - FEW, 0.0)
