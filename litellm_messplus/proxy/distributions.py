"""How decision times, costs and verdicts are distributed: counted in buckets, for histograms.

Counted here and not by `prometheus_client.Histogram`: with several workers, LiteLLM's own metrics
use files (`PROMETHEUS_MULTIPROC_DIR`), and then that class would write into the same files. What
this worker counted becomes a sum over all workers as every counter does.
"""

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate

from prometheus_client.core import HistogramMetricFamily

from litellm_messplus.bounded import Bounded
from litellm_messplus.records import CallRecord, LabelRecord, Record, RequestRecord
from litellm_messplus.vocabulary import CallRole, CallStatus

REMEMBERED = 4096
"""Requests whose zoo is known when their calls end, the newest: as many as are open."""
SUM = -1
"""In place of a bucket: the sum of all values."""

Place = tuple[str, tuple[str, ...], int]
"""Of a histogram: its metric, the values of its labels, and which bucket, counted from 0."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """A histogram. ``bounds`` are the upper ones of its buckets; one more holds what is above."""

    metric: str
    meaning: str
    labels: tuple[str, ...]
    bounds: tuple[float, ...]

    @property
    def buckets(self) -> tuple[str, ...]:
        """The buckets by their upper bounds, as Prometheus names them."""
        return (*map(str, self.bounds), "+Inf")


DECISION_SECONDS = Distribution(
    "messplus_decision_seconds",
    "How long each decision took, the features of the prompt included.",
    ("zoo",),
    (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
)
CALL_COST = Distribution(
    "messplus_call_cost",
    "What each ended call of known cost took, in the zoo's unit.",
    ("zoo", "role"),
    tuple(float(f"{first}e{power}") for power in range(-6, 5) for first in (1, 3)),
)
ANSWER_SECONDS = Distribution(
    "messplus_answer_seconds",
    "How long each answer that a user saw took, by the model that gave it.",
    ("zoo", "candidate"),
    (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0),
)
LABEL_SATISFACTION = Distribution(
    "messplus_label_satisfaction",
    "Satisfaction from 0 to 1 of each label that was given and counts.",
    ("kind",),
    tuple(tenth / 10 for tenth in range(11)),
)
DISTRIBUTIONS = (DECISION_SECONDS, CALL_COST, ANSWER_SECONDS, LABEL_SATISFACTION)


class Distributions:
    """The distributions of the records that this worker has written since its start."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._zoos: Bounded[str, str] = Bounded(remembered)
        self._counts: defaultdict[Place, float] = defaultdict(float)

    def __len__(self) -> int:
        return len(self._zoos)

    def saw(self, record: Record) -> None:
        """Count what a record tells."""
        match record:
            case RequestRecord():
                self._remember(record)
                self._count(DECISION_SECONDS, record.decision_seconds, record.zoo)
            case CallRecord() if zoo := self._zoos.get(record.request_id):
                self._saw_call(record, zoo)
            case LabelRecord() if record.weight > 0.0:
                self._count(LABEL_SATISFACTION, record.value, record.kind)

    def _saw_call(self, call: CallRecord, zoo: str) -> None:
        if call.cost is not None:
            self._count(CALL_COST, call.cost, zoo, call.role)
        is_own = call.status == CallStatus.SUCCESS and not call.is_cache_hit
        if is_own and call.role == CallRole.SERVED and call.seconds is not None:
            self._count(ANSWER_SECONDS, call.seconds, zoo, call.candidate or "")

    def counts(self) -> dict[str, float]:
        """Give what was counted, by names that tell the bucket: what workers can add up."""
        return {json.dumps(place): count for place, count in self._counts.items()}

    def _remember(self, record: RequestRecord) -> None:
        self._zoos[record.request_id] = record.zoo

    def _count(self, told: Distribution, value: float, *labels: str) -> None:
        bucket = bisect_left(told.bounds, value)
        self._counts[told.metric, labels, bucket] += 1
        self._counts[told.metric, labels, SUM] += value


def histograms(counts: Mapping[str, float]) -> Iterator[HistogramMetricFamily]:
    """Make what workers counted into histograms; one that has counted nothing is empty."""
    by_series: dict[str, dict[tuple[str, ...], dict[int, float]]] = {}
    for name, count in counts.items():
        metric, labels, bucket = json.loads(name)
        by_series.setdefault(metric, {}).setdefault(tuple(labels), {})[bucket] = count
    for told in DISTRIBUTIONS:
        family = HistogramMetricFamily(told.metric, told.meaning, labels=told.labels)
        for series, found in sorted(by_series.get(told.metric, {}).items()):
            up_to = accumulate(found.get(each, 0.0) for each in range(len(told.buckets)))
            family.add_metric(
                series, list(zip(told.buckets, up_to, strict=True)), found.get(SUM, 0.0)
            )
        yield family
