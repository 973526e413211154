"""A regression on the prompt that learns online: what the context and the length head share.

It is exact and lazy: rows are collected, folded in and solved together, at the latest after BATCH
rows or when an eighth of all rows is new, so that an update costs some ten microseconds.
"""

import math
from collections.abc import Mapping

import numpy as np

from litellm_messplus.prediction.head import Arrays
from litellm_messplus.prediction.projection import Vector, projection

RIDGE = 5.0
BATCH = 32
NEW_SHARE = 8


class Ridge:
    """Sufficient statistics of weighted targets, and the coefficients last solved for.

    A row, which ``project`` makes of features, counts by its distance from ``center``, the mean of
    those taken in: on the average prompt the shift is zero, so that what is common to all prompts
    stays in the means.
    """

    def __init__(self, dimension: int) -> None:
        self.project = projection(dimension)
        width = self.project.width
        self.center = np.zeros(width)
        self.gram = np.eye(width) * RIDGE
        self.moment = np.zeros(width)
        self.coefficients: Vector = np.zeros(width)
        self.rows = np.zeros((BATCH, width))
        self.waiting = self.count = 0

    def shift(self, row: Vector) -> float:
        """The target expected of a prompt, against that of the average one."""
        return float(self.coefficients @ (row - self.center))

    def add(self, row: Vector, target: float, weight: float) -> None:
        """Take in a target."""
        self.count += 1
        self.center += (row - self.center) / self.count
        row = row - self.center
        self.rows[self.waiting] = row * math.sqrt(weight)
        self.moment += row * (weight * target)
        self.waiting += 1
        if self.waiting == BATCH or self.waiting * NEW_SHARE >= self.count:
            self.solve()

    def revise(self, row: Vector, difference: float) -> None:
        """Correct the weighted target of a row already taken in, as of the next solve."""
        self.moment += (row - self.center) * difference

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
