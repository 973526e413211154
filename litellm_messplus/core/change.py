"""Whether a model has changed: Page sums of its labels against what the prompt predicted.

Why it exists: a mean that forgets fast enough to follow a model that silently changes is too noisy
to keep an expensive one out. So means stay slow, and these sums find out when one is out of date.
They compare each label with the prediction for its prompt from before it, so that hard prompts are
not mistaken for a worse model.
"""

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field

from litellm_messplus.core.head import Label
from litellm_messplus.core.rates import FadingRate, fading
from litellm_messplus.core.trust import log_odds

TESTS = ((-0.5, 4.75), (-1.2, 8.0), (0.4, 8.0), (1.2, 9.5))
"""The tested shifts in the log-odds of satisfaction, and the evidence for each that raises the
alarm, both in nats: a drop by ten points is found after some 150 labels, one by fifty after 13, and
about one alarm in 5,000 labels is false. An improvement is less urgent, and takes more evidence."""
KNOWN = 100.0
"""Least weight of the labels from before a suspicion: less cannot be found out of date."""
BOUGHT = 20
"""Requests after a change whose labels are bought: few show that a model changed, some more what it
is now. They count when they are decided: late labels must not make them many."""
BELIEVED = 20.0
"""Most weight of the labels since a change in the mean that starts again: the alarm selects them,
so they look more changed than the model is."""
TAKEN_BACK, SETTLED = 2.5, -5.0
"""Evidence of the labels since an alarm, in nats, that nothing has changed: from there on the alarm
is taken back; and that it was right: from there on it stands. A run of bad luck raises an alarm as
a change does, but does not go on. Left out (20 seeds): one run of zeroeval_mix ends 1.7 instead of
0.7 points below alpha, since its best model stays out; the cost is the same."""
_EDGE = 0.02


@dataclass(slots=True)
class PageSum:
    """The ``evidence`` for one shift, in nats, and the labels since it was last zero, as the mean
    counts them, which are all that is known of the model if it did change. ``since`` is the time of
    the first of them, in seconds since 1970."""

    evidence: float = 0.0
    weight: float = 0.0
    total: float = 0.0
    since: float = 0.0

    def add(self, ratio: float, counted: Label, at: float) -> None:
        """Add a label with its log-likelihood ratio, in nats. As evidence no label counts more than
        once, whatever its weight: it is one observation."""
        if self.weight == 0.0:
            self.since = at
        keep = fading(counted.weight)
        self.evidence += min(counted.weight, 1.0) * ratio
        self.weight = self.weight * keep + counted.weight
        self.total = self.total * keep + counted.weight * counted.value


@dataclass(frozen=True, slots=True)
class Change:
    """A change that was found: the time of the first label after it and of the alarm, in seconds
    since 1970, and the rate ``before`` it."""

    since: float
    found: float
    before: float


@dataclass(slots=True)
class Aside:
    """The labels that an alarm took out of the mean, by ``weight`` and ``total``, until it is
    settled; ``evidence`` in nats that nothing has changed, from the labels since."""

    weight: float
    total: float
    evidence: float = 0.0


@dataclass(slots=True)
class ChangeTest:
    """The sums of one model, its newest change, if any, and the number of requests still ``due``
    whose labels are to be bought because of it. Labels from before it are set ``aside``, until the
    labels after it have settled whether it was one."""

    sums: list[PageSum] = field(default_factory=lambda: [PageSum() for _ in TESTS])
    change: Change | None = None
    due: int = 0
    aside: Aside | None = None

    @property
    def suspicion(self) -> float:
        """The largest evidence for a drop, as a share of what raises the alarm."""
        pairs = zip(self.sums, TESTS, strict=True)
        return max(each.evidence / alarm for each, (shift, alarm) in pairs if shift < 0.0)

    def add(self, value: float, guess: float, counted: Label, mean: FadingRate, at: float) -> bool:
        """Test a label of that ``value``, predicted as ``guess``, which the mean has just
        ``counted``. On an alarm, start the mean again and return True."""
        guess = _within(guess)
        self._reconsider(value, guess, counted, mean)
        for each, (shift, _) in zip(self.sums, TESTS, strict=True):
            each.add(_log_ratio(value, guess, shift), counted, at)
            if each.evidence <= 0.0 or mean.weight - each.weight < KNOWN:
                each.evidence = each.weight = each.total = 0.0
        tested = [(each, *test) for each, test in zip(self.sums, TESTS, strict=True)]
        found = [shift < 0.0 for each, shift, alarm in tested if each.evidence > alarm]
        if not found:
            return False
        alike = [each for each, shift, _ in tested if (shift < 0.0) is found[0]]
        surest = max(alike, key=lambda each: each.evidence)
        before = (mean.total - surest.total) / (mean.weight - surest.weight)
        self.change = Change(surest.since, at, min(max(before, 0.0), 1.0))
        self.due = BOUGHT
        believed = min(BELIEVED / surest.weight, 1.0)
        weight, total = believed * surest.weight, believed * surest.total
        self.aside = Aside(mean.weight - weight, mean.total - total)
        mean.restart(weight, total)
        self.sums = [PageSum() for _ in TESTS]
        return True

    def _reconsider(self, value: float, guess: float, counted: Label, mean: FadingRate) -> None:
        """Compare the rate before the change with the mean that started again, by how they predict
        a label that this has just counted. Where nothing seems to have changed, forget the change
        and give the mean its labels back."""
        if self.aside is None or self.change is None:
            return
        known = max(mean.weight - counted.weight, 1.0)
        now = (mean.total - counted.weight * counted.value) / known
        ratio = _log_ratio(value, guess, _log_odds(self.change.before) - _log_odds(now))
        self.aside.evidence += min(counted.weight, 1.0) * ratio
        self.aside.weight *= fading(counted.weight)
        self.aside.total *= fading(counted.weight)
        if self.aside.evidence >= TAKEN_BACK:
            mean.weight += self.aside.weight
            mean.total += self.aside.total
            self.change, self.due = None, 0
        if not SETTLED < self.aside.evidence < TAKEN_BACK:
            self.aside = None

    def bought(self) -> None:
        """Count a request whose labels are bought, if such are due."""
        self.due = max(self.due - 1, 0)

    def numbers(self) -> list[float]:
        """Return the sums for a snapshot."""
        return [
            number
            for each in self.sums
            for number in (each.evidence, each.weight, each.total, each.since)
        ]

    def plain(self) -> list[float] | None:
        """Return the change for a snapshot."""
        if self.change is None:
            return None
        aside = [] if self.aside is None else astuple(self.aside)
        return [*astuple(self.change), self.due, *aside]

    @classmethod
    def of(cls, numbers: Sequence[float], plain: Sequence[float] | None) -> "ChangeTest":
        """Return the test that gave these ``numbers`` and ``plain``."""
        sums = [PageSum(*numbers[place : place + 4]) for place in range(0, len(numbers), 4)]
        if plain is None:
            return cls(sums)
        since, found, before, due, *aside = plain
        change = Change(since, found, before)
        return cls(sums, change, int(due), Aside(*aside) if aside else None)


def _within(rate: float) -> float:
    return min(max(rate, _EDGE), 1.0 - _EDGE)


def _log_odds(rate: float) -> float:
    return log_odds(_within(rate))


def _log_ratio(label: float, rate: float, shift: float) -> float:
    """Compute the log-likelihood ratio of a label, after the shift against before, in nats."""
    shifted = rate / (rate + (1.0 - rate) * math.exp(-shift))
    return label * math.log(shifted / rate) + (1.0 - label) * math.log(
        (1.0 - shifted) / (1.0 - rate)
    )
