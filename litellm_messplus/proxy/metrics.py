"""What Prometheus reads: the status as gauges, what all workers counted, and histograms."""

from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from litellm_messplus.deciding.decider import Engine
from litellm_messplus.proxy.distributions import histograms
from litellm_messplus.proxy.readiness import Readiness
from litellm_messplus.proxy.shared_counters import counters_of, distributions_of, measured_of
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.status.gauges import MEANINGS as OF_THE_STATUS
from litellm_messplus.status.gauges import Series, gauges
from litellm_messplus.status.report import Status

MEANINGS = {
    **OF_THE_STATUS,
    "messplus_up": "1 where the worker that answers routes, 0 while it waits for the database.",
    "messplus_degraded": "1 where that worker routes and the database does not take its log.",
    "messplus_counter": "What failed or was left out, by name.",
    "messplus_encoder_prompts": "Prompts that were encoded.",
    "messplus_encoder_batches": "In how many batches they were encoded.",
    "messplus_encoder_seconds": "Seconds that the encoder itself worked.",
    "messplus_encoder_joules": "Joules above idle that the encoder took.",
    "messplus_encoder_cache_hits": "Requests whose text had been encoded lately.",
    "messplus_encoder_late": "Requests that waited for features in vain.",
    "messplus_encoder_overloaded": "Requests that did not wait, for it would have been in vain.",
    "messplus_encoder_failures": "Prompts that could not be encoded.",
    "messplus_carbon_grams": "Grams of CO2e that the energy of all calls comes to.",
    "messplus_price_factor": "What a candidate's price is multiplied by.",
}
"""What each metric is; that of a histogram is beside its buckets."""


def exposition(
    figures: Mapping[Series, float], engines: Mapping[str, Engine], counts: Mapping[str, float]
) -> str:
    """Write everything in Prometheus's text format; ``counts`` are those of all workers."""
    found = {**figures, **price_gauges(engines), **_counted(counts)}
    registry = CollectorRegistry()
    registry.register(_Told([*_families(found), *histograms(distributions_of(counts))]))
    return generate_latest(registry).decode()


def figures_of(status: Status, engines: Mapping[str, Engine]) -> dict[Series, float]:
    """Give the figures that the log tells."""
    zoos = {name: engine.zoo for name, engine in engines.items()}
    return gauges(status) | carbon_gauges(status, zoos)


def readiness_gauges(found: Readiness) -> dict[Series, float]:
    """Give the state of the worker that is asked."""
    return {
        Series("messplus_up"): float(found is not Readiness.ABSENT),
        Series("messplus_degraded"): float(found is Readiness.DEGRADED),
    }


class _Told(Collector):
    """Metrics that are known by now, in the form that a registry asks for."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _families(found: Mapping[Series, float]) -> Iterable[Metric]:
    """Group the series by metric: those of one have the same labels, and stand together."""
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
    encoder = {
        Series(f"messplus_encoder_{name}"): value for name, value in measured_of(counts).items()
    }
    return failures | encoder


# What the calls of a zoo that counts in joules have emitted, where its electricity is known.


def carbon_gauges(status: Status, zoos: Mapping[str, Zoo]) -> dict[Series, float]:
    """Give the grams of CO2e of each service level whose cost and carbon are known."""
    found = {}
    for level in status.levels:
        grams = _grams_per_joule(zoos.get(level.zoo))
        if grams is not None and level.overall.cost.total is not None:
            whose = {"zoo": level.zoo, "service_level": level.service_level}
            series = Series.of("messplus_carbon_grams", **whose)
            found[series] = grams * level.overall.cost.total
    return found


def _grams_per_joule(zoo: Zoo | None) -> float | None:
    """Find a zoo's grams per joule: None in a zoo of dollars too, whose carbon is refused."""
    electricity = zoo.settings.electricity if zoo is not None else None
    return None if electricity is None else electricity.grams_per_joule


# How far prices have followed the energy that is measured in service.


def price_gauges(engines: Mapping[str, Engine]) -> dict[Series, float]:
    """Give the factor of each candidate whose energy is measured."""
    return {
        Series.of("messplus_price_factor", zoo=zoo, candidate=candidate): factor
        for zoo, engine in engines.items()
        for candidate, factor in engine.price_factors.items()
    }
