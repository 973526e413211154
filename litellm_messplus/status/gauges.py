"""The status as gauges, one number a series, for whatever exposes metrics."""

from collections.abc import Iterator
from typing import NamedTuple, Self

from litellm_messplus.status.report import (
    JudgeStatus,
    LabelCostStatus,
    LevelStatus,
    LiveLevel,
    LiveLevels,
    SourceRate,
    Status,
    WindowStatus,
)

Named = Iterator[tuple[str, float | None]]


MEANINGS = {
    "messplus_alpha": "`alpha`",
    "messplus_queue": "`queue`",
    "messplus_price": "`price`",
    "messplus_within_reach": "1 where a candidate can hold alpha, else 0.",
    "messplus_saved_share_best_single": "Saved against the best single model, an estimate.",
    "messplus_late_share": "`limits.latency.late_share`",
    "messplus_budget": "`limits.budget.per_day`",
    "messplus_budget_spent": "`limits.budget.spent`",
    "messplus_budget_strain": "`limits.budget.strain`",
    "messplus_response_bias": "`response_bias.ratio`",
    "messplus_response_bias_low": "`response_bias.low`",
    "messplus_response_bias_high": "`response_bias.high`",
    "messplus_feedback_corrected": "`response_bias.corrected_rate`",
    "messplus_judge_gradings": "`gradings`",
    "messplus_judge_graded": "`graded`",
    "messplus_judge_cost": "`cost`, in dollars.",
    "messplus_judge_kappa": "`kappa`",
    "messplus_judge_position_bias": "`position_bias`",
    "messplus_judge_counts": "1 where its labels count, else 0.",
    "messplus_labels_unseen_cost": "`label_costs.unseen`; labelled with `zoo` alone.",
    "messplus_labels_judging_dollars": "`label_costs.judging`; labelled with `zoo` alone.",
    "messplus_labels_saved": "`label_costs.saved`; labelled with `zoo` alone.",
    "messplus_alert": "1 for each alert, labelled with its `kind` too.",
    "messplus_alerts": "How many alerts there are; without labels.",
    "messplus_requests": "`satisfaction.requests`",
    "messplus_answered": "`satisfaction.answered`",
    "messplus_answered_share": "`satisfaction.answered_share`",
    "messplus_labelled_share": "`labels.labelled_share`",
    "messplus_source_labelled": "`labelled` of a source.",
    "messplus_source_counting": "`counting`",
    "messplus_source_satisfaction": "`rate` of a source.",
    "messplus_source_satisfaction_low": "`low` of a source.",
    "messplus_source_satisfaction_high": "`high` of a source.",
    "messplus_predicting_seconds": "`overhead.predicting_seconds`",
    "messplus_predicting_share": "`overhead.predicting_share`",
    "messplus_deciding_seconds": "`overhead.deciding_seconds`",
    "messplus_deciding_share": "`overhead.deciding_share`",
    "messplus_call_seconds": "`overhead.call_seconds`",
    "messplus_predicting_joules": "`overhead.predicting_joules`",
    "messplus_promised": "`satisfaction.promised`",
    "messplus_satisfaction": "`satisfaction.rate`",
    "messplus_satisfaction_low": "`satisfaction.low`",
    "messplus_satisfaction_high": "`satisfaction.high`",
    "messplus_evidence_thin": "1 where evidence is thin, else 0.",
    "messplus_cost": "`cost.total`",
    "messplus_cost_per_request": "`cost.per_request`",
    "messplus_exploration_share": "`exploration.share`",
    "messplus_exploration_cost_share": "`exploration.cost_share`",
    "messplus_saved_share_largest": "`savings.saved_share`",
}
"""What each gauge is, as `docs/status.md` says it: mostly which figure of the status."""


class Series(NamedTuple):
    """A metric with the values of its labels, of which Prometheus keeps one number."""

    metric: str
    labels: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, metric: str, **labels: str) -> Self:
        """Name the series of a metric that has these labels."""
        return cls(metric, tuple(labels.items()))


def gauges(status: Status) -> dict[Series, float]:
    """Give every figure that is known.

    What is unknown has no gauge, rather than zero. `docs/status.md` says what each one means.
    """
    found = {Series("messplus_alerts"): float(len(status.alerts))}
    for level in status.levels:
        labels = {"zoo": level.zoo, "service_level": level.service_level}
        for name, value in _of_level(level):
            _put(found, name, labels, value)
        for span, window in (("all", level.overall), ("last", level.last)):
            by_window = {**labels, "window": span}
            for name, value in _of_window(window):
                _put(found, name, by_window, value)
            for source in window.labels.sources:
                for name, value in _of_source(source):
                    _put(found, name, {**by_window, "source": source.source}, value)
    for judge in status.judges:
        for name, value in _of_judge(judge):
            _put(found, name, {"zoo": judge.zoo, "judge": judge.judge}, value)
    for costs in status.label_costs:
        for name, value in _of_label_costs(costs):
            _put(found, name, {"zoo": costs.zoo}, value)
    for alert in status.alerts:
        whose = {"zoo": alert.zoo or "", "service_level": alert.service_level or ""}
        _put(found, "messplus_alert", {"kind": alert.kind, **whose}, 1.0)
    return found


