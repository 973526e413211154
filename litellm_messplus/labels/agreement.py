"""How far a judge can be trusted: its agreement with the users, and whether it prefers a place.

Agreement is Cohen's kappa, on calls that both judged.
Kappa is agreement beyond what two judges would come to by chance who call as many answers
satisfactory as these two do: 1 is perfect, 0 is no better than chance. Its standard error is that
of Fleiss, Cohen and Everitt, "Large sample standard errors of kappa and weighted kappa"
(Psychological Bulletin 72, 1969).
"""

from dataclasses import dataclass
from math import sqrt

from litellm_messplus.runtime.vocabulary import Preferred

ENOUGH = 30
"""Calls that both judged, below which nothing is said of their agreement."""
LEAST = 0.2
"""The kappa with the users' feedback that a judge must reach: where it lies below with 95 %
confidence, the judge's labels stop counting. By Landis and Koch's words, all below is slight."""
Z = 1.96
"""Standard errors on either side, for 95 %."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """The counts of calls by what the judge and the user said; from 0.5 on is satisfied."""

    both_satisfied: int = 0
    only_judge_satisfied: int = 0
    only_user_satisfied: int = 0
    neither: int = 0

    @property
    def calls(self) -> int:
        """The calls that both judged."""
        return (
            self.both_satisfied
            + self.only_judge_satisfied
            + self.only_user_satisfied
            + self.neither
        )

    @property
    def is_enough(self) -> bool:
        """Whether there are enough calls to speak of agreement at all."""
        return self.calls >= ENOUGH

    @property
    def share(self) -> float | None:
        """The share of calls on which both said the same, from 0 to 1; None without any."""
        return (self.both_satisfied + self.neither) / self.calls if self.calls else None

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa, from -1 to 1; None without calls, or where both said one and the same of
        them all."""
        table = self._table() if self.calls else None
        return table.kappa if table is not None and table.chance < 1.0 else None

    @property
    def standard_error(self) -> float:
        """The standard error of kappa, with half a call added to each count: otherwise a judge that
        has only ever said one thing has a kappa of 0 that looks certain after the first
        disagreement."""
        return self._table(added=0.5).standard_error

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the true kappa, at 95 %; from the counts with half a call added to
        each."""
        kappa, half = self._table(added=0.5).kappa, Z * self.standard_error
        shown = kappa if self.kappa is None else self.kappa
        return max(-1.0, min(kappa - half, shown)), min(1.0, max(kappa + half, shown))

    def may_be(self, least: float) -> bool:
        """Tell whether a kappa of ``least`` or more is within what the calls allow: all of the
        interval must lie below before a judge is found to agree too little."""
        return not self.is_enough or self.interval[1] >= least

    def __str__(self) -> str:
        if self.kappa is None:
            return f"unknown ({self.calls} calls)"
        low, high = self.interval
        return f"{self.kappa:.2f} ({low:.2f} to {high:.2f}, {self.calls} calls)"

    def _table(self, added: float = 0.0) -> "_Table":
        total = self.calls + 4.0 * added
        return _Table(
            total,
            (self.both_satisfied + added) / total,
            (self.only_judge_satisfied + added) / total,
            (self.only_user_satisfied + added) / total,
            (self.neither + added) / total,
        )


@dataclass(frozen=True, slots=True)
class _Table:
    """Shares of ``total`` calls: the judge's yes and no by the user's yes and no."""

    total: float
    yes_yes: float
    yes_no: float
    no_yes: float
    no_no: float

    @property
    def judge_yes(self) -> float:
        return self.yes_yes + self.yes_no

    @property
    def user_yes(self) -> float:
        return self.yes_yes + self.no_yes

    @property
    def chance(self) -> float:
        """The share on which they would agree by chance."""
        return self.judge_yes * self.user_yes + (1.0 - self.judge_yes) * (1.0 - self.user_yes)

    @property
    def kappa(self) -> float:
        return (self.yes_yes + self.no_no - self.chance) / (1.0 - self.chance)

    @property
    def standard_error(self) -> float:
        judge, user, rest = self.judge_yes, self.user_yes, 1.0 - self.kappa
        agreeing = self.yes_yes * (1.0 - (judge + user) * rest) ** 2
        agreeing += self.no_no * (1.0 - (2.0 - judge - user) * rest) ** 2
        differing = self.yes_no * (user + 1.0 - judge) ** 2
        differing += self.no_yes * (judge + 1.0 - user) ** 2
        expected = self.kappa - self.chance * rest
        variance = agreeing + rest**2 * differing - expected**2
        return sqrt(max(0.0, variance) / self.total) / (1.0 - self.chance)


# What a judge's labels must weigh so that, together, they say what users say.

PRIOR = 10.0
"""Calls on which both are taken to agree, so that a few say little."""
FARTHEST = 2.0
"""Of a weight, and of one divided by it."""


def matching_weights(said: Agreement) -> tuple[float, float]:
    """Weigh an unsatisfied and a satisfied label of the judge so that their mean on the calls that
    users judged too is the users' mean. 1 where too few were judged by both.

    A model that compares with its own answers finds others too weak, more often than users do.
    """
    if not said.is_enough:
        return 1.0, 1.0
    judge_no = said.only_user_satisfied + said.neither + PRIOR
    user_no = said.only_judge_satisfied + said.neither + PRIOR
    judge_yes = said.both_satisfied + said.only_judge_satisfied + PRIOR
    user_yes = said.both_satisfied + said.only_user_satisfied + PRIOR
    return _near_one(user_no / judge_no), _near_one(user_yes / judge_yes)


def _near_one(weight: float) -> float:
    return min(max(weight, 1.0 / FARTHEST), FARTHEST)


# Does a judge prefer an answer for the place in which it is shown? Each two answers are shown in
# both orders, so a judge of the answers alone prefers the first as often as the second.

ENOUGH_PREFERENCES = 20
"""Preferences below which nothing is said of a judge."""


@dataclass(frozen=True, slots=True)
class PositionBias:
    """The number of comparisons by the place of the answer that was found better."""

    first: int = 0
    second: int = 0
    neither: int = 0

    @property
    def preferences(self) -> int:
        """Comparisons in which one answer was found better."""
        return self.first + self.second

    @property
    def share(self) -> float | None:
        """The share of preferences for the first less that for the second, from -1 to 1; None
        without a preference."""
        return (self.first - self.second) / self.preferences if self.preferences else None

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the true share, at 95 % (Wilson's): the two orders of the same answers
        count as one, for a judge with a favourite place says the same in both."""
        count = self.preferences / 2.0
        if count == 0.0:
            return -1.0, 1.0
        rate, scale = self.first / self.preferences, 1.0 + Z * Z / count
        middle = (rate + Z * Z / (2.0 * count)) / scale
        half = Z * sqrt(rate * (1.0 - rate) / count + Z * Z / (4.0 * count * count)) / scale
        return 2.0 * (middle - half) - 1.0, 2.0 * (middle + half) - 1.0

    def may_be_within(self, most: float) -> bool:
        """Tell whether a bias of ``most`` or less, towards either place, is within what the
        comparisons allow: all of the interval must lie beyond before a judge is found to be
        biased."""
        low, high = self.interval
        return self.preferences < ENOUGH_PREFERENCES or (low <= most and high >= -most)

    def after(self, preferred: Preferred) -> "PositionBias":
        """Add one more comparison."""
        return PositionBias(
            self.first + (preferred is Preferred.FIRST),
            self.second + (preferred is Preferred.SECOND),
            self.neither + (preferred is Preferred.NEITHER),
        )

    def __str__(self) -> str:
        if self.share is None:
            return "unknown"
        low, high = self.interval
        return f"{self.share:+.2f} ({low:+.2f} to {high:+.2f}, {self.preferences} preferences)"
