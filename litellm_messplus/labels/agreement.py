"""Trust in a judge: its agreement with users, and its position bias.

Agreement is Cohen's kappa, on calls that both judged. Kappa is agreement beyond that of two judges
who call as many answers satisfactory as these two, but at random: 1 is perfect, 0 is no better than
chance. Its standard error is that of Fleiss, Cohen and Everitt, "Large sample standard errors of
kappa and weighted kappa" (Psychological Bulletin 72, 1969).
"""

from dataclasses import dataclass
from math import sqrt

from litellm_messplus.runtime.vocabulary import Preferred

ENOUGH = 30
"""Least calls that both judged for a statement on their agreement."""
LEAST = 0.2
"""Least kappa of a judge with the users' feedback: if it is below with 95 % confidence, the judge's
labels stop counting. Landis and Koch call all agreement below it slight."""
Z = 1.96
"""Standard errors on either side of a 95 % interval."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Numbers of calls by the labels of judge and user; a value of 0.5 or more is satisfied."""

    both_satisfied: int = 0
    only_judge_satisfied: int = 0
    only_user_satisfied: int = 0
    neither: int = 0

    @property
    def calls(self) -> int:
        """The number of calls that both judged."""
        return (
            self.both_satisfied
            + self.only_judge_satisfied
            + self.only_user_satisfied
            + self.neither
        )

    @property
    def is_enough(self) -> bool:
        """Whether there are enough calls for a statement on agreement."""
        return self.calls >= ENOUGH

    @property
    def share(self) -> float | None:
        """The share of calls on which both agree, from 0 to 1; None without calls."""
        return (self.both_satisfied + self.neither) / self.calls if self.calls else None

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa, from -1 to 1; None without calls, or if both gave all calls one same
        label."""
        table = self._table() if self.calls else None
        return table.kappa if table is not None and table.chance < 1.0 else None

    @property
    def standard_error(self) -> float:
        """The standard error of kappa, with half a call added to each count: otherwise a judge that
        always gives one label has a kappa of 0 that looks certain after the first disagreement."""
        return self._table(added=0.5).standard_error

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of kappa, from the counts with half a call added to each."""
        kappa, half = self._table(added=0.5).kappa, Z * self.standard_error
        shown = kappa if self.kappa is None else self.kappa
        return max(-1.0, min(kappa - half, shown)), min(1.0, max(kappa + half, shown))

    def may_be(self, least: float) -> bool:
        """Tell whether kappa may be ``least`` or more: a judge agrees too little only if its whole
        interval lies below."""
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
    """Shares of ``total`` calls, by the judge's yes or no, then the user's."""

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
        """The share of calls on which they would agree by chance."""
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


# Weights of a judge's labels that make their mean equal that of users.

PRIOR = 10.0
"""Pseudo-calls on which both agree, so that few real ones change little."""
FARTHEST = 2.0
"""Upper bound of a weight, and of its inverse."""


def matching_weights(agreement: Agreement) -> tuple[float, float]:
    """Weigh unsatisfied and satisfied labels of the judge so that, on calls that users judged too,
    their mean is the users' mean. Both weights are 1 if too few calls were judged by both.

    A model that compares with its own answers rejects others more often than users do.
    """
    if not agreement.is_enough:
        return 1.0, 1.0
    judge_no = agreement.only_user_satisfied + agreement.neither + PRIOR
    user_no = agreement.only_judge_satisfied + agreement.neither + PRIOR
    judge_yes = agreement.both_satisfied + agreement.only_judge_satisfied + PRIOR
    user_yes = agreement.both_satisfied + agreement.only_user_satisfied + PRIOR
    return _near_one(user_no / judge_no), _near_one(user_yes / judge_yes)


def _near_one(weight: float) -> float:
    return min(max(weight, 1.0 / FARTHEST), FARTHEST)


# Position bias: each pair of answers is shown in both orders, so a judge that looks at the answers
# alone prefers the first as often as the second.

ENOUGH_PREFERENCES = 20
"""Least preferences for a statement on a judge's position bias."""


@dataclass(frozen=True, slots=True)
class PositionBias:
    """Numbers of comparisons by the place of the better answer."""

    first: int = 0
    second: int = 0
    neither: int = 0

    @property
    def preferences(self) -> int:
        """The number of comparisons in which one answer was better."""
        return self.first + self.second

    @property
    def share(self) -> float | None:
        """The share of preferences for the first minus that for the second, from -1 to 1; None
        without any."""
        return (self.first - self.second) / self.preferences if self.preferences else None

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the share (Wilson's): both orders of a pair count as one comparison,
        as a judge with a favourite place names it in both."""
        count = self.preferences / 2.0
        if count == 0.0:
            return -1.0, 1.0
        rate, scale = self.first / self.preferences, 1.0 + Z * Z / count
        middle = (rate + Z * Z / (2.0 * count)) / scale
        half = Z * sqrt(rate * (1.0 - rate) / count + Z * Z / (4.0 * count * count)) / scale
        return 2.0 * (middle - half) - 1.0, 2.0 * (middle + half) - 1.0

    def may_be_within(self, most: float) -> bool:
        """Tell whether the bias, towards either place, may be ``most`` or less: a judge is biased
        only if the whole interval lies beyond."""
        low, high = self.interval
        return self.preferences < ENOUGH_PREFERENCES or (low <= most and high >= -most)

    def after(self, preferred: Preferred) -> "PositionBias":
        """Return the counts with one more comparison."""
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
