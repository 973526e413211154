"""What nobody saw, drawn from what was seen of the same model on alike prompts.

A log of served requests says of most requests what one model answered. To replay it under another
alpha, each missing outcome is taken from a donor: a request that the model did answer, drawn from
those with the nearest prompts (hot-deck imputation; Andridge and Little, "A review of hot deck
imputation for survey non-response", 2010). Verdict and cost come from one donor, so that they stay
together; that the prompts are alike makes good for a model having been called on the prompts that
it was chosen for.

How little may be known of a model shows in the spread over seeds: each weighs the donors anew, by
Rubin's Bayesian bootstrap (1981), so that a rate that rests on 50 labels varies as one does.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.prediction.encoder import FeatureRows
from litellm_messplus.replay.recording import Order, Recording

ALIKE = 10
"""Nearest donors, one of which is drawn: always the nearest would repeat one verdict many times."""
DONORS = 4000
"""Of a model, the newest: the work grows with requests times donors."""
BLUR = 1e-3
"""Of a cosine: prompts that are alike to within it are taken in any order, or of a thousand equal
ones the same ten would stand for all."""
AT_ONCE = 512
"""Requests that are compared with all donors together, which bounds the memory."""


@dataclass(frozen=True, eq=False)
class _Gap:
    """Requests whose outcome under ``model`` is missing; ``donors`` has a row for each of them."""

    model: int
    missing: Order
    donors: NDArray[np.intp]


class Filling:
    """Of one recording. Raises ValueError where a model of it was never seen."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        directions = _unit_rows(recording.prompts.features)[recording.prompt]
        self._gaps = [
            _gap(model, directions, is_known) for model, is_known in enumerate(recording.is_known.T)
        ]

    @property
    def note(self) -> str:
        """What a reader of any figure made from it must know."""
        missing = 1.0 - float(self._recording.is_known.mean())
        return f"{missing:.0%} of all outcomes were never seen: drawn from those of alike prompts"

    def drawn(self, generator: np.random.Generator) -> Recording:
        """The recording without a gap; a cost that is known without its verdict is kept."""
        satisfied, cost = self._recording.satisfied.copy(), self._recording.cost.copy()
        weights = generator.exponential(size=len(satisfied))
        for gap in self._gaps:
            donors = _one_each(gap.donors, weights, generator)
            satisfied[gap.missing, gap.model] = satisfied[donors, gap.model]
            known = cost[gap.missing, gap.model]
            donated = cost[donors, gap.model]
            cost[gap.missing, gap.model] = np.where(np.isnan(known), donated, known)
        return replace(self._recording, satisfied=satisfied, cost=cost)


def _gap(model: int, directions: FeatureRows, is_known: NDArray[np.bool_]) -> _Gap:
    seen, missing = np.flatnonzero(is_known)[-DONORS:], np.flatnonzero(~is_known)
    if not seen.size:
        raise ValueError(f"nothing is known of model {model}")
    return _Gap(model, missing, _nearest(directions, missing, seen))


def _nearest(directions: FeatureRows, missing: Order, seen: Order) -> NDArray[np.intp]:
    """Shape (missing, ALIKE, or fewer): places among all, by the cosine of their features."""
    count, blur = min(ALIKE, len(seen)), np.random.default_rng(0)
    nearest = np.empty((len(missing), count), dtype=np.intp)
    for start in range(0, len(missing), AT_ONCE):
        rows = slice(start, start + AT_ONCE)
        distance = blur.random((len(missing[rows]), len(seen)), dtype=np.float32) * BLUR
        distance -= directions[missing[rows]] @ directions[seen].T
        nearest[rows] = seen[np.argpartition(distance, count - 1, axis=1)[:, :count]]
    return nearest


def _one_each(
    donors: NDArray[np.intp], weights: NDArray[np.float64], generator: np.random.Generator
) -> Order:
    """One of each row's donors, as likely as its weight says."""
    upto = np.cumsum(weights[donors], axis=1)
    draw = generator.random((len(donors), 1)) * upto[:, -1:]
    chosen: Order = donors[np.arange(len(donors)), (draw >= upto).sum(axis=1)]
    return chosen


def _unit_rows(features: FeatureRows) -> FeatureRows:
    lengths = np.linalg.norm(features, axis=1, keepdims=True)
    return (features / np.where(lengths > 0.0, lengths, 1.0)).astype(np.float32)