def live_gauges(live: LiveLevels) -> dict[Series, float]:
    """Give what a worker knows of its promises without the log."""
    found: dict[Series, float] = {}
    for (zoo, service_level), level in live.items():
        for name, value in _of_live(level):
            _put(found, name, {"zoo": zoo, "service_level": service_level}, value)
    return found


def _of_live(level: LiveLevel) -> Named:
    yield "messplus_alpha", level.alpha
    yield "messplus_queue", level.queue
    yield "messplus_price", level.price
    if level.is_within_reach is not None:
        yield "messplus_within_reach", float(level.is_within_reach)


def _of_level(level: LevelStatus) -> Named:
    yield "messplus_alpha", level.alpha
    yield "messplus_queue", level.queue
    yield "messplus_price", level.price
    yield "messplus_within_reach", float(level.is_within_reach)
    yield "messplus_saved_share_best_single", level.best_single.saved_share
    if level.limits is not None and level.limits.latency is not None:
        yield "messplus_late_share", level.limits.latency.late_share
    if level.limits is not None and level.limits.budget is not None:
        yield "messplus_budget", level.limits.budget.per_day
        yield "messplus_budget_spent", level.limits.budget.spent
        yield "messplus_budget_strain", level.limits.budget.strain
    bias = level.response_bias
    if bias is not None:
        yield "messplus_response_bias", bias.ratio
        yield "messplus_response_bias_low", bias.low
        yield "messplus_response_bias_high", bias.high
        yield "messplus_feedback_corrected", bias.corrected_rate


def _of_window(window: WindowStatus) -> Named:
    satisfaction = window.satisfaction
    yield "messplus_requests", float(satisfaction.requests)
    yield "messplus_answered", float(satisfaction.answered)
    yield "messplus_answered_share", satisfaction.answered_share
    yield "messplus_labelled_share", window.labels.labelled_share
    yield "messplus_promised", satisfaction.promised
    yield "messplus_satisfaction", satisfaction.rate
    yield "messplus_satisfaction_low", satisfaction.low
    yield "messplus_satisfaction_high", satisfaction.high
    yield "messplus_evidence_thin", float(satisfaction.is_thin)
    yield "messplus_cost", window.cost.total
    yield "messplus_cost_per_request", window.cost.per_request
    yield "messplus_exploration_share", window.exploration.share
    yield "messplus_exploration_cost_share", window.exploration.cost_share
    yield (
        "messplus_saved_share_largest",
        window.savings.saved_share if window.savings else None,
    )

    if window.overhead is not None:
        yield "messplus_predicting_seconds", window.overhead.predicting_seconds
        yield "messplus_predicting_share", window.overhead.predicting_share
        yield "messplus_deciding_seconds", window.overhead.deciding_seconds
        yield "messplus_deciding_share", window.overhead.deciding_share
        yield "messplus_call_seconds", window.overhead.call_seconds
        yield "messplus_predicting_joules", window.overhead.predicting_joules


def _of_source(source: SourceRate) -> Named:
    yield "messplus_source_labelled", float(source.labelled)
    yield "messplus_source_counting", float(source.counting)
    yield "messplus_source_satisfaction", source.rate
    yield "messplus_source_satisfaction_low", source.low
    yield "messplus_source_satisfaction_high", source.high


def _of_label_costs(found: LabelCostStatus) -> Named:
    yield "messplus_labels_unseen_cost", found.unseen
    yield "messplus_labels_judging_dollars", found.judging
    yield "messplus_labels_saved", found.saved


def _of_judge(judge: JudgeStatus) -> Named:
    yield "messplus_judge_gradings", float(judge.gradings)
    yield "messplus_judge_graded", float(judge.graded)
    yield "messplus_judge_cost", judge.cost
    yield "messplus_judge_kappa", judge.kappa
    yield "messplus_judge_position_bias", judge.position_bias
    yield "messplus_judge_counts", None if judge.counts is None else float(judge.counts)


def _put(
    found: dict[Series, float], name: str, labels: dict[str, str], value: float | None
) -> None:
    if value is not None:
        found[Series.of(name, **labels)] = value
