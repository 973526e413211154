"""Runs over several seeds: summarised, and compared with yardsticks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from litellm_messplus.certificate.evidence import LabelGroup, bounds
from litellm_messplus.figures.interval import Interval, Verdict
from litellm_messplus.figures.interval import verdict as interval_verdict
from litellm_messplus.replay.recording import Matrix, ReplayError

Vector = NDArray[np.float64]

# Yardsticks that know every label in advance, and so can be met but hardly beaten.

GUESSING_STEPS = 5000
GUESSING_STEP = 0.01
GUESSING_TOLERANCE = 1e-6
GUESSING_LEAST = 1e-10
GUESSING_DECAY = 0.8
"""Constants of the paper's listing."""


def mix_cost(satisfied: Matrix, cost: Matrix, alpha: float) -> float:
    """Compute the total cost of the cheapest fixed mix of models whose expected satisfaction rate
    is alpha.

    A linear programme with one constraint in addition to the simplex has an optimum on at most two
    models, so checking every single model that meets alpha and every pair around alpha is enough.
    If no model reaches alpha: the cost of the most satisfying model (the cheaper on a tie).
    """
    rates, costs = satisfied.mean(axis=0), cost.sum(axis=0)
    reaching = np.flatnonzero(rates >= alpha)
    if len(reaching) == 0:
        return float(costs[np.lexsort((costs, -rates))[0]])
    best = float(costs[reaching].min())
    for low in np.flatnonzero(rates < alpha):
        share = (alpha - rates[low]) / (rates[reaching] - rates[low])
        best = min(best, float((costs[low] + share * (costs[reaching] - costs[low])).min()))
    return best


def oracle_cost(satisfied: Matrix, cost: Matrix, alpha: float) -> float:
    """Compute the total cost of the cheapest per-request assignment whose satisfaction rate is at
    least alpha.

    Start from the cheapest call for every request. It satisfies already, or can be made to at a
    surcharge: that of the cheapest satisfying model over the cheapest model. Every surcharge buys
    exactly one satisfied request, so taking the smallest of them until alpha is met is exact. If
    even all of them do not reach alpha, all are taken.
    """
    cheapest = cost.min(axis=1)
    satisfying = np.where(satisfied > 0.5, cost, np.inf).min(axis=1)
    surcharge = np.sort((satisfying - cheapest)[np.isfinite(satisfying)])
    needed = int(np.ceil(alpha * len(cost) - 1e-9))
    return float(cheapest.sum() + surcharge[:needed].sum())


@dataclass(frozen=True)
class Hindsight:
    """The figures of one run that need hindsight. ``satisfaction`` and ``cost`` (a total) are
    those of always calling one model; ``last_cost`` is the cost of the last satisfied request that
    the hindsight mix buys."""

    lp_cost: float
    last_cost: float
    oracle_cost: float
    satisfaction: Vector
    cost: Vector

    @classmethod
    def of(cls, satisfied: Matrix, cost: Matrix, alpha: float) -> "Hindsight":
        """Compute them from two matrices of shape (requests, models)."""
        lp_cost = mix_cost(satisfied, cost, alpha)
        return cls(
            lp_cost=lp_cost,
            last_cost=lp_cost - mix_cost(satisfied, cost, alpha - 1.0 / len(cost)),
            oracle_cost=oracle_cost(satisfied, cost, alpha),
            satisfaction=satisfied.mean(axis=0),
            cost=cost.sum(axis=0),
        )


def educated_guess(rates: Vector, alpha: float) -> Vector | None:
    """Compute the paper's baseline (Appendix, "Random Baseline with Constraint Satisfaction"): how
    often to call each model, at random, given the satisfaction rate of each.

    Starting from equal shares, models better than the mean of the mix get 1 % more and the others
    1 % less, until the mean meets alpha. None if no model meets alpha.
    """
    if alpha > rates.max():
        return None
    shares = np.full(len(rates), 1.0 / len(rates))
    for _ in range(GUESSING_STEPS):
        mean = float(shares @ rates)
        if mean >= alpha - GUESSING_TOLERANCE:
            return shares
        shares = shares * np.where(rates > mean, 1.0 + GUESSING_STEP, 1.0 - GUESSING_STEP)
        shares /= shares.sum()
    return _by_rank(rates)


