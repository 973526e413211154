"""One recording through every peer: the same orders, labels and seeds for each."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any

import numpy as np

from benchmarks.peers import litellm_bandit, paced_bandit
from benchmarks.peers.paced_bandit import Contexts
from litellm_messplus.core.encoder import Encoder
from litellm_messplus.replay.experiment import Baseline, Experiment, Session, settings_of
from litellm_messplus.replay.plan import Plan
from litellm_messplus.replay.recording import Recording
from litellm_messplus.replay.summary import Outcome, ReplayReport, Score, mix_cost
from litellm_messplus.settings.schema import ZooSettings

OURS = "this project"
PAPER = "the paper's policy"
LITELLM = "LiteLLM's adaptive router"
WEIGHED = f"{LITELLM}, best weights"
PARETO = "ParetoBandit"
MIX = "hindsight mix"
ORACLE = "oracle"
V_TIMES_COST = (0.016, 0.16, 1.6, 16.0)
"""V times the mean cost of the most expensive model; 0.16 is the mean over the paper's five
recordings at its V = 1e-4 per joule. There is no V for dollars, so the best of these is shown."""
QUALITY_WEIGHTS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Weights of quality in LiteLLM's router, of which the best is shown too."""


class Kind(StrEnum):
    """The kinds of rows, by what each must know beforehand."""

    ONLINE = "online"
    ALONE = "alone"
    HINDSIGHT = "hindsight"


@dataclass(frozen=True)
class Row:
    """One peer on one recording. ``cost`` is the mean total of a run; ``over_mix`` is
    ``cost_at_alpha`` over the cost of the hindsight mix. ``below`` and ``below_half_point`` are
    shares of runs; ``cpu_ms`` is the CPU of a decision with what is learned from its label, None
    where nothing is decided."""

    recording: str
    peer: str
    kind: Kind
    satisfaction: float
    d_points: float
    cost: float
    cost_at_alpha: float
    over_mix: float
    below: float
    below_half_point: float
    cpu_ms: float | None = None

    def of(self, recording: str) -> "Row":
        """Return the row under another name of its recording."""
        return replace(self, recording=recording)

    def as_dict(self) -> dict[str, Any]:
        """Return the row for `--json`."""
        return asdict(self)


