"""How much more often unsatisfied users answer than satisfied ones, from an audit by the judge.

The judge grades a uniform sample, whether the user answers or not. Of a graded request whose user
answered, the user's word is taken; of one whose user was silent, only the judge's is there, and it
errs. How often, in either direction, is seen where both spoke, so the silent users' satisfaction
follows as in Rogan and Gladen, "Estimating prevalence from the results of a screening test"
(American Journal of Epidemiology 107, 1978). That supposes that

- which requests are graded has nothing to do with the user's answer: a draw decides it;
- the judge errs as often on silent users' requests as on the others: it sees no feedback, but users
  who answer about other prompts than the silent ones would break it;
- what a user says is the truth.

Users who have not answered yet are silent here. That shifts both shares alike, not their ratio, if
satisfied users are as quick as others.
"""

from dataclasses import dataclass, field
from math import exp, log, sqrt

from litellm_messplus.labels.agreement import Agreement, Z

LEAST_SKILL = 0.2
"""How much more often the judge must call an answer satisfactory that is than one that is not: what
it says of silent users is divided by that."""
PRIOR = 0.7
"""Standard deviation of the ratio's logarithm over services: from half to twice as often."""
WIDEST = 3.0
"""Of an interval, its upper end by its lower one; a wider one is thin evidence."""


@dataclass(frozen=True, slots=True)
class Audit:
    """Graded requests: what was said of those whose users ``answered``, and what the judge alone
    says of the others."""

    answered: Agreement = field(default_factory=Agreement)
    silent_satisfied: int = 0
    silent_unsatisfied: int = 0

    @property
    def graded(self) -> int:
        """The number of all of them."""
        return self.answered.calls + self.silent_satisfied + self.silent_unsatisfied


@dataclass(frozen=True, slots=True)
class Estimate:
    """P(feedback | unsatisfied) / P(feedback | satisfied) with its interval of 95 %: above 1,
    unsatisfied users answer more often.

    Where ``is_corrected`` is false the judge was taken at its word, which pulls the ratio towards
    1. Where ``is_thin`` the audit does not bear a decision.
    """

    ratio: float
    low: float
    high: float
    is_corrected: bool
    is_thin: bool


def estimate(audit: Audit) -> Estimate:
    """Estimate the ratio that an audit shows; of an empty one 1, with an interval that says
    nothing.

    The interval is normal in the logarithm (delta method). Half a request is added to each count,
    so that none is zero.
    """
    counts = _Counts.of(audit)
    is_corrected = audit.answered.is_enough and counts.is_identified
    middle, deviation = counts.corrected() if is_corrected else counts.at_its_word()
    low, high = exp(middle - Z * deviation), exp(middle + Z * deviation)
    is_thin = not is_corrected or high > WIDEST * low
    return Estimate(exp(middle), low, high, is_corrected, is_thin)


def cautious(found: Estimate) -> float:
    """Return the ratio to correct by: the less the estimate rests on, the nearer to 1.

    The mean of the logarithm given the audit, where `PRIOR` says how far from 1 the ratio usually
    is: nobody's word is weighed by a guess, and there is no threshold to jump at.
    """
    deviation = log(found.high / found.low) / (2.0 * Z)
    return float(found.ratio ** (PRIOR**2 / (PRIOR**2 + deviation**2)))


def corrected_rate(mean: float, mean_square: float, ratio: float) -> float:
    """Estimate the share satisfied of all users, from the mean and the mean square of the verdicts
    of those who answered, where unsatisfied ones answer ``ratio`` times as often.

    The mean by the weights that a `response_bias` of ``ratio`` gives the verdicts.
    """
    more = ratio - 1.0
    return (mean + more * mean_square) / (1.0 + more * mean)


@dataclass(frozen=True, slots=True)
class _Counts:
    """The counts of graded requests: hits and misses on satisfied users who answered, false alarms
    and rejections on unsatisfied ones, yes and no on silent ones."""

    hits: float
    misses: float
    false_alarms: float
    rejections: float
    yes: float
    no: float

    @classmethod
    def of(cls, audit: Audit) -> "_Counts":
        said = audit.answered
        return cls(
            hits=said.both_satisfied + 0.5,
            misses=said.only_user_satisfied + 0.5,
            false_alarms=said.only_judge_satisfied + 0.5,
            rejections=said.neither + 0.5,
            yes=audit.silent_satisfied + 0.5,
            no=audit.silent_unsatisfied + 0.5,
        )

    @property
    def satisfied(self) -> float:
        """Users who answered so."""
        return self.hits + self.misses

    @property
    def unsatisfied(self) -> float:
        """Users who answered so."""
        return self.false_alarms + self.rejections

    @property
    def hit_rate(self) -> float:
        return self.hits / self.satisfied

    @property
    def alarm_rate(self) -> float:
        return self.false_alarms / self.unsatisfied

    @property
    def skill(self) -> float:
        """Youden's index: 1 for a judge that never errs, 0 for one that guesses."""
        return self.hit_rate - self.alarm_rate

    @property
    def is_identified(self) -> bool:
        """Whether the judge tells enough for the silent users' satisfaction to follow, and it lies
        between none of them and all."""
        if self.skill < LEAST_SKILL:
            return False
        return self.alarm_rate < self.yes / (self.yes + self.no) < self.hit_rate

    def corrected(self) -> tuple[float, float]:
        """Return the logarithm of the ratio, and its standard error.

        Its variance is the sum, over the counts, of the count times the square of how the logarithm
        moves with it: for counts that are independent, or parts of a whole.
        """
        silent, skill = self.yes + self.no, self.skill
        silent_satisfied = (self.yes - self.alarm_rate * silent) / skill
        silent_unsatisfied = silent - silent_satisfied
        satisfied = self.satisfied + silent_satisfied
        unsatisfied = self.unsatisfied + silent_unsatisfied
        middle = log(self.unsatisfied / unsatisfied) - log(self.satisfied / satisfied)

        moved = 1.0 / satisfied + 1.0 / unsatisfied  # by one silent user who is satisfied after all
        by_hit_rate = -silent_satisfied / skill * moved
        by_alarm_rate = -silent_unsatisfied / skill * moved
        by_satisfied = 1.0 / satisfied - 1.0 / self.satisfied
        by_unsatisfied = 1.0 / self.unsatisfied - 1.0 / unsatisfied
        yes_satisfied = (1.0 - self.alarm_rate) / skill  # how many are, of one more judged so
        slopes = {
            "hits": by_satisfied + by_hit_rate * self.misses / self.satisfied**2,
            "misses": by_satisfied - by_hit_rate * self.hits / self.satisfied**2,
            "false_alarms": by_unsatisfied + by_alarm_rate * self.rejections / self.unsatisfied**2,
            "rejections": by_unsatisfied - by_alarm_rate * self.false_alarms / self.unsatisfied**2,
            "yes": yes_satisfied * moved - 1.0 / unsatisfied,
            "no": -self.alarm_rate / skill * moved - 1.0 / unsatisfied,
        }
        variance = sum(getattr(self, name) * slope**2 for name, slope in slopes.items())
        return middle, sqrt(variance)

    def at_its_word(self) -> tuple[float, float]:
        """Return the same where whatever the judge says is the truth."""
        answered, graded = self.hits + self.false_alarms, self.hits + self.false_alarms + self.yes
        answered_no = self.misses + self.rejections
        graded_no = answered_no + self.no
        middle = log(answered_no / graded_no) - log(answered / graded)
        variance = 1.0 / answered_no - 1.0 / graded_no + 1.0 / answered - 1.0 / graded
        return middle, sqrt(max(variance, 0.0))
