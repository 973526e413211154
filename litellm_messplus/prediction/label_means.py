"""The plain mean of each candidate's labels: the prediction for a prompt that nobody could read."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.prediction.label import Label


class LabelMeans:
    """``counts`` has shape (M, 2): the weight of all labels, and their weighted sum. One label of a
    half is imagined at the start, where every prediction is one half, as the heads' is."""

    def __init__(self, candidates: Sequence[str]) -> None:
        self._row = {name: row for row, name in enumerate(candidates)}
        self.counts: NDArray[np.float64] = np.zeros((len(self._row), 2))

    def predict(self, candidates: Sequence[str]) -> list[float]:
        """The mean of each named candidate, in the order given."""
        rows = self.counts[[self._row[name] for name in candidates]]
        means: list[float] = ((rows[:, 1] + 0.5) / (rows[:, 0] + 1.0)).tolist()
        return means

    def learn(self, candidate: str, label: Label) -> None:
        self.counts[self._row[candidate]] += _counted(label)

    def revise(self, candidate: str, previous: Label, label: Label) -> None:
        """Replace a label that was learned before."""
        self.counts[self._row[candidate]] += _counted(label) - _counted(previous)


def _counted(label: Label) -> NDArray[np.float64]:
    return np.array([label.weight, label.weight * label.value])
