"""Judged calls in the order of their decisions, each beside what the running means said then.

The running means are those that the router itself falls back to: they fade, and are shrunk towards
all models'. A plain mean would be the weaker opponent wherever models change, and reading the
prompt would seem to pay. At each decision they know the verdicts that were in the log by then, as
the predictor did; not those that came since.
"""

from collections import defaultdict
from dataclasses import dataclass
from heapq import heappop, heappush

from litellm_messplus.prediction.confidence import RunningMean, rates
from litellm_messplus.status.calibration import (
    CandidateCalibration,
    Losses,
    Reliability,
    ZooCalibration,
    together,
)


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
        """By zoo and candidate, in the order of their names; zoos without a scored call are not
        there."""
        found = [zoo.calibration(name) for name, zoo in sorted(self._zoos.items())]
        return [each for each in found if each is not None]


class _Zoo:
    def __init__(self) -> None:
        self._means: dict[str, RunningMean] = {}
        self._rates: dict[str, float] = {}
        self._waiting: list[tuple[int, str, float, float]] = []
        self._losses: defaultdict[str, Losses] = defaultdict(Losses)
        self._reliability: defaultdict[str, Reliability] = defaultdict(Reliability)

    def add(self, call: JudgedCall) -> None:
        name = call.candidate
        self._means.setdefault(name, RunningMean())
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
        """Count the verdicts that were known before that position; whether there were any."""
        due = False
        while self._waiting and self._waiting[0][0] < position:
            _, name, satisfaction, weight = heappop(self._waiting)
            self._means[name].add(satisfaction, weight)
            due = True
        return due
