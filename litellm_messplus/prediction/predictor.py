"""What is known about one zoo: rates, their uncertainty, and what the prompt adds.

Learns from every labelled call, served or explored, and is shared by the zoo's service levels.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.prediction.change_test import ChangeTest
from litellm_messplus.prediction.confidence import Label, RunningMean, optimism, rates
from litellm_messplus.prediction.context_head import Blend, Ridge, within
from litellm_messplus.prediction.encoder import Features

REVISABLE = 4096
"""Labels whose mark is remembered, so that a second verdict can replace the first exactly. The
weight of an older one has faded by then."""

Arrays = dict[str, NDArray[np.float64]]


class Predictor:
    """Satisfaction of every candidate; ``rate``, ``deviation`` and ``optimism`` are lists in the
    order of ``candidates``."""

    def __init__(self, candidates: Sequence[str], dimension: int) -> None:
        self.candidates = tuple(candidates)
        self.index = {name: place for place, name in enumerate(self.candidates)}
        self.means = [RunningMean() for _ in self.candidates]
        self.ridges = [Ridge(dimension) for _ in self.candidates]
        self.blends = [Blend() for _ in self.candidates]
        self.coefficients = np.zeros((len(self.candidates), dimension))
        self._marks: OrderedDict[str, float] = OrderedDict()
        self._refresh()

    @property
    def is_blank(self) -> bool:
        """Whether no label has come yet."""
        return all(mean.weight == 0.0 for mean in self.means)

    def satisfaction(self, features: Features) -> list[float]:
        """Predicted probability of satisfaction for one prompt, per candidate."""
        shifts: list[float] = (self.coefficients @ features).tolist()
        return [
            within(rate + blend.trust * shift)
            for rate, blend, shift in zip(self.rate, self.blends, shifts, strict=True)
        ]

    def learn(self, candidate: str, call_id: str, features: Features, label: Label) -> None:
        """Take in the label of one call, whoever asked for it and however late it comes."""
        place = self.index[candidate]
        rate = self.rate[place]
        row = features.astype(np.float64)
        shift = float(self.coefficients[place] @ row)
        self.blends[place].score(rate, shift, label.value, label.weight)
        if self.ridges[place].add(row, label.value - rate, label.weight):
            self.coefficients[place] = self.ridges[place].coefficients
        self._remember(call_id, self.means[place].add(label.value, label.weight))
        self._refresh()

    def revise(
        self,
        candidate: str,
        call_id: str,
        features: Features,
        previous: Label,
        label: Label,
    ) -> None:
        """Put a second verdict in the place of the first (the blend's past scores stay)."""
        place = self.index[candidate]
        mark = self._marks.get(call_id)
        if mark is not None:
            self.means[place].revise(mark, previous, label)
        rate = self.rate[place]
        difference = label.residual(rate) - previous.residual(rate)
        self.ridges[place].revise(features.astype(np.float64), difference)
        self._refresh()

    def plain(self) -> dict[str, Any]:
        """The marks of the labels that can still be revised."""
        return {"marks": list(self._marks.items())}

    def arrays(self) -> Arrays:
        """Everything learned; loading it continues exactly."""
        return {
            "means": np.array([_numbers(mean) for mean in self.means]),
            "losses": np.array([[*blend.losses, blend.trust] for blend in self.blends]),
            "gram": np.array([ridge.gram for ridge in self.ridges]),
            "moment": np.array([ridge.moment for ridge in self.ridges]),
            "rows": np.array([ridge.rows for ridge in self.ridges]),
            "counts": np.array([[r.waiting, r.count] for r in self.ridges], dtype=float),
            "coefficients": self.coefficients,
        }

    def load(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[np.float64]]) -> None:
        """Take over what ``plain`` and ``arrays`` of a predictor of the same candidates gave."""
        self._marks = OrderedDict(plain["marks"])
        self.coefficients = arrays["coefficients"].copy()
        for place, (ridge, blend) in enumerate(zip(self.ridges, self.blends, strict=True)):
            self.means[place] = _running_mean(arrays["means"][place].tolist())
            *blend.losses, blend.trust = map(float, arrays["losses"][place])
            ridge.gram = arrays["gram"][place].copy()
            ridge.moment = arrays["moment"][place].copy()
            ridge.rows = arrays["rows"][place].copy()
            ridge.waiting, ridge.count = map(int, arrays["counts"][place])
            ridge.coefficients = self.coefficients[place].copy()
        self._refresh()

    def _refresh(self) -> None:
        self.rate, self.deviation = rates(self.means)
        self.optimism = optimism(self.means)

    def _remember(self, call_id: str, mark: float) -> None:
        self._marks[call_id] = mark
        if len(self._marks) > REVISABLE:
            self._marks.popitem(last=False)


def _numbers(mean: RunningMean) -> list[float]:
    change = mean.change
    suspected = [change.evidence, change.weight, change.total]
    return [mean.weight, mean.total, mean.faded, mean.restarted, *suspected]


def _running_mean(numbers: list[float]) -> RunningMean:
    weight, total, faded, restarted, *suspected = numbers
    return RunningMean(weight, total, faded, restarted, ChangeTest(*suspected))
