"""Explorations whose labels are not all there yet: the paper learns from them together (Eq. 4).

Labels of one exploration come one by one: a check's at once, a user's perhaps never. The step is
made when the last is there, or with those that are when the time is up.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from litellm_messplus.prediction.encoder import Features
from litellm_messplus.prediction.label import Label


class Lesson(NamedTuple):
    """A prompt and its labels by candidate."""

    features: Features
    labels: dict[str, Label]


@dataclass(slots=True)
class _Exploration:
    """``since`` is when it was decided, in seconds; ``calls`` is how many labels may come."""

    since: float
    calls: int
    features: Features | None = None
    labels: dict[str, Label] = field(default_factory=dict)


class WaitingExplorations:
    """In the order of their decisions. Time is the log's, so a fold is the same at any time."""

    def __init__(self, wait_seconds: float) -> None:
        self._wait_seconds = wait_seconds
        self._waiting: OrderedDict[str, _Exploration] = OrderedDict()

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._waiting

    def open(self, request_id: str, calls: int, at: float) -> None:
        """An exploration of so many calls was decided."""
        self._waiting[request_id] = _Exploration(at, calls)

    def add(
        self, request_id: str, features: Features, candidate: str, label: Label
    ) -> Lesson | None:
        """A label of a waiting exploration, the first or in the place of an earlier one; the lesson
        where it was the last that was missing."""
        exploration = self._waiting[request_id]
        exploration.features = features
        exploration.labels[candidate] = label
        if len(exploration.labels) < exploration.calls:
            return None
        del self._waiting[request_id]
        return Lesson(features, exploration.labels)

    def overdue(self, at: float) -> Iterator[Lesson]:
        """Close what has waited for longer than the set time; the lessons of what it has."""
        while self._waiting:
            request_id, oldest = next(iter(self._waiting.items()))
            if at - oldest.since <= self._wait_seconds:
                return
            del self._waiting[request_id]
            if oldest.features is not None:
                yield Lesson(oldest.features, oldest.labels)

    def plain(self) -> list[Any]:
        """For a snapshot, exactly: a float32 is itself as a float of JSON."""
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
        """Take over what ``plain`` gave."""
        self._waiting = OrderedDict(
            (request_id, _Exploration(since, calls, _features(features), _labels(labels)))
            for request_id, since, calls, features, labels in plain
        )


def _features(numbers: list[float] | None) -> Features | None:
    return None if numbers is None else np.array(numbers, dtype=np.float32)


def _labels(plain: Mapping[str, list[float]]) -> dict[str, Label]:
    return {name: Label(*numbers) for name, numbers in plain.items()}
