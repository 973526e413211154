"""The status as gauges, one number a name, for whatever exposes metrics."""

from collections.abc import Iterator

from litellm_messplus.status.report import LevelStatus, Status, WindowStatus

Named = Iterator[tuple[str, float | None]]


def gauges(status: Status) -> dict[str, float]:
    """Every figure that is known, by metric name with labels as Prometheus writes them.

    What is unknown has no gauge, rather than zero. `docs/status.md` says what each one means.
    """
    found: dict[str, float] = {"messplus_alerts": float(len(status.alerts))}
    for level in status.levels:
        labels = {"zoo": level.zoo, "service_level": level.service_level}
        for name, value in _of_level(level):
            _put(found, name, labels, value)
        for span, window in (("all", level.overall), ("last", level.last)):
            for name, value in _of_window(window):
                _put(found, name, {**labels, "window": span}, value)
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


def _of_window(window: WindowStatus) -> Named:
    satisfaction = window.satisfaction
    yield "messplus_requests", float(satisfaction.requests)
    yield "messplus_answered", float(satisfaction.answered)
    yield "messplus_answered_share", satisfaction.answered_share
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


def _put(found: dict[str, float], name: str, labels: dict[str, str], value: float | None) -> None:
    if value is not None:
        shown = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        found[f"{name}{{{shown}}}"] = value


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
