"""The plain mean of each candidate's labels: the prediction for a prompt that nobody could read."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class LabelMeans:
    """``counts`` has shape (M, 2): how many labels, and their sum. One label of a half is
    imagined at the start, where every prediction is one half, as the heads' is."""

    def __init__(self, candidates: Sequence[str]) -> None:
        self._row = {name: row for row, name in enumerate(candidates)}
        self.counts: NDArray[np.float64] = np.zeros((len(self._row), 2))

    def predict(self, candidates: Sequence[str]) -> list[float]:
        """The mean of each named candidate, in the order given."""
        rows = self.counts[[self._row[name] for name in candidates]]
        means: list[float] = ((rows[:, 1] + 0.5) / (rows[:, 0] + 1.0)).tolist()
        return means

    def learn(self, candidate: str, satisfaction: float) -> None:
        self.counts[self._row[candidate]] += (1.0, satisfaction)

    def revise(self, candidate: str, previous: float, satisfaction: float) -> None:
        """Replace a label that was learned before."""
        self.counts[self._row[candidate]] += (0.0, satisfaction - previous)
