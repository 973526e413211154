"""What the prompt adds to a model's mean: one shift of the log-odds, shared by all models.

Why it exists: a prompt that is hard for one model is hard for the others, so a label of any model
teaches all of them; a dear model, rarely called, never earns enough labels for a head of its own.
Prequential log-loss on the five shared files shuffled together, labels of one model a request:
0.007 nats below the mean alone over the first 1,000, 0.017 from 3,000 on; half of that with a
ridge for each model. In log-odds, a model that is nearly always right gains little by an easy
prompt; the gap between two models is what decides.

Inside one benchmark the prompt tells nearly nothing. Therefore three experts (the mean alone, half
and all of the shift) are weighed by exp(-discounted log-loss) of what each predicted before the
label was known.

The ridge is exact and lazy: rows are collected, folded in and solved together, at the latest after
BATCH rows or when an eighth of all rows is new, so that an update costs some ten microseconds.
"""

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.prediction.encoder import Features
from litellm_messplus.prediction.projection import Projection

Vector = NDArray[np.float64]
Arrays = dict[str, NDArray[np.float64]]

RIDGE = 5.0
BATCH = 32
NEW_SHARE = 8
SCALES = (0.0, 0.5, 1.0)
BLEND_MEMORY = 500.0
_KEEP = 1.0 - 1.0 / BLEND_MEMORY
_EDGE = 0.01


class Ridge:
    """Sufficient statistics of weighted targets, and the coefficients last solved for.

    Features count by their distance from ``center``, the mean of those taken in: on the
    average prompt the shift is zero, so that what is common to all prompts stays in the means.
    """

    def __init__(self, dimension: int) -> None:
        self.project = Projection(dimension)
        width = self.project.width
        self.center = np.zeros(width)
        self.gram = np.eye(width) * RIDGE
        self.moment = np.zeros(width)
        self.coefficients: Vector = np.zeros(width)
        self.rows = np.zeros((BATCH, width))
        self.waiting = self.count = 0

    def shift(self, features: Features) -> float:
        """The target expected of a prompt, against that of the average one."""
        return float(self.coefficients @ (self.project(features) - self.center))

    def add(self, features: Features, target: float, weight: float) -> None:
        """Take in a target."""
        row = self.project(features)
        self.count += 1
        self.center += (row - self.center) / self.count
        row = row - self.center
        self.rows[self.waiting] = row * math.sqrt(weight)
        self.moment += row * (weight * target)
        self.waiting += 1
        if self.waiting == BATCH or self.waiting * NEW_SHARE >= self.count:
            self.solve()

    def revise(self, features: Features, difference: float) -> None:
        """Correct the weighted target of a row already taken in, as of the next solve."""
        self.moment += (self.project(features) - self.center) * difference

    def solve(self) -> None:
        """Coefficients for everything taken in."""
        rows = self.rows[: self.waiting]
        self.gram += rows.T @ rows
        self.waiting = 0
        self.coefficients = np.asarray(np.linalg.solve(self.gram, self.moment), dtype=np.float64)

    def arrays(self) -> Arrays:
        """Everything learned; loading it continues exactly."""
        return {
            "center": self.center,
            "gram": self.gram,
            "moment": self.moment,
            "coefficients": self.coefficients,
            "rows": self.rows,
            "counts": np.array([self.waiting, self.count], dtype=float),
        }

    def load(self, arrays: Mapping[str, Vector]) -> None:
        self.center = arrays["center"].copy()
        self.gram = arrays["gram"].copy()
        self.moment = arrays["moment"].copy()
        self.coefficients = arrays["coefficients"].copy()
        self.rows = arrays["rows"].copy()
        self.waiting, self.count = map(int, arrays["counts"])


class Blend:
    """Bayes weights of the experts by discounted prequential log-loss."""

    def __init__(self) -> None:
        self.losses = [0.0] * len(SCALES)
        self.trust = sum(SCALES) / len(SCALES)

    def score(self, rate: float, shift: float, label: float, weight: float) -> None:
        """Charge every expert its log-loss on one label and weigh anew."""
        for expert, scale in enumerate(SCALES):
            guess = shifted(rate, scale * shift)
            loss = -label * math.log(guess) - (1.0 - label) * math.log(1.0 - guess)
            self.losses[expert] = self.losses[expert] * _KEEP + weight * loss
        least = min(self.losses)
        weights = [math.exp(least - loss) for loss in self.losses]
        self.trust = sum(w * s for w, s in zip(weights, SCALES, strict=True)) / sum(weights)


def shifted(rate: float, shift: float) -> float:
    """A probability, moved by so many nats of log-odds."""
    rate = within(rate)
    return within(rate / (rate + (1.0 - rate) * math.exp(-shift)))


def within(probability: float) -> float:
    return min(max(probability, _EDGE), 1.0 - _EDGE)