class Peers(Experiment):
    """An experiment with every peer among its baselines, each timed: a baseline for each setting of
    a peer, of which the one that is best in hindsight is reported."""

    def __init__(self, recording: Recording, alpha: float, plan: Plan, encoder: Encoder) -> None:
        self._seconds: dict[str, float] = {}
        super().__init__([recording], alpha, plan, encoder)

    def rows(self, advance: Callable[[], None]) -> Iterator[Row]:
        """Run all runs, and yield a row for each peer."""
        report = self.go(advance)
        yield self._scored(OURS, OURS, report.score, report)
        tried: dict[str, list[Row]] = {}
        for key, score in report.baselines.items():
            if score is not None:
                peer = key.partition("=")[0]
                tried.setdefault(peer, []).append(self._scored(peer, key, score, report))
        for rows in tried.values():
            yield min(rows, key=lambda row: row.cost_at_alpha)
        yield from _known(report)

    def _scored(self, peer: str, key: str, score: Score, report: ReplayReport) -> Row:
        cpu = 1000.0 * self._seconds[key] / (report.requests * len(score.costs))
        at_alpha = replace(report, score=score).cost_at_alpha
        return _row(peer, Kind.ONLINE, report, score.points, score.costs, at_alpha, cpu)

    def _replay(self, session: Session, settings: ZooSettings) -> Outcome:
        with self._timed(OURS):
            return super()._replay(session, settings)

    def _baselines(self) -> dict[str, Baseline]:
        """Return a baseline for each peer, or for each of its settings, `PEER=SETTING`."""
        found: dict[str, Baseline] = {
            f"{PAPER}={v}": partial(self._paper, f"{PAPER}={v}", v) for v in V_TIMES_COST
        }
        kinds = [litellm_bandit.request_type(text) for text in self.whole.prompts.texts]
        found[LITELLM] = partial(self._bandit, LITELLM, kinds, None)
        for weight in QUALITY_WEIGHTS:
            key = f"{WEIGHED}={weight}"
            found[key] = partial(self._bandit, key, kinds, weight)
        if paced_bandit.missing() is None:
            read = paced_bandit.contexts(self.whole.prompts)
            paced_bandit.PacedBandit({"a": 1.0, "b": 2.0}, 1.0, read.shape[1], 0)  # its imports
            found[PARETO] = partial(self._paced, read)
        return found

    def _paper(self, key: str, v: float, session: Session) -> Outcome:
        plan = replace(self.plan, V=v / float(self.whole.cost.mean(axis=0).max()))
        with self._timed(key):
            return super()._replay(session, settings_of(plan, "paper", self.alpha))

    def _bandit(
        self, key: str, kinds: list[Any], quality: float | None, session: Session
    ) -> Outcome:
        recording, labels, delay = session.recording, session.labels, self.plan.delay
        with self._timed(key):
            return litellm_bandit.run(recording, labels, kinds, delay, session.seed, quality)

    def _paced(self, read: Contexts, session: Session) -> Outcome:
        recording, labels, delay = session.recording, session.labels, self.plan.delay
        spend = mix_cost(recording.satisfied, recording.cost, self.alpha) / len(recording)
        with self._timed(PARETO):
            return paced_bandit.run(recording, labels, read, spend, delay, session.seed)

    @contextmanager
    def _timed(self, key: str) -> Iterator[None]:
        began = time.process_time()
        yield
        self._seconds[key] = self._seconds.get(key, 0.0) + time.process_time() - began


def not_run() -> Mapping[str, str]:
    """Name the peers that cannot run here, with the reason of each."""
    reason = paced_bandit.missing()
    return {} if reason is None else {PARETO: reason}


def _known(report: ReplayReport) -> Iterator[Row]:
    """Yield each model alone, the hindsight mix and the oracle."""
    alpha, hindsight = report.score.alpha, report.hindsight
    for place, model in enumerate(report.score.model_mix):
        points = np.array([100.0 * (each.satisfaction[place] - alpha) for each in hindsight])
        costs = np.array([each.cost[place] for each in hindsight])
        score = replace(report.score, points=points, costs=costs)
        at_alpha = replace(report, score=score).cost_at_alpha
        yield _row(model, Kind.ALONE, report, points, costs, at_alpha)
    best = [float(each.satisfaction.max()) for each in hindsight]
    reached = np.array([100.0 * min(0.0, rate - alpha) for rate in best])
    for name, total in ((MIX, report.lp_cost), (ORACLE, report.oracle_cost)):
        costs = np.array([total])
        held = reached if name == MIX else np.zeros(len(hindsight))
        yield _row(name, Kind.HINDSIGHT, report, held, costs, total)


def _row(
    peer: str,
    kind: Kind,
    report: ReplayReport,
    points: Any,
    costs: Any,
    at_alpha: float,
    cpu_ms: float | None = None,
) -> Row:
    d_points = float(points.mean())
    return Row(
        recording=report.file,
        peer=peer,
        kind=kind,
        satisfaction=report.score.alpha + d_points / 100.0,
        d_points=d_points,
        cost=float(costs.mean()),
        cost_at_alpha=at_alpha,
        over_mix=at_alpha / report.lp_cost,
        below=float((points < -1e-9).mean()),
        below_half_point=float((points < -0.5).mean()),
        cpu_ms=cpu_ms,
    )


def names(rows: Sequence[Row]) -> list[str]:
    """List the peers in the order of the rows, models alone left out."""
    return list(dict.fromkeys(row.peer for row in rows if row.kind is not Kind.ALONE))