def _by_rank(rates: Vector) -> Vector:
    """Share calls by rank, the listing's last resort: each model from the best down takes 80 % of
    the rest, times its place between the worst and the best; the worst takes what is left."""
    order = np.argsort(rates)[::-1]
    best, worst = rates[order[0]], rates[order[-1]]
    shares = np.full(len(rates), GUESSING_LEAST)
    left = 1.0 - len(rates) * GUESSING_LEAST
    for model in order[:-1]:
        given = left * GUESSING_DECAY * (rates[model] - worst) / (best - worst)
        shares[model] += given
        left -= given
    shares[order[-1]] += left
    total: Vector = shares / shares.sum()
    return total


# The outcome of one run.


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result per request: the model that served, and its virtual queue before the decision,
    both of shape (requests,); ``calls``, of shape (requests, models), marks the models that were
    called at all. ``second_answers`` were given in place of a first one.

    ``satisfied`` is the truth of the served calls, whatever their labels; ``cost`` that of every
    call, ``label_cost`` the total of those that were made to learn. ``queue`` is None if the
    baseline has none; ``labels`` holds the labels that came for the served calls, NaN if none did,
    and ``expected`` what was predicted of them, NaN where nothing was; both are None if no labels
    were collected.
    """

    served: NDArray[np.intp]
    calls: NDArray[np.bool_]
    satisfied: Vector
    cost: Vector
    label_cost: float
    explorations: int
    second_answers: int = 0
    queue: Vector | None = None
    labels: Vector | None = None
    expected: Vector | None = None

    @classmethod
    def of(
        cls,
        served: NDArray[np.intp],
        calls: NDArray[np.bool_],
        truth: Matrix,
        cost: Matrix,
        *,
        explorations: int = 0,
        first: NDArray[np.intp] | None = None,
        queue: Vector | None = None,
        labels: Vector | None = None,
        expected: Vector | None = None,
    ) -> "Outcome":
        """Look the outcome up in every model's answers and costs; see
        ``Outcome``."""
        requests = np.arange(len(served))
        called = (calls * cost).sum(axis=1)
        replaced = np.zeros_like(called)
        if first is not None:
            replaced[:] = np.where(first != served, cost[requests, first], 0.0)
        return cls(
            served=served,
            calls=calls,
            satisfied=truth[requests, served],
            cost=called,
            label_cost=float((called - replaced - cost[requests, served]).sum()),
            explorations=explorations,
            second_answers=int((replaced > 0.0).sum()),
            queue=queue,
            labels=labels,
            expected=expected,
        )

    @classmethod
    def of_served(cls, served: NDArray[np.intp], truth: Matrix, cost: Matrix) -> "Outcome":
        """Look up the outcome of a baseline that calls only the model that serves."""
        calls = np.zeros(cost.shape, dtype=np.bool_)
        calls[np.arange(len(served)), served] = True
        return cls.of(served, calls, truth, cost)


# Satisfaction over the last requests of a run: its course up to the end.


def rolling_points(satisfied: Vector, alpha: float, window: int) -> Vector:
    """Compute the points above alpha over each window of a run; the first ends at request
    ``window``."""
    points: Vector = 100.0 * (sliding_window_view(satisfied, window).mean(axis=1) - alpha)
    return points


def window_figures(outcomes: Sequence[Outcome], alpha: float, window: int) -> dict[str, Any]:
    """Compute the extra keys of `--window`.

    ``d_window``: points above alpha over the last window. ``d_window_worst``: over the worst window
    of a run. ``windows_below_two_points``: share of all windows more than two points below alpha.
    All are means over seeds. Raises ReplayError for a window longer than the run.
    """
    requests = len(outcomes[0].satisfied)
    if window > requests:
        raise ReplayError(f"--window: given {window}; allowed: up to the {requests} requests there")
    points = np.array([rolling_points(outcome.satisfied, alpha, window) for outcome in outcomes])
    return {
        "window": window,
        "d_window": float(points[:, -1].mean()),
        "d_window_worst": float(points.min(axis=1).mean()),
        "windows_below_two_points": float((points < -2.0).mean()),
    }


# The certificate at the end of a run, from the labels alone.


def certified(outcomes: Sequence[Outcome], alpha: float, confidence: float) -> dict[str, float]:
    """Return the extra keys of `--confidence`: the share of runs at whose end the certificate
    states `kept`, and the mean width of its interval over runs, in points."""
    found = [_certificate(outcome, alpha, confidence) for outcome in outcomes]
    kept = [interval_verdict(interval, alpha) is Verdict.KEPT for interval in found]
    return {
        "confidence": confidence,
        "kept": float(np.mean(kept)),
        "certificate_width": 100.0 * float(np.mean([interval.width for interval in found])),
    }


def _certificate(outcome: Outcome, alpha: float, confidence: float) -> Interval:
    unknown = np.full(len(outcome.served), np.nan)
    labels = unknown if outcome.labels is None else outcome.labels
    predicted = unknown if outcome.expected is None else outcome.expected
    expected = np.where(np.isnan(predicted), alpha, predicted).round(1)
    labelled = np.stack((labels, expected), axis=1)[~np.isnan(labels)]
    distinct, counts = np.unique(labelled, axis=0, return_counts=True)
    groups = [
        LabelGroup(np.array([float(count)]), value, None, foreseen)
        for (value, foreseen), count in zip(distinct.tolist(), counts.tolist(), strict=True)
    ]
    requests = np.array([float(len(labels))])
    found = bounds(requests, np.array([expected.sum()]), groups, confidence)
    return Interval(float(found.low[0]), float(found.high[0]))


@dataclass(frozen=True)
class Score:
    """The score of one policy over seeds. Costs are totals of a run, every call counted; ``points``
    is the final satisfaction minus alpha, in percentage points. Both have shape (seeds,).

    ``label_cost`` is the part of a run's cost that no user saw, ``model_mix`` the share of requests
    that each model served, ``explorations`` the number of requests that explored, and
    ``second_answers`` that of those with an answer in place of a first one; all are means over
    seeds.
    """

    alpha: float
    costs: Vector
    points: Vector
    label_cost: float
    explorations: float
    model_mix: dict[str, float]
    second_answers: float = 0.0

    @classmethod
    def of(cls, outcomes: Sequence[Outcome], models: Sequence[str], alpha: float) -> "Score":
        """Score at least one run."""
        served = np.concatenate([outcome.served for outcome in outcomes])
        shares = np.bincount(served, minlength=len(models)) / len(served)
        satisfaction = np.array([outcome.satisfied.mean() for outcome in outcomes])
        return cls(
            alpha=alpha,
            costs=np.array([outcome.cost.sum() for outcome in outcomes]),
            points=100.0 * (satisfaction - alpha),
            label_cost=float(np.mean([outcome.label_cost for outcome in outcomes])),
            explorations=float(np.mean([outcome.explorations for outcome in outcomes])),
            second_answers=float(np.mean([outcome.second_answers for outcome in outcomes])),
            model_mix=dict(zip(models, shares.tolist(), strict=True)),
        )

    @property
    def satisfaction(self) -> float:
        """Share of requests whose served answer satisfied; the mean over seeds."""
        return self.alpha + float(self.points.mean()) / 100.0

    def below(self, points: float) -> float:
        """Compute the share of runs that ended more than so many points below alpha."""
        return float((self.points < -points).mean())

    @property
    def worst_over_median(self) -> float:
        """The cost of the most expensive run over that of the median one."""
        median = float(np.median(self.costs))
        return float(self.costs.max()) / median if median > 0.0 else 1.0

    def as_dict(self) -> dict[str, Any]:
        """Return the score for `--json`; ``spread`` holds standard deviations over seeds."""
        return {
            "cost_total": float(self.costs.mean()),
            "label_cost": self.label_cost,
            "satisfaction": self.satisfaction,
            "d_points": float(self.points.mean()),
            "below_half_point": self.below(0.5),
            "below_two_points": self.below(2.0),
            "explorations": self.explorations,
            "second_answers": self.second_answers,
            "model_mix": self.model_mix,
            "worst_over_median": self.worst_over_median,
            "spread": {
                "cost_total": float(self.costs.std()),
                "d_points": float(self.points.std()),
            },
        }


@dataclass(frozen=True)
class ReplayReport:
    """The report of one stream. ``hindsight`` has one element per seed; a baseline is None if it
    cannot hold alpha at all; ``windows`` is empty unless requested; ``notes`` are the
    recording's."""

    file: str
    unit: str
    policy: str
    requests: int
    score: Score
    hindsight: Sequence[Hindsight]
    baselines: dict[str, Score | None]
    windows: dict[str, Any]
    notes: Sequence[str] = ()
    certified: Mapping[str, float] = field(default_factory=dict)

    @property
    def lp_cost(self) -> float:
        """The cost of the cheapest fixed mix that meets alpha."""
        return float(np.mean([known.lp_cost for known in self.hindsight]))

    @property
    def cost_at_alpha(self) -> float:
        """The cost of the policy if each request that it ended short of alpha were bought as by the
        hindsight mix: what makes policies comparable that end at different satisfaction."""
        short = self.requests * np.maximum(-self.score.points, 0.0) / 100.0
        prices = np.array([known.last_cost for known in self.hindsight])
        return float(np.mean(self.score.costs + prices * short))

    @property
    def paid_after(self) -> int | None:
        """The number of requests after which serving has saved, against the most expensive model
        alone, what labels cost; None if it saves nothing."""
        dearest = max(single["cost"] for single in self.single_model.values())
        saved = dearest - float(self.score.costs.mean()) + self.score.label_cost
        cost = self.score.label_cost
        return math.ceil(cost * self.requests / saved) if saved > 0.0 else None

    @property
    def oracle_cost(self) -> float:
        """The cost of the cheapest assignment that meets alpha."""
        return float(np.mean([known.oracle_cost for known in self.hindsight]))

    @property
    def single_model(self) -> dict[str, dict[str, float]]:
        """The figures of always calling one model."""
        satisfaction = np.mean([known.satisfaction for known in self.hindsight], axis=0)
        cost = np.mean([known.cost for known in self.hindsight], axis=0)
        return {
            model: {"satisfaction": float(satisfaction[place]), "cost": float(cost[place])}
            for place, model in enumerate(self.score.model_mix)
        }

    def as_dict(self) -> dict[str, Any]:
        """Return the report for `--json`."""
        found = {
            "file": self.file,
            "alpha": self.score.alpha,
            "policy": self.policy,
            "seeds": len(self.score.costs),
            "requests": self.requests,
            **self.score.as_dict(),
            "cost_at_alpha": self.cost_at_alpha,
            "paid_after": self.paid_after,
            "lp_cost": self.lp_cost,
            "oracle_cost": self.oracle_cost,
            "single_model": self.single_model,
            **self.windows,
            **self.certified,
        }
        if self.notes:
            found["notes"] = list(self.notes)
        if self.baselines:
            found["baselines"] = {
                name: None if score is None else score.as_dict()
                for name, score in self.baselines.items()
            }
        return found
