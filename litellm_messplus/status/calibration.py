"""Can the predictions be believed: reliability in bins, and whether reading the prompt pays.

A prediction is calibrated where, of the calls predicted at 70 %, 70 % satisfied. Reading pays where
the predictions' log-loss is below that of the running means, which know nothing of the prompt."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from heapq import heappop, heappush
from math import log, sqrt

from litellm_messplus.figures.interval import ENOUGH_ANSWERED, Z, effective, wilson
from litellm_messplus.prediction.rates import FadingRate, rates

BINS = 10
EDGE = 0.01
"""Both sides' probabilities are held that far from 0 and 1, so that one surprise decides little."""
WORTHWHILE = 0.01
"""A gain that is surely below this share of the means' log-loss is no gain worth reading for."""


class ReadingPays(StrEnum):
    """The answer to: does reading the prompt pay?"""

    YES = "yes"
    NO = "no"
    TOO_EARLY = "too early"


@dataclass(frozen=True, slots=True)
class Bin:
    """Calls whose prediction was from ``low`` to below ``high`` (the last bin: 1 too).

    ``predicted`` and ``satisfied`` are means over its ``calls``, each by the weight of its verdict;
    Wilson's interval of 95 % is around ``satisfied``.
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
    """The value of reading the prompt over so many ``calls``, in nats a call.

    ``gain`` is ``log_loss_mean - log_loss``: above zero, reading helped. Its interval of 95 % is
    that of a mean; None for a single call.
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


@dataclass(slots=True)
class Weights:
    """The weight of so many verdicts together."""

    calls: int = 0
    sum: float = 0.0
    squares: float = 0.0

    def add(self, weight: float) -> None:
        """Count a verdict."""
        self.calls += 1
        self.sum += weight
        self.squares += weight * weight

    def add_all(self, others: "Weights") -> None:
        """Count those of another."""
        self.calls += others.calls
        self.sum += others.sum
        self.squares += others.squares

    @property
    def effective(self) -> float:
        """The number of equal verdicts that say as much."""
        return effective(self.sum, self.squares)


@dataclass(slots=True)
class Losses:
    """Weighted sums of log-loss; and of the gains and their squares by the squared weights, which
    their interval needs."""

    weights: Weights = field(default_factory=Weights)
    predicted: float = 0.0
    mean: float = 0.0
    gains: float = 0.0
    squared_gains: float = 0.0

    def add(self, predicted: float, mean: float, satisfaction: float, weight: float = 1.0) -> None:
        """Add one call: what was predicted, what the running mean was, and what came."""
        loss, loss_mean = log_loss(predicted, satisfaction), log_loss(mean, satisfaction)
        self.weights.add(weight)
        self.predicted += weight * loss
        self.mean += weight * loss_mean
        self.gains += weight**2 * (loss_mean - loss)
        self.squared_gains += weight**2 * (loss_mean - loss) ** 2

    def reading(self) -> PromptGain:
        """Compute the reading of at least one call."""
        whole = self.weights.sum
        gain = (self.mean - self.predicted) / whole
        low, high = self._interval(gain)
        return PromptGain(
            calls=self.weights.calls,
            log_loss=self.predicted / whole,
            log_loss_mean=self.mean / whole,
            gain=gain,
            gain_low=low,
            gain_high=high,
            reading_pays=_answer(self.weights.effective, low, high, self.mean / whole),
        )

    def _interval(self, gain: float) -> tuple[float | None, float | None]:
        """Compute the interval of a weighted mean, with the correction for few calls."""
        calls, whole, squares = self.weights.calls, self.weights.sum, self.weights.squares
        if calls < 2:
            return None, None
        spread = self.squared_gains - 2.0 * gain * self.gains + gain * gain * squares
        half = Z * sqrt(max(spread, 0.0) * calls / (calls - 1)) / whole
        return gain - half, gain + half


@dataclass(slots=True)
class Reliability:
    """Weights, predictions and satisfactions of one candidate, summed in equal bins."""

    weights: list[Weights] = field(default_factory=lambda: [Weights() for _ in range(BINS)])
    predicted: list[float] = field(default_factory=lambda: [0.0] * BINS)
    satisfied: list[float] = field(default_factory=lambda: [0.0] * BINS)

    def add(self, predicted: float, satisfaction: float, weight: float = 1.0) -> None:
        """Count a call; prediction and satisfaction are from 0 to 1."""
        place = min(int(predicted * BINS), BINS - 1)
        self.weights[place].add(weight)
        self.predicted[place] += weight * predicted
        self.satisfied[place] += weight * satisfaction

    def bins(self) -> tuple[Bin, ...]:
        """Return the bins with calls."""
        return tuple(self._bin(place) for place in range(BINS) if self.weights[place].calls)

    def _bin(self, place: int) -> Bin:
        weights = self.weights[place]
        satisfied = min(self.satisfied[place] / weights.sum, 1.0)
        interval = wilson(satisfied, weights.effective)
        assert interval is not None  # there are calls
        return Bin(
            low=place / BINS,
            high=(place + 1) / BINS,
            calls=weights.calls,
            predicted=self.predicted[place] / weights.sum,
            satisfied=satisfied,
            satisfied_low=interval.low,
            satisfied_high=interval.high,
        )


