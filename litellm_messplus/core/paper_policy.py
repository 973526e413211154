"""Policy `paper` as a fold: heads trained on explorations, a queue moved by served labels."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.core import decision, held, paper
from litellm_messplus.core.decision import Decision, Situation
from litellm_messplus.core.encoder import Features
from litellm_messplus.core.entries import Decided, Example, FailedCall, Labelled
from litellm_messplus.core.head import Arrays, Head, Label, fill
from litellm_messplus.core.predictor import Seen
from litellm_messplus.core.prompt import Prompt
from litellm_messplus.core.rates import LabelMeans
from litellm_messplus.core.verdict import Given
from litellm_messplus.settings.promise import ServiceLevel

EXPLORATION_WAIT_SECONDS = 600.0
"""The longest wait for the labels of all calls of an exploration, before the predictor learns from
those at hand: longer than any judge takes, or a user who answers at once."""

# Explorations whose labels are not complete: the paper learns from them together (Eq. 4).
#
# Labels of one exploration come one by one: a check's at once, a user's perhaps never. The step is
# made with the last label, or at the time limit with those at hand.


class Explored(NamedTuple):
    """A prompt and its labels by candidate."""

    features: Features
    labels: dict[str, Label]


@dataclass(slots=True)
class _Exploration:
    """An exploration that waits for labels: ``since`` is when it was decided, in seconds since
    1970; ``calls`` the number of labels that may come."""

    since: float
    calls: int
    features: Features | None = None
    labels: dict[str, Label] = field(default_factory=dict)


class WaitingExplorations:
    """The waiting explorations, in the order of their decisions. Times are those of the log, so
    that the fold does not depend on when it runs."""

    def __init__(self, wait_seconds: float) -> None:
        self._wait_seconds = wait_seconds
        self._waiting: OrderedDict[str, _Exploration] = OrderedDict()

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._waiting

    def open(self, request_id: str, calls: int, at: float) -> None:
        """Open a decided exploration of ``calls`` calls."""
        self._waiting[request_id] = _Exploration(at, calls)

    def add(
        self, request_id: str, features: Features, candidate: str, label: Label
    ) -> Explored | None:
        """Add or replace a candidate's label of a waiting exploration, and return it if it is
        complete."""
        exploration = self._waiting[request_id]
        exploration.features = features
        exploration.labels[candidate] = label
        if len(exploration.labels) < exploration.calls:
            return None
        del self._waiting[request_id]
        return Explored(features, exploration.labels)

    def forget(self, candidate: str) -> None:
        """Drop the labels of a removed candidate."""
        for each in self._waiting.values():
            each.labels.pop(candidate, None)

    def overdue(self, at: float) -> Iterator[Explored]:
        """Close explorations that waited too long, and yield examples of the labels at hand."""
        while self._waiting:
            request_id, oldest = next(iter(self._waiting.items()))
            if at - oldest.since <= self._wait_seconds:
                return
            del self._waiting[request_id]
            if oldest.features is not None:
                yield Explored(oldest.features, oldest.labels)

    def plain(self) -> list[Any]:
        """Return them for a snapshot, exactly: a JSON float holds a float32 without loss."""
        return [
            [
                request_id,
                each.since,
                each.calls,
                None if each.features is None else each.features.tolist(),
                {name: [label.value, label.weight] for name, label in each.labels.items()},
            ]
            for request_id, each in self._waiting.items()
        ]

    def load(self, plain: list[Any]) -> None:
        """Load what ``plain`` returned."""
        self._waiting = OrderedDict(
            (request_id, _Exploration(since, calls, _features(features), _labels(labels)))
            for request_id, since, calls, features, labels in plain
        )


def _features(numbers: list[float] | None) -> Features | None:
    return None if numbers is None else np.array(numbers, dtype=np.float32)


def _labels(plain: Mapping[str, list[float]]) -> dict[str, Label]:
    return {name: Label(*numbers) for name, numbers in plain.items()}


class PaperPolicy:
    """Algorithm 1 of MESS+. If the features came too late, a case not in the paper, the plain means
    of the explored labels predict, and they alone learn."""

    def __init__(self, heads: Head) -> None:
        self.heads = heads
        self.waiting = WaitingExplorations(EXPLORATION_WAIT_SECONDS)
        self.means = LabelMeans(heads.candidates)
        self.queues: dict[str, float] = {}

    def predict(self, prompt: Prompt, candidates: Sequence[str]) -> list[float]:
        """Predict from the encoder's features alone, as the paper does."""
        if prompt.features is None:
            return self.means.predict(candidates)
        return self.heads.predict(prompt.features, candidates)

    @property
    def recent(self) -> None:
        """None: Algorithm 1 does not plan."""
        return None

    def queue(self, level: str) -> float:
        return self.queues.get(level, 0.0)

    def answered_requests(self, level: str) -> int:
        """Return zero: Algorithm 1 has no measure of certainty."""
        return 0

    def decide(self, level: ServiceLevel, situation: Situation) -> Decision:
        if situation.is_forced:
            return held.forced(situation, situation.estimates[0].satisfaction)
        return paper.decide(situation, V=level.V, c=level.c)

    def decided(self, entry: Decided) -> None:
        """Open an exploration, which waits for labels; Algorithm 1 has no other pending
        requests."""
        for explored in self.waiting.overdue(entry.at):
            self.heads.learn(*explored)
        if entry.calls > 1:
            self.waiting.open(entry.request_id, entry.calls, entry.at)

    def answered(self, entry: Labelled, verdict: Given, previous: Given | None) -> None:
        shortfall = -verdict.label.residual(entry.alpha)
        if previous is not None:  # only the difference moves it: the request counts once
            shortfall += previous.label.residual(entry.alpha)
        self._owe(entry.service_level, shortfall)

    def failed(self, call: FailedCall, verdict: Given | None) -> None:
        """Take back the earlier verdict on a request that ended without an answer: nothing else was
        expected of it."""
        if call.is_served and verdict is not None:
            self._owe(call.service_level, verdict.label.residual(call.alpha))

    def _owe(self, level: str, shortfall: float) -> None:
        self.queues[level] = decision.after(self.queue(level), shortfall)

    def unseen_answered(self, previous: Label | None) -> None:
        """Do nothing: Algorithm 1 explores whether labels come or not."""

    def learn(self, example: Example, call_id: str, verdict: Label, previous: Label | None) -> None:
        """Learn from explorations only, as Algorithm 1 does."""
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
        """Learn with the exploration's other labels, or alone if it no longer waits."""
        candidate = example.candidate
        if example.request_id in self.waiting:
            explored = self.waiting.add(example.request_id, features, candidate, verdict)
            if explored is not None:
                self.heads.learn(*explored)
        elif previous is None:
            self.heads.learn(features, {candidate: verdict})
        else:
            self.heads.revise(features, candidate, previous, verdict)

    def add(self, candidate: str) -> None:
        self.heads.add(candidate)
        self.means.add(candidate)

    def remove(self, candidate: str) -> None:
        self.heads.remove(candidate)
        self.means.remove(candidate)
        self.waiting.forget(candidate)

    def read(self, example: Example) -> None:
        """Do nothing: Algorithm 1 does not read answers."""

    def shown(self, candidate: str, prompt: Prompt, seen: Seen) -> tuple[float, float]:
        (known,) = self.predict(prompt, [candidate])
        return known, known

    def spread(self, candidates: Sequence[str]) -> None:
        """Return None: Algorithm 1 does not read answers."""

    def bring_in(self, candidate: str) -> None:
        """Do nothing: for Algorithm 1 a new model is one more model to explore."""

    def newcomers(self, alpha: float, candidates: Sequence[str]) -> tuple[str, ...]:
        return ()

    def plain(self) -> dict[str, Any]:
        return {"queues": dict(self.queues), "waiting": self.waiting.plain()}

    def arrays(self) -> Arrays:
        return {**self.heads.arrays(), "label_means": self.means.counts}

    def load(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        fill({"label_means": self.means.counts}, arrays)
        self.heads.load(arrays)
        self.queues = dict(plain["queues"])
        self.waiting.load(plain["waiting"])
