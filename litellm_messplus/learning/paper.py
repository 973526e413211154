"""Policy `paper` as a fold: heads trained on explorations, a queue moved by served labels."""

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from litellm_messplus.learning.entries import Decided, Example, Labelled
from litellm_messplus.learning.waiting_explorations import WaitingExplorations
from litellm_messplus.prediction.encoder import Features
from litellm_messplus.prediction.head import Arrays, Head, fill
from litellm_messplus.prediction.label import Label
from litellm_messplus.prediction.label_means import LabelMeans
from litellm_messplus.prediction.prompt import Prompt
from litellm_messplus.routing import paper, virtual_queue
from litellm_messplus.routing.decision import Decision, Situation
from litellm_messplus.settings.schema import ServiceLevel


class PaperPolicy:
    """Algorithm 1 of MESS+. Where the features came too late, which it does not know, the plain
    means of the explored labels are predicted, and learn alone."""

    def __init__(self, heads: Head, exploration_wait_seconds: float) -> None:
        self.heads = heads
        self.waiting = WaitingExplorations(exploration_wait_seconds)
        self.means = LabelMeans(heads.candidates)
        self.queues: dict[str, float] = {}

    def predict(self, prompt: Prompt, candidates: Sequence[str]) -> list[float]:
        """From the encoder's features alone, as the paper does."""
        if prompt.features is None:
            return self.means.predict(candidates)
        return self.heads.predict(prompt.features, candidates)

    @property
    def recent(self) -> None:
        """Algorithm 1 does not plan."""
        return None

    def queue(self, level: str) -> float:
        return self.queues.get(level, 0.0)

    def answered_requests(self, level: str) -> int:
        """Algorithm 1 does not ask how sure it is."""
        return 0

    def decide(self, level: ServiceLevel, situation: Situation) -> Decision:
        return paper.decide(situation, V=level.V, c=level.c)

    def decided(self, entry: Decided) -> None:
        """Algorithm 1 knows no pending requests, but explorations wait for their labels."""
        for lesson in self.waiting.overdue(entry.at):
            self.heads.learn(*lesson)
        if entry.calls > 1:
            self.waiting.open(entry.request_id, entry.calls, entry.at)

    def answered(self, entry: Labelled, verdict: Label, previous: Label | None) -> None:
        shortfall = -verdict.residual(entry.alpha)
        if previous is not None:  # only the difference moves it: the request counts once
            shortfall += previous.residual(entry.alpha)
        queue = self.queue(entry.service_level)
        self.queues[entry.service_level] = virtual_queue.after(queue, shortfall)

    def unseen_answered(self, previous: Label | None) -> None:
        """Algorithm 1 explores whether labels come or not."""

    def learn(self, example: Example, call_id: str, verdict: Label, previous: Label | None) -> None:
        """Algorithm 1 trains on explorations only."""
        if not example.is_exploration:
            return
        if previous is None:
            self.means.learn(example.candidate, verdict)
        else:
            self.means.revise(example.candidate, previous, verdict)
        if example.features is not None:
            self._learn_prompt(example, example.features, verdict, previous)

    def _learn_prompt(
        self, example: Example, features: Features, verdict: Label, previous: Label | None
    ) -> None:
        """With the exploration's other labels, or alone where it does not wait any more."""
        candidate = example.candidate
        if example.request_id in self.waiting:
            lesson = self.waiting.add(example.request_id, features, candidate, verdict)
            if lesson is not None:
                self.heads.learn(*lesson)
        elif previous is None:
            self.heads.learn(features, {candidate: verdict})
        else:
            self.heads.revise(features, candidate, previous, verdict)

    def plain(self) -> dict[str, Any]:
        return {"queues": dict(self.queues), "waiting": self.waiting.plain()}

    def arrays(self) -> Arrays:
        return {**self.heads.arrays(), "label_means": self.means.counts}

    def load(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        fill({"label_means": self.means.counts}, arrays)
        self.heads.load(arrays)
        self.queues = dict(plain["queues"])
        self.waiting.load(plain["waiting"])
