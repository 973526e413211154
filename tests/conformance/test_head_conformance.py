"""Every head that is shipped keeps to the protocol, and the checks find those that do not."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from litellm_messplus.conformance.heads import CHECKS, MakeHead, check_head
from litellm_messplus.prediction.encoder import Features
from litellm_messplus.prediction.head import Arrays, Head, Label, LinearHeads
from litellm_messplus.prediction.neural_heads import NeuralHeads
from tests.support.adaptive_head import AdaptiveHead


def linear(candidates: Sequence[str], dimension: int) -> LinearHeads:
    return LinearHeads(candidates, dimension, learning_rate=0.06, momentum=0.9, weight_decay=0.01)


def neural(candidates: Sequence[str], dimension: int) -> NeuralHeads:
    return NeuralHeads(candidates, dimension, learning_rate=0.06, momentum=0.9, weight_decay=0.01)


SHIPPED: dict[str, MakeHead] = {"linear": linear, "neural": neural, "adaptive": AdaptiveHead}


@pytest.mark.parametrize("make_head", SHIPPED.values(), ids=SHIPPED)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_shipped(make_head: MakeHead, check: Callable[[MakeHead], None]) -> None:
    check(make_head)


class Broken(LinearHeads):
    """Linear heads with one fault, named by the check that must find it."""

    made = 0

    def __init__(self, fault: str, candidates: Sequence[str], dimension: int) -> None:
        super().__init__(candidates, dimension, learning_rate=0.06, momentum=0.9, weight_decay=0.01)
        self.fault = fault
        Broken.made += 1
        self.number = Broken.made
        if fault == "has_its_members":
            self.dimension = dimension + 1

    def predict(self, features: Features, candidates: Sequence[str]) -> list[float]:
        match self.fault:
            case "gives_a_probability_for_each_candidate":
                return super().predict(features, sorted(candidates))
            case "refuses_unknown_candidates":
                candidates = [name for name in candidates if name in self.candidates]
            case "predicting_changes_nothing":
                self.weights += 1e-9
            case "survives_extreme_features":
                with np.errstate(over="ignore"):
                    features = features * np.float32(4.0)
            case "refuses_unsound_features" if features.shape == (self.dimension,):
                features = np.nan_to_num(features)
        return super().predict(features, candidates)

    def learn(self, features: Features, labels: Mapping[str, Label]) -> None:
        ((candidate, label),) = labels.items()
        match self.fault:
            case "learns_from_one_label" if not self.velocity.any():
                label = Label(0.5)
            case "follows_the_labels" if self.velocity.all():
                label = Label(1.0 - label.value)
            case "weighs_the_labels":
                label = Label(label.value)
            case "is_deterministic":
                features = features * np.float32(1.0 + self.number / 1e6)
            case "leaves_the_others_alone":
                self.weights *= 0.999
        super().learn(features, {candidate: label})

    def revise(self, features: Features, candidate: str, previous: Label, label: Label) -> None:
        if self.fault == "follows_a_revision":
            previous, label = label, previous
        super().revise(features, candidate, previous, label)

    def remove(self, candidate: str) -> None:
        super().remove(candidate)
        if self.fault == "takes_candidates_in_and_out":
            self.weights = self.weights[::-1].copy()

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super().load(arrays)
        if self.fault == "goes_on_where_it_was_saved":
            self.velocity[:] = 0.0

    def arrays(self) -> Arrays:
        arrays = super().arrays()
        if self.fault == "goes_on_where_it_was_saved":
            del arrays["velocity"]
        return arrays


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_fault_is_found_by_its_check(check: Callable[[MakeHead], None]) -> None:
    def broken(candidates: Sequence[str], dimension: int) -> Head:
        return Broken(check.__name__, candidates, dimension)

    with pytest.raises((AssertionError, ValueError)):
        check(broken)
    with pytest.raises((AssertionError, ValueError)):
        check_head(broken)


def test_a_head_that_never_learns_is_found() -> None:
    class Deaf(LinearHeads):
        def learn(self, features: Features, labels: Mapping[str, Label]) -> None:
            self.predict(features, list(labels))

    def deaf(candidates: Sequence[str], dimension: int) -> Head:
        return Deaf(candidates, dimension, learning_rate=0.1, momentum=0.0, weight_decay=0.0)

    with pytest.raises(AssertionError, match=r"a label of 1\.0 must move towards it"):
        check_head(deaf)
