"""The certainty of a satisfaction rate: a discounted mean, its deviation, and an upper bound.

Why it exists: the controller has to distinguish "this model cannot hold alpha" from "this model had
bad luck". The rate is shrunk towards the rate of all models together by a few pseudo-labels, so
that one bad label does not rule out a model; old labels fade so that a model may change.

The upper bound is that of MOSS (Audibert and Bubeck): a model with less than its share of the
labels gets more optimism, by sqrt(2 ln(labels / (models * labels of this one))).
Left out (6 seeds), a cheap model with a few early misses is not tried again while an
expensive one serves: 0.452 instead of 0.429 MJ, worst seed 2.5 instead of 1.8 times the median."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.core.head import Label

PSEUDO_LABELS = 6.0
MEMORY = 1000.0
FIRST_GUESS = 0.7
DEVIATIONS = 1.5
KINDNESS = 2.0


def fading(weight: float) -> float:
    """Return the factor by which a label of that weight fades all labels before it."""
    return math.exp(-weight / MEMORY)


@dataclass
class FadingRate:
    """Discounted weight and sum of one model's labels; ``faded`` is the log of the discount.

    If the model is found to have changed, the mean starts again from the labels since then;
    ``restarted`` is the value of ``faded`` at that moment.
    """

    weight: float = 0.0
    total: float = 0.0
    faded: float = 0.0
    restarted: float = 0.0

    def add(self, label: float, weight: float = 1.0) -> float:
        """Count a label; the returned mark allows a later verdict to replace it exactly."""
        keep = fading(weight)
        self.weight = self.weight * keep + weight
        self.total = self.total * keep + weight * label
        self.faded -= weight / MEMORY
        return self.faded

    def restart(self, weight: float, total: float) -> None:
        """Start again from the newest labels alone, of that weight and sum."""
        self.weight, self.total = weight, total
        self.restarted = self.faded

    def revise(self, mark: float, old: Label, new: Label) -> None:
        """Replace a label counted before, faded by all labels counted since; one from before a
        restart has no weight any more."""
        if mark > self.restarted:
            return
        kept = math.exp(self.faded - mark)
        self.weight += (new.weight - old.weight) * kept
        self.total += (new.weight * new.value - old.weight * old.value) * kept


def rates(means: Sequence[FadingRate]) -> tuple[list[float], list[float]]:
    """Estimate the shrunk satisfaction rate and its standard deviation, per model."""
    weight = sum(mean.weight for mean in means)
    pooled = (sum(mean.total for mean in means) + FIRST_GUESS) / (weight + 1.0)
    satisfaction = []
    deviation = []
    for mean in means:
        labels = mean.weight + PSEUDO_LABELS
        rate = min(max((mean.total + PSEUDO_LABELS * pooled) / labels, 0.0), 1.0)
        satisfaction.append(rate)
        deviation.append(math.sqrt(max(rate * (1.0 - rate), 1e-4) / labels))
    return satisfaction, deviation


def optimism(means: Sequence[FadingRate]) -> list[float]:
    """Return the number of standard deviations to add per model: the base, and more for a model
    with few labels."""
    share = sum(mean.weight for mean in means) / max(len(means), 1)
    return [
        math.sqrt(DEVIATIONS**2 + KINDNESS * math.log(max(share / max(mean.weight, 1.0), 1.0)))
        for mean in means
    ]


# The plain mean of each candidate's labels: the prediction for a prompt that could not be read.


class LabelMeans:
    """The running means of labels: ``counts`` has shape (M, 2): the weight of all labels, and their
    weighted sum. Each starts with one pseudo-label of 0.5, so that every prediction starts at one
    half, as the heads' do."""

    def __init__(self, candidates: Sequence[str]) -> None:
        self._row = {name: row for row, name in enumerate(candidates)}
        self.counts: NDArray[np.float64] = np.zeros((len(self._row), 2))

    def predict(self, candidates: Sequence[str]) -> list[float]:
        """Return the mean of each named candidate, in the order given."""
        rows = self.counts[[self._row[name] for name in candidates]]
        means: list[float] = ((rows[:, 1] + 0.5) / (rows[:, 0] + 1.0)).tolist()
        return means

    def add(self, candidate: str) -> None:
        """Add a candidate without labels, after the others."""
        self._row[candidate] = len(self._row)
        self.counts = np.vstack([self.counts, np.zeros((1, 2))])

    def remove(self, candidate: str) -> None:
        """Forget a candidate; those after it move up."""
        self.counts = np.delete(self.counts, self._row.pop(candidate), axis=0)
        self._row = {name: row for row, name in enumerate(self._row)}

    def learn(self, candidate: str, label: Label) -> None:
        self.counts[self._row[candidate]] += _counted(label)

    def revise(self, candidate: str, previous: Label, label: Label) -> None:
        """Replace a label that was learned before."""
        self.counts[self._row[candidate]] += _counted(label) - _counted(previous)


def _counted(label: Label) -> NDArray[np.float64]:
    return np.array([label.weight, label.weight * label.value])
