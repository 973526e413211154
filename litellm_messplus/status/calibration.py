"""Calibration of the predictions: reliability in bins, and whether reading the prompt pays.

A prediction is calibrated if, of the calls predicted at 70 %, 70 % satisfied. Reading pays if the
predictions' log-loss is below that of the running means, which know nothing of the prompt."""

from collections import defaultdict
from dataclasses import astuple, dataclass
from enum import StrEnum
from heapq import heappop, heappush
from math import log, sqrt
from operator import add
from typing import Any, Self

from litellm_messplus.core.change import ChangeTest
from litellm_messplus.core.head import Label
from litellm_messplus.core.rates import FadingRate, rates
from litellm_messplus.figures.figure import Figure, Plain, part
from litellm_messplus.figures.interval import ENOUGH_ANSWERED, Interval, Z, effective, wilson

BINS = 10
EDGE = 0.01
"""Least distance of both sides' probabilities from 0 and 1, so that one surprise decides little."""
WORTHWHILE = 0.01
"""Share of the means' log-loss; a gain surely below it is not worth reading for."""


class ReadingPays(StrEnum):
    """The answer to: does reading the prompt pay?"""

    YES = "yes"
    NO = "no"
    TOO_EARLY = "too early"


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over judged calls: their weights and squares; by weight, predictions and verdicts, and
    both sides' log-loss; and by squared weight, as the interval needs them, the gains and their
    squares."""

    calls: int = 0
    weight: float = 0.0
    squares: float = 0.0
    predicted: float = 0.0
    satisfied: float = 0.0
    loss: float = 0.0
    loss_mean: float = 0.0
    gains: float = 0.0
    squared_gains: float = 0.0

    @classmethod
    def of(cls, predicted: float, mean: float, satisfaction: float, weight: float = 1.0) -> Self:
        """Return the sums of one call: its prediction, the running mean at that time, and its
        verdict."""
        loss, loss_mean = log_loss(predicted, satisfaction), log_loss(mean, satisfaction)
        gain, square = loss_mean - loss, weight * weight
        return cls(
            *(1, weight, square, weight * predicted, weight * satisfaction),
            *(weight * loss, weight * loss_mean, square * gain, square * gain**2),
        )

    def __add__(self, other: Self) -> Self:
        return type(self)(*map(add, astuple(self), astuple(other)))

    @property
    def satisfaction(self) -> float:
        """The weighted mean of the verdicts, of at least one call."""
        return min(self.satisfied / self.weight, 1.0)

    @property
    def around(self) -> Interval:
        """The 95 % interval of that mean."""
        found = wilson(self.satisfaction, effective(self.weight, self.squares))
        assert found is not None  # there are calls
        return found

    @property
    def gain(self) -> float:
        """What reading gains, in nats a call: above zero it helped."""
        return (self.loss_mean - self.loss) / self.weight

    @property
    def gain_interval(self) -> tuple[float | None, float | None]:
        """The 95 % interval of that weighted mean, with the correction for few calls."""
        if self.calls < 2:
            return None, None
        gain = self.gain
        spread = self.squared_gains - 2.0 * gain * self.gains + gain * gain * self.squares
        half = Z * sqrt(max(spread, 0.0) * self.calls / (self.calls - 1)) / self.weight
        return gain - half, gain + half

    @property
    def pays(self) -> ReadingPays:
        """Whether reading the prompt pays."""
        low, high = self.gain_interval
        if low is None or high is None or effective(self.weight, self.squares) < ENOUGH_ANSWERED:
            return ReadingPays.TOO_EARLY
        if low > 0.0:
            return ReadingPays.YES
        is_small = high < WORTHWHILE * self.loss_mean / self.weight
        return ReadingPays.NO if is_small else ReadingPays.TOO_EARLY


def log_loss(probability: float, satisfaction: float) -> float:
    """Compute the cross-entropy of a verdict from 0 to 1, in nats."""
    held = min(max(probability, EDGE), 1.0 - EDGE)
    return -satisfaction * log(held) - (1.0 - satisfaction) * log(1.0 - held)


# fmt: off
BIN: tuple[Figure[Sums], ...] = (
    Figure("low", "The bin holds predictions from `low` to below `high`, the last one 1 too."),
    Figure("high"),
    Figure("calls", "How many calls a figure rests on."),
    Figure("predicted", "The mean prediction in the bin.", lambda s: s.predicted / s.weight),
    Figure("satisfied", "The mean verdict in the bin, and Wilson's interval of 95 % around it. "
           "Where the predictions are right, `predicted` is inside nearly always.",
           lambda s: s.satisfaction),
    Figure("satisfied_low", "", lambda s: s.around.low),
    Figure("satisfied_high", "", lambda s: s.around.high),
)
"""The figures of a bin, whose ends are known beside its calls."""

READING: tuple[Figure[Sums], ...] = (
    Figure("log_loss", "Of the predictions, in nats a call; lower is better.",
           lambda s: s.loss / s.weight),
    Figure("log_loss_mean", "Of the running means, which do not know the prompt.",
           lambda s: s.loss_mean / s.weight),
    Figure("gain", "`log_loss_mean` minus `log_loss`, the mean over calls, and its interval of "
           "95 %."),
    Figure("gain_low", "", lambda s: s.gain_interval[0]),
    Figure("gain_high", "", lambda s: s.gain_interval[1]),
    Figure("reading_pays", "`yes` where all of the interval is above zero. `no` where all of it is "
           "below 1 % of `log_loss_mean`. Else, and below 100 calls, `too early`.",
           lambda s: s.pays),
)
"""The value of reading the prompt, over ``calls`` calls."""

CALIBRATION: tuple[Figure[Any], ...] = (
    Figure("zoo", "The service levels of a zoo share one predictor, so they are taken together. "
           "Candidates without a judged call are not listed, nor are zoos."),
    Figure("candidates"),
    Figure("candidate"),
    Figure("bins", "Calls by prediction, in ten equal bins; empty ones are left out."),
    *BIN,
    Figure("reading", "Whether reading the prompt paid: of a candidate, and over all of a zoo's."),
    *READING,
)
"""All of them, as the docs list them."""
# fmt: on


# Judged calls in the order of their decisions, each with the running means of that time.
#
# The running means are those that the router itself falls back to: they fade, start again where a
# model changed, and are shrunk towards all models'. A plain mean would be a weaker baseline if
# models change, and reading the prompt would seem to pay. At each decision they know the verdicts
# that were in the log by then, as the predictor did, and no later ones.


@dataclass(frozen=True, slots=True)
class JudgedCall:
    """A call with the verdict that counts, and its prediction at the decision.

    ``decided_at`` and ``known_at`` are log positions: of the request, and of the first at which
    call and verdict were known. If ``is_scored`` is false the call only updates the means.
    """

    zoo: str
    candidate: str
    decided_at: int
    known_at: int
    predicted: float
    satisfaction: float
    weight: float = 1.0
    is_scored: bool = True


def _reading(found: Sums) -> Plain:
    return {"calls": found.calls} | part(READING, found)


class Prequential:
    """The evaluation of all zoos; calls are added in the order of ``decided_at``."""

    def __init__(self) -> None:
        self._zoos: defaultdict[str, _Zoo] = defaultdict(_Zoo)

    def add(self, call: JudgedCall) -> None:
        """Score a call, and update the means by it when its verdict comes."""
        self._zoos[call.zoo].add(call)

    def calibration(self) -> list[Plain]:
        """Return the calibration by zoo and candidate, sorted by name; zoos without a scored call
        are left out."""
        found = [zoo.calibration(name) for name, zoo in sorted(self._zoos.items())]
        return [each for each in found if each is not None]


class _Zoo:
    def __init__(self) -> None:
        self._means: dict[str, FadingRate] = {}
        self._changes: defaultdict[str, ChangeTest] = defaultdict(ChangeTest)
        self._rates: dict[str, float] = {}
        self._waiting: list[tuple[int, str, float, float]] = []
        self._sums: defaultdict[str, Sums] = defaultdict(Sums)
        self._bins: defaultdict[tuple[str, int], Sums] = defaultdict(Sums)

    def add(self, call: JudgedCall) -> None:
        name = call.candidate
        self._means.setdefault(name, FadingRate())
        if self._learn(call.decided_at) or name not in self._rates:
            shrunk, _ = rates(list(self._means.values()))
            self._rates = dict(zip(self._means, shrunk, strict=True))
        heappush(self._waiting, (call.known_at, name, call.satisfaction, call.weight))
        if call.is_scored:
            added = Sums.of(call.predicted, self._rates[name], call.satisfaction, call.weight)
            self._sums[name] += added
            self._bins[name, min(int(call.predicted * BINS), BINS - 1)] += added

    def calibration(self, zoo: str) -> Plain | None:
        if not self._sums:
            return None
        bins: defaultdict[str, list[Plain]] = defaultdict(list)
        for (name, place), found in sorted(self._bins.items()):
            bins[name].append(part(BIN, found, low=place / BINS, high=(place + 1) / BINS))
        return {
            "zoo": zoo,
            "reading": _reading(sum(self._sums.values(), Sums())),
            "candidates": [
                {"candidate": name, "bins": each, "reading": _reading(self._sums[name])}
                for name, each in bins.items()
            ],
        }

    def _learn(self, position: int) -> bool:
        """Count the verdicts known before that position, and tell whether there were any."""
        due = False
        while self._waiting and self._waiting[0][0] < position:
            _, name, satisfaction, weight = heappop(self._waiting)
            mean, label = self._means[name], Label(satisfaction, weight)
            mean.add(satisfaction, weight)
            self._changes[name].add(satisfaction, self._rates[name], label, mean, float(position))
            due = True
        return due
