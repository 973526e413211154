"""Policy `paper` as a fold: heads trained on explorations, a queue moved by served labels."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.learning.entries import Decided, Example, Labelled
from litellm_messplus.learning.policy import Arrays
from litellm_messplus.prediction.encoder import Features
from litellm_messplus.prediction.linear_heads import LinearHeads
from litellm_messplus.routing import paper, virtual_queue
from litellm_messplus.routing.decision import Decision, Situation
from litellm_messplus.settings.schema import ServiceLevel


class PaperPolicy:
    """Algorithm 1 of MESS+."""

    def __init__(self, heads: LinearHeads) -> None:
        self.heads = heads
        self.queues: dict[str, float] = {}

    def predict(self, features: Features, candidates: Sequence[str]) -> list[float]:
        return self.heads.predict(features, candidates)

    def queue(self, level: str) -> float:
        return self.queues.get(level, 0.0)

    def answered_requests(self, level: str) -> int:
        """Algorithm 1 does not ask how sure it is."""
        return 0

    def decide(self, level: ServiceLevel, situation: Situation) -> Decision:
        return paper.decide(situation, V=level.V, c=level.c)

    def decided(self, entry: Decided) -> None:
        """Algorithm 1 knows no pending requests."""

    def answered(self, entry: Labelled) -> None:
        queue = self.queue(entry.service_level)
        self.queues[entry.service_level] = (
            virtual_queue.after_answer(queue, entry.alpha, entry.satisfaction)
            if entry.previous is None
            else virtual_queue.after_revision(queue, entry.previous, entry.satisfaction)
        )

    def learn(
        self,
        example: Example,
        call_id: str,
        satisfaction: float,
        previous: float | None,
        weight: float,
    ) -> None:
        """Algorithm 1 trains on explorations only."""
        if not example.is_exploration:
            return
        if previous is None:
            self.heads.learn(example.features, example.candidate, satisfaction)
        else:
            self.heads.revise(example.features, example.candidate, previous, satisfaction)

    def plain(self) -> dict[str, Any]:
        return {"queues": self.queues}

    def arrays(self) -> Arrays:
        return {"weights": self.heads.weights, "velocity": self.heads.velocity}

    def load(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[np.float64]]) -> None:
        self.queues = dict(plain["queues"])
        self.heads.weights[:] = arrays["weights"]
        self.heads.velocity[:] = arrays["velocity"]
