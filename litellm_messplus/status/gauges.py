"""The status as gauges, one number per series, for any exporter of metrics."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from litellm_messplus.figures.figure import Figure, Plain, part, value_at
from litellm_messplus.figures.tally import Tally
from litellm_messplus.status.figures import (
    JUDGE,
    LABEL_COSTS,
    LEVEL,
    SOURCE,
    WINDOW,
    Level,
    LiveLevels,
    Source,
)

ALERT = (
    Figure[Any]("kind", gauge="alert", help="1 for each alert, labelled with its `kind` too."),
    Figure[Any]("alerts", gauge="alerts", help="How many alerts there are; without labels."),
)
"""The gauges of what needs attention: no figures of the status."""
PLACES: tuple[tuple[Iterable[Figure[Any]], str], ...] = (
    ((*LEVEL, *WINDOW, *JUDGE, *ALERT), "`{}`"),
    (SOURCE, "`{}` of a source."),
    (LABEL_COSTS, "`label_costs.{}`; labelled with `zoo` alone."),
)
"""Figures, and how a gauge without a `help` names the place of its figure in the status."""
MEANINGS = {
    f"messplus_{each.gauge}": each.help or place.format(each.path)
    for group, place in PLACES
    for each in group
    if each.gauge
}
"""The description of each gauge."""


class Series(NamedTuple):
    """A metric with the values of its labels, for which Prometheus keeps one number."""

    metric: str
    labels: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, metric: str, **labels: str) -> "Series":
        """Return the series of a metric with these labels."""
        return cls(metric, tuple(labels.items()))


def gauges(status: Plain) -> dict[Series, float]:
    """Return every known figure of a status; an unknown one has no gauge, rather than zero."""
    found = {Series("messplus_alerts"): float(len(status["alerts"]))}
    for level in status["levels"]:
        labels = {"zoo": level["zoo"], "service_level": level["service_level"]}
        found |= _series(LEVEL, level, **labels)
        for span, window in (("all", level["overall"]), ("last", level["last"])):
            found |= _series(WINDOW, window, **labels, window=span)
            for source in window["labels"]["sources"]:
                found |= _series(SOURCE, source, **labels, window=span, source=source["source"])
    for judge in status["judges"]:
        found |= _series(JUDGE, judge, zoo=judge["zoo"], judge=judge["judge"])
    for costs in status["label_costs"]:
        found |= _series(LABEL_COSTS, costs, zoo=costs["zoo"])
    for alert in status["alerts"]:
        whose = {name: alert[name] or "" for name in ("zoo", "service_level")}
        found[Series.of("messplus_alert", kind=alert["kind"], **whose)] = 1.0
    return found


def live_gauges(live: LiveLevels) -> dict[Series, float]:
    """Return the figures of promises that a worker knows without the log."""
    found: dict[Series, float] = {}
    for (zoo, service_level), now in live.items():
        level = Level((zoo, service_level), now, Source.ENGINE, None, 0.0, Tally(), 0.0)
        found |= _series(LEVEL, part(LEVEL, level), zoo=zoo, service_level=service_level)
    return found


def _series(group: Iterable[Figure[Any]], found: Plain, **labels: str) -> dict[Series, float]:
    """Return the figures of a part; a figure that is a word becomes a label of its gauge."""
    series: dict[Series, float] = {}
    for each in group:
        value = value_at(found, each.path) if each.gauge else None
        word = {each.gauge: value} if isinstance(value, str) else {}
        if value is not None:
            of = Series.of(f"messplus_{each.gauge}", **labels, **word)
            series[of] = 1.0 if word else float(value)
    return series
