"""What is known about one zoo: rates, their uncertainty, and what the prompt adds.

A rate is that over all prompts, while a model is called on those it is chosen for. So its mean
counts each label less what the prompt was expected to add: left out, choosing by the prompt makes
the rates drift, and unlocks dear models: 1.15 instead of 0.93 times the hindsight mix on the five
shared files shuffled together, 1.13 instead of 0.71 on two of them (20 seeds, an earlier state).

Learns from every labelled call, served or explored, and is shared by the zoo's service levels.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.prediction.change_test import ChangeTest
from litellm_messplus.prediction.confidence import RunningMean, optimism, rates
from litellm_messplus.prediction.context_head import Blend, shifted, within
from litellm_messplus.prediction.encoder import Features
from litellm_messplus.prediction.head import Arrays
from litellm_messplus.prediction.label import Label
from litellm_messplus.prediction.ridge import Ridge

REVISABLE = 4096
"""Labels whose mark is remembered, so that a second verdict can replace the first exactly. The
weight of an older one has faded by then."""


class Mark(NamedTuple):
    """Of a counted label: its mean's discount then, and what the prompt was expected to add."""

    faded: float
    added: float

    def less(self, label: Label) -> Label:
        """The label as the mean counts it."""
        return Label(label.value - self.added, label.weight)


class Predictor:
    """Satisfaction of every candidate; ``rate``, ``deviation`` and ``optimism`` are lists in the
    order of ``candidates``. Where the features are None, because they came too late, the rates are
    predicted, and learn alone. Features that are not ``dimension`` finite numbers are a ValueError.
    """

    def __init__(self, candidates: Sequence[str], dimension: int) -> None:
        self.candidates = tuple(candidates)
        self.index = {name: place for place, name in enumerate(self.candidates)}
        self.means = [RunningMean() for _ in self.candidates]
        self.ridge = Ridge(dimension)
        self.blend = Blend()
        self._marks: OrderedDict[str, Mark] = OrderedDict()
        self._refresh()

    @property
    def is_blank(self) -> bool:
        """Whether no label has come yet."""
        return all(mean.weight == 0.0 for mean in self.means)

    def satisfaction(self, features: Features | None) -> list[float]:
        """Predicted probability of satisfaction for one prompt, per candidate."""
        if features is None:
            return [within(rate) for rate in self.rate]
        shift = self.blend.trust * self.ridge.shift(self.ridge.project(features))
        return [shifted(rate, shift) for rate in self.rate]

    def learn(self, candidate: str, call_id: str, features: Features | None, label: Label) -> None:
        """Take in the label of one call, whoever asked for it and however late it comes."""
        place = self.index[candidate]
        added = 0.0 if features is None else self._learn_prompt(place, features, label)
        faded = self.means[place].add(label.value - added, label.weight)
        self._remember(call_id, Mark(faded, added))
        self._refresh()

    def revise(
        self,
        candidate: str,
        call_id: str,
        features: Features | None,
        previous: Label,
        label: Label,
    ) -> None:
        """Put a second verdict in the place of the first (the blend's past scores stay)."""
        place = self.index[candidate]
        rate = self.rate[place]
        if features is not None:
            difference = label.residual(rate) - previous.residual(rate)
            self.ridge.revise(self.ridge.project(features), difference)
        mark = self._marks.get(call_id)
        if mark is not None:
            self.means[place].revise(mark.faded, mark.less(previous), mark.less(label))
        self._refresh()

    def plain(self) -> dict[str, Any]:
        """The marks of the labels that can still be revised."""
        return {"marks": [[call_id, *mark] for call_id, mark in self._marks.items()]}

    def arrays(self) -> Arrays:
        """Everything learned; loading it continues exactly."""
        return {
            "means": np.array([_numbers(mean) for mean in self.means]),
            "losses": np.array([*self.blend.losses, self.blend.trust]),
            **self.ridge.arrays(),
        }

    def load(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[np.float64]]) -> None:
        """Take over what ``plain`` and ``arrays`` of a predictor of the same candidates gave."""
        self._marks = OrderedDict((call_id, Mark(*mark)) for call_id, *mark in plain["marks"])
        self.means = [_running_mean(numbers) for numbers in arrays["means"].tolist()]
        *self.blend.losses, self.blend.trust = map(float, arrays["losses"])
        self.ridge.load(arrays)
        self._refresh()

    def _learn_prompt(self, place: int, features: Features, label: Label) -> float:
        """Returns what the prompt was expected to add to the candidate's rate."""
        rate = within(self.rate[place])
        row = self.ridge.project(features)
        shift = self.ridge.shift(row)
        added = shifted(rate, self.blend.trust * shift) - rate
        self.blend.score(rate, shift, label.value, label.weight)
        curvature = rate * (1.0 - rate)
        self.ridge.add(row, (label.value - rate) / curvature, label.weight * curvature)
        return added

    def _refresh(self) -> None:
        self.rate, self.deviation = rates(self.means)
        self.optimism = optimism(self.means)

    def _remember(self, call_id: str, mark: Mark) -> None:
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
