"""Calibration of the predictions: reliability in bins, and whether reading the prompt pays.

A prediction is calibrated if, of the calls predicted at 70 %, 70 % satisfied. Reading pays if the
predictions' log-loss is below that of the running means, which know nothing of the prompt."""

from collections import defaultdict
from dataclasses import astuple, dataclass
from enum import StrEnum
from heapq import heappop, heappush
from math import log, sqrt
from operator import add
from typing import Self

from litellm_messplus.core.change import ChangeTest
from litellm_messplus.core.head import Label
from litellm_messplus.core.rates import FadingRate, rates
from litellm_messplus.figures.interval import ENOUGH_ANSWERED, Z, effective, wilson

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
class Bin:
    """Calls with a prediction from ``low`` to below ``high`` (the last bin includes 1).

    ``predicted`` and ``satisfied`` are means over its ``calls``, weighted as their verdicts;
    ``satisfied`` has a Wilson interval of 95 %.
    """

    low: float
    high: float
    calls: int
    predicted: float
    satisfied: float
    satisfied_low: float
    satisfied_high: float


@dataclass(frozen=True, slots=True)
class PromptGain:
    """The value of reading the prompt over ``calls`` calls, in nats per call.

    ``gain`` is ``log_loss_mean - log_loss``: above zero, reading helped. Its 95 % interval is that
    of a mean; None for a single call.
    """

    calls: int
    log_loss: float
    log_loss_mean: float
    gain: float
    gain_low: float | None
    gain_high: float | None
    reading_pays: ReadingPays


@dataclass(frozen=True, slots=True)
class CandidateCalibration:
    """The calibration of one candidate's judged calls; ``bins`` holds those with calls, the lowest
    first."""

    candidate: str
    bins: tuple[Bin, ...]
    reading: PromptGain


@dataclass(frozen=True, slots=True)
class ZooCalibration:
    """The calibration of one zoo, whose service levels share a predictor; ``reading`` is over all
    candidates."""

    zoo: str
    reading: PromptGain
    candidates: tuple[CandidateCalibration, ...]


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

    def bin(self, place: int) -> Bin:
        """Return the bin at a place, of at least one call."""
        satisfied = min(self.satisfied / self.weight, 1.0)
        interval = wilson(satisfied, effective(self.weight, self.squares))
        assert interval is not None  # there are calls
        return Bin(
            *(place / BINS, (place + 1) / BINS, self.calls, self.predicted / self.weight),
            *(satisfied, interval.low, interval.high),
        )

    def reading(self) -> PromptGain:
        """Compute the value of reading over at least one call."""
        loss, loss_mean = self.loss / self.weight, self.loss_mean / self.weight
        gain = (self.loss_mean - self.loss) / self.weight
        low, high = self._interval(gain)
        pays = _answer(effective(self.weight, self.squares), low, high, loss_mean)
        return PromptGain(self.calls, loss, loss_mean, gain, low, high, pays)

    def _interval(self, gain: float) -> tuple[float | None, float | None]:
        """Compute the interval of a weighted mean, with the correction for few calls."""
        if self.calls < 2:
            return None, None
        spread = self.squared_gains - 2.0 * gain * self.gains + gain * gain * self.squares
        half = Z * sqrt(max(spread, 0.0) * self.calls / (self.calls - 1)) / self.weight
        return gain - half, gain + half


def log_loss(probability: float, satisfaction: float) -> float:
    """Compute the cross-entropy of a verdict from 0 to 1, in nats."""
    held = min(max(probability, EDGE), 1.0 - EDGE)
    return -satisfaction * log(held) - (1.0 - satisfaction) * log(1.0 - held)


def _answer(calls: float, low: float | None, high: float | None, loss_mean: float) -> ReadingPays:
    if low is None or high is None or calls < ENOUGH_ANSWERED:
        return ReadingPays.TOO_EARLY
    if low > 0.0:
        return ReadingPays.YES
    return ReadingPays.NO if high < WORTHWHILE * loss_mean else ReadingPays.TOO_EARLY


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


class Prequential:
    """The evaluation of all zoos; calls are added in the order of ``decided_at``."""

    def __init__(self) -> None:
        self._zoos: defaultdict[str, _Zoo] = defaultdict(_Zoo)

    def add(self, call: JudgedCall) -> None:
        """Score a call, and update the means by it when its verdict comes."""
        self._zoos[call.zoo].add(call)

    def calibration(self) -> list[ZooCalibration]:
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

    def calibration(self, zoo: str) -> ZooCalibration | None:
        if not self._sums:
            return None
        bins: dict[str, list[Bin]] = {}
        for (name, place), found in sorted(self._bins.items()):
            bins.setdefault(name, []).append(found.bin(place))
        return ZooCalibration(
            zoo,
            sum(self._sums.values(), Sums()).reading(),
            tuple(
                CandidateCalibration(name, tuple(each), self._sums[name].reading())
                for name, each in bins.items()
            ),
        )

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
