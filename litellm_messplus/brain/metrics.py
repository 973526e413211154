"""Prometheus metrics: the status as gauges, the counters of all workers, and histograms.

Histograms are counted here and not by `prometheus_client.Histogram`: with several workers,
LiteLLM's own metrics use files (`PROMETHEUS_MULTIPROC_DIR`), and then that class would write into
the same files. This worker's counts are summed over all workers like every counter.
"""

import json
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from litellm_messplus.brain.workers import (
    DISTRIBUTED,
    MEASURED,
    Readiness,
    below,
    counters_of,
)
from litellm_messplus.figures.figure import Series
from litellm_messplus.records import CallRecord, Record, RequestRecord
from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.runtime.vocabulary import CallRole, CallStatus
from litellm_messplus.status.alerts import unrouted_of
from litellm_messplus.status.figures import MEANINGS as OF_THE_STATUS

REMEMBERED = 4096
"""Number of newest requests whose zoo is kept for the end of their calls: as many as are open."""
SUM = -1
"""The bucket number that stands for the sum of all values."""

Place = tuple[str, tuple[str, ...], int]
"""The key of a count: the histogram's metric, its label values, and the bucket's index from 0."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """A histogram. ``bounds`` are the upper bounds of its buckets; one more is unbounded."""

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
    "What each ended call of known cost took, in the zoo's unit, by its `model`.",
    ("zoo", "model"),
    tuple(float(f"{first}e{power}") for power in range(-6, 5) for first in (1, 3)),
)
ANSWER_SECONDS = Distribution(
    "messplus_answer_seconds",
    "How long each answer that a user saw took, by the `model` that gave it.",
    ("zoo", "model"),
    (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0),
)
DISTRIBUTIONS = (DECISION_SECONDS, CALL_COST, ANSWER_SECONDS)


class Distributions:
    """The distributions of the records that this worker has written since its start."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._zoos: Bounded[str, str] = Bounded(remembered)
        self._counts: defaultdict[Place, float] = defaultdict(float)

    def saw(self, record: Record) -> None:
        """Count the values of a record."""
        match record:
            case RequestRecord():
                self._zoos[record.request_id] = record.zoo
                self._count(DECISION_SECONDS, record.decision_seconds, record.zoo)
            case CallRecord() if zoo := self._zoos.get(record.request_id):
                self._saw_call(record, zoo)

    def _saw_call(self, call: CallRecord, zoo: str) -> None:
        model = call.candidate or ""
        if call.cost is not None:
            self._count(CALL_COST, call.cost, zoo, model)
        if (
            call.role == CallRole.SERVED
            and call.status == CallStatus.SUCCESS
            and call.seconds is not None
            and not call.is_cache_hit
        ):
            self._count(ANSWER_SECONDS, call.seconds, zoo, model)

    def counts(self) -> dict[str, float]:
        """Return the counts by names that encode the bucket, so that they add up over workers."""
        return {json.dumps(place): count for place, count in self._counts.items()}

    def _count(self, shape: Distribution, value: float, *labels: str) -> None:
        bucket = bisect_left(shape.bounds, value)
        self._counts[shape.metric, labels, bucket] += 1
        self._counts[shape.metric, labels, SUM] += value


def histograms(counts: Mapping[str, float]) -> Iterator[HistogramMetricFamily]:
    """Build histograms from the workers' counts; one without counts is empty."""
    by_series: dict[str, dict[tuple[str, ...], dict[int, float]]] = {}
    for name, count in counts.items():
        metric, labels, bucket = json.loads(name)
        by_series.setdefault(metric, {}).setdefault(tuple(labels), {})[bucket] = count
    for shape in DISTRIBUTIONS:
        family = HistogramMetricFamily(shape.metric, shape.meaning, labels=shape.labels)
        for series, found in sorted(by_series.get(shape.metric, {}).items()):
            up_to = accumulate(found.get(each, 0.0) for each in range(len(shape.buckets)))
            family.add_metric(
                series, list(zip(shape.buckets, up_to, strict=True)), found.get(SUM, 0.0)
            )
        yield family


# The exposition: the status as gauges, the counters of all workers, and histograms.

MEANINGS = {
    **OF_THE_STATUS,
    "messplus_up": "1 where requests are routed, 0 while the brain waits for its database.",
    "messplus_degraded": "1 where requests are routed and the database does not take their log.",
    "messplus_counter": "What failed or was left out, by `name`.",
    "messplus_unrouted": "Answers to calls of a type that is not routed.",
    "messplus_encoder_prompts": "Prompts that were encoded.",
    "messplus_encoder_seconds": "Seconds that the encoder itself worked.",
    "messplus_encoder_cache_hits": "Requests whose text had been encoded lately.",
    "messplus_encoder_failures": "Prompts that could not be encoded.",
}
"""The description of each metric; that of a histogram is in its `Distribution`."""


def exposition(figures: Mapping[Series, float], counts: Mapping[str, float]) -> str:
    """Write everything in Prometheus's text format; ``counts`` are those of all workers."""
    found = {**figures, **_counted(counts)}
    registry = CollectorRegistry()
    registry.register(_Families([*_families(found), *histograms(below(counts, DISTRIBUTED))]))
    return generate_latest(registry).decode()


def readiness_gauges(found: Readiness) -> dict[Series, float]:
    """Return whether requests are routed."""
    return {
        Series("messplus_up"): float(found is not Readiness.ABSENT),
        Series("messplus_degraded"): float(found is Readiness.DEGRADED),
    }


class _Families(Collector):
    """Metrics that are already computed, as a collector for a registry."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _families(found: Mapping[Series, float]) -> Iterable[Metric]:
    """Group the series by metric: those of one metric have the same labels."""
    families: dict[str, GaugeMetricFamily] = {}
    for series, value in found.items():
        names = [name for name, _ in series.labels]
        family = families.setdefault(
            series.metric, GaugeMetricFamily(series.metric, MEANINGS[series.metric], labels=names)
        )
        family.add_metric([text for _, text in series.labels], value)
    return families.values()


def _counted(counts: Mapping[str, float]) -> dict[Series, float]:
    failures = {
        Series.of("messplus_counter", name=name): float(count)
        for name, count in counters_of(counts).items()
    }
    unrouted: Counter[Series] = Counter()
    for each in unrouted_of(counts):
        unrouted[Series.of("messplus_unrouted", zoo=each["zoo"])] += each["answers"]
    encoder = {
        Series(metric): value
        for name, value in below(counts, MEASURED).items()
        if (metric := f"messplus_encoder_{name}") in MEANINGS
    }
    return failures | unrouted | encoder
