"""The status as gauges, one number a name, for whatever exposes metrics."""

from collections.abc import Iterator

from litellm_messplus.status.report import (
    JudgeStatus,
    LevelStatus,
    SourceRate,
    Status,
    WindowStatus,
)

Named = Iterator[tuple[str, float | None]]


def metric(name: str, **labels: str) -> str:
    """Write a metric's name with labels as Prometheus writes them."""
    shown = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{shown}}}"


def gauges(status: Status) -> dict[str, float]:
    """Return every figure that is known, by metric name with labels as Prometheus writes them.

    What is unknown has no gauge, rather than zero. `docs/status.md` says what each one means.
    """
    found: dict[str, float] = {"messplus_alerts": float(len(status.alerts))}
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
    for alert in status.alerts:
        whose = {"zoo": alert.zoo or "", "service_level": alert.service_level or ""}
        _put(found, "messplus_alert", {"kind": alert.kind, **whose}, 1.0)
    return found


def _of_level(level: LevelStatus) -> Named:
    yield "messplus_alpha", level.alpha
    yield "messplus_queue", level.queue
    yield "messplus_price", level.price
    yield "messplus_within_reach", float(level.is_within_reach)
    yield "messplus_saved_share_best_single", level.best_single.saved_share
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


def _of_judge(judge: JudgeStatus) -> Named:
    yield "messplus_judge_gradings", float(judge.gradings)
    yield "messplus_judge_graded", float(judge.graded)
    yield "messplus_judge_cost", judge.cost
    yield "messplus_judge_kappa", judge.kappa
    yield "messplus_judge_counts", None if judge.counts is None else float(judge.counts)


def _put(found: dict[str, float], name: str, labels: dict[str, str], value: float | None) -> None:
    if value is not None:
        found[metric(name, **labels)] = value


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
