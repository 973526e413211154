"""The predictor of `adaptive` behind the head protocol, for the checks of heads."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.core.encoder import Features
from litellm_messplus.core.head import Arrays, Label
from litellm_messplus.core.predictor import Predictor
from litellm_messplus.core.prompt import Prompt


class AdaptiveHead:
    """A call is known by its prompt; the marks of calls travel among the arrays as bytes."""

    def __init__(self, candidates: Sequence[str], dimension: int) -> None:
        self.predictor = Predictor(candidates, dimension)
        self.candidates = self.predictor.candidates
        self.dimension = dimension

    def predict(self, features: Features, candidates: Sequence[str]) -> list[float]:
        known = self.predictor.satisfaction(Prompt(features))
        return [known[self.predictor.index[name]] for name in candidates]

    def learn(self, features: Features, labels: Mapping[str, Label]) -> None:
        call_id = features.tobytes().hex()
        for candidate, label in labels.items():
            self.predictor.learn(candidate, call_id, call_id, Prompt(features), label)

    def revise(self, features: Features, candidate: str, previous: Label, label: Label) -> None:
        call_id = features.tobytes().hex()
        self.predictor.revise(candidate, call_id, Prompt(features), previous, label)

    def add(self, candidate: str) -> None:
        self.predictor.add(candidate)
        self.candidates = self.predictor.candidates

    def remove(self, candidate: str) -> None:
        self.predictor.remove(candidate)
        self.candidates = self.predictor.candidates

    def own(self, candidate: str) -> Arrays:
        place = self.predictor.index[candidate]
        return {"means": self.predictor.arrays()["means"][place]}

    def arrays(self) -> Arrays:
        plain = json.dumps(self.predictor.plain()).encode()
        return {"plain": np.frombuffer(plain, dtype=np.uint8), **self.predictor.arrays()}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.predictor.load(json.loads(arrays["plain"].tobytes()), arrays)