def log_loss(probability: float, satisfaction: float) -> float:
    """Compute the cross-entropy of a verdict from 0 to 1, in nats."""
    held = min(max(probability, EDGE), 1.0 - EDGE)
    return -satisfaction * log(held) - (1.0 - satisfaction) * log(1.0 - held)


def together(parts: Iterable[Losses]) -> Losses:
    """Add up the sums over several candidates."""
    whole = Losses()
    for part in parts:
        whole.weights.add_all(part.weights)
        whole.predicted += part.predicted
        whole.mean += part.mean
        whole.gains += part.gains
        whole.squared_gains += part.squared_gains
    return whole


def _answer(calls: float, low: float | None, high: float | None, loss_mean: float) -> ReadingPays:
    if low is None or high is None or calls < ENOUGH_ANSWERED:
        return ReadingPays.TOO_EARLY
    if low > 0.0:
        return ReadingPays.YES
    return ReadingPays.NO if high < WORTHWHILE * loss_mean else ReadingPays.TOO_EARLY


# Judged calls in the order of their decisions, each beside what the running means said then.
#
# The running means are those that the router itself falls back to: they fade, and are shrunk
# towards all models'. A plain mean would be the weaker opponent wherever models change, and reading
# the prompt would seem to pay. At each decision they know the verdicts that were in the log by
# then, as the predictor did; not those that came since.


@dataclass(frozen=True, slots=True)
class JudgedCall:
    """A call with the verdict that counts, and what was predicted of it at the decision.

    ``decided_at`` and ``known_at`` are positions in the log: of the request, and from where on
    call and verdict were both known. Where ``is_scored`` is false it only teaches the means.
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
    """All zoos; calls are added in the order of ``decided_at``."""

    def __init__(self) -> None:
        self._zoos: defaultdict[str, _Zoo] = defaultdict(_Zoo)

    def add(self, call: JudgedCall) -> None:
        """Score a call, and let the means learn of it when its verdict comes."""
        self._zoos[call.zoo].add(call)

    def calibration(self) -> list[ZooCalibration]:
        """Return the calibration by zoo and candidate, in the order of their names; zoos without a
        scored call are not there."""
        found = [zoo.calibration(name) for name, zoo in sorted(self._zoos.items())]
        return [each for each in found if each is not None]


class _Zoo:
    def __init__(self) -> None:
        self._means: dict[str, FadingRate] = {}
        self._rates: dict[str, float] = {}
        self._waiting: list[tuple[int, str, float, float]] = []
        self._losses: defaultdict[str, Losses] = defaultdict(Losses)
        self._reliability: defaultdict[str, Reliability] = defaultdict(Reliability)

    def add(self, call: JudgedCall) -> None:
        name = call.candidate
        self._means.setdefault(name, FadingRate())
        if self._learn(call.decided_at) or name not in self._rates:
            shrunk, _ = rates(list(self._means.values()))
            self._rates = dict(zip(self._means, shrunk, strict=True))
        heappush(self._waiting, (call.known_at, name, call.satisfaction, call.weight))
        if call.is_scored:
            satisfaction, weight = call.satisfaction, call.weight
            self._losses[name].add(call.predicted, self._rates[name], satisfaction, weight)
            self._reliability[name].add(call.predicted, satisfaction, weight)

    def calibration(self, zoo: str) -> ZooCalibration | None:
        if not self._losses:
            return None
        return ZooCalibration(
            zoo,
            together(self._losses.values()).reading(),
            tuple(
                CandidateCalibration(name, self._reliability[name].bins(), losses.reading())
                for name, losses in sorted(self._losses.items())
            ),
        )

    def _learn(self, position: int) -> bool:
        """Count the verdicts that were known before that position, and tell whether there were
        any."""
        due = False
        while self._waiting and self._waiting[0][0] < position:
            _, name, satisfaction, weight = heappop(self._waiting)
            self._means[name].add(satisfaction, weight)
            due = True
        return due
