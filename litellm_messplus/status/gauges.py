"""The status as gauges, one number per series, for any exporter of metrics."""

from collections.abc import Iterable
from typing import Any, NamedTuple, Self

from litellm_messplus.figures.shown import GROUPS, JUDGE, LABEL_COSTS, LEVEL, SOURCE, WINDOW, Shown
from litellm_messplus.figures.words import value_at
from litellm_messplus.status.report import LiveLevels, Status

MEANINGS = {
    f"messplus_{each.gauge}": each.help or f"`{each.path}`"
    for group in GROUPS
    for each in group
    if each.gauge
}
"""The description of each gauge: mostly the path of its figure in the status."""
LIVE = [each for each in LEVEL if "." not in each.path]
"""The figures of a promise that are known without the log."""


class Series(NamedTuple):
    """A metric with the values of its labels, for which Prometheus keeps one number."""

    metric: str
    labels: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, metric: str, **labels: str) -> Self:
        """Return the series of a metric with these labels."""
        return cls(metric, tuple(labels.items()))


def gauges(status: Status) -> dict[Series, float]:
    """Return every known figure.

    An unknown figure has no gauge, rather than zero. `docs/status.md` explains each one.
    """
    found = {Series("messplus_alerts"): float(len(status.alerts))}
    for level in status.levels:
        labels = {"zoo": level.zoo, "service_level": level.service_level}
        found |= _series(LEVEL, level, **labels)
        for span, window in (("all", level.overall), ("last", level.last)):
            found |= _series(WINDOW, window, **labels, window=span)
            for source in window.labels.sources:
                found |= _series(SOURCE, source, **labels, window=span, source=source.source)
    for judge in status.judges:
        found |= _series(JUDGE, judge, zoo=judge.zoo, judge=judge.judge)
    for costs in status.label_costs:
        found |= _series(LABEL_COSTS, costs, zoo=costs.zoo)
    for alert in status.alerts:
        whose = {"zoo": alert.zoo or "", "service_level": alert.service_level or ""}
        found[Series.of("messplus_alert", kind=alert.kind, **whose)] = 1.0
    return found


def live_gauges(live: LiveLevels) -> dict[Series, float]:
    """Return the figures of promises that a worker knows without the log."""
    found: dict[Series, float] = {}
    for (zoo, service_level), level in live.items():
        found |= _series(LIVE, level, zoo=zoo, service_level=service_level)
    return found


def _series(group: Iterable[Shown], found: Any, **labels: str) -> dict[Series, float]:
    """Return the figures of a part; a figure that is a word becomes a label of its gauge."""
    known = ((each.gauge, value_at(found, each.path)) for each in group if each.gauge)
    series: dict[Series, float] = {}
    for gauge, value in known:
        if isinstance(value, str):
            series[Series.of(f"messplus_{gauge}", **labels, **{gauge: value})] = 1.0
        elif value is not None:
            series[Series.of(f"messplus_{gauge}", **labels)] = float(value)
    return series
