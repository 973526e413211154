"""The status for people: a table for each promise, alerts first."""

from collections.abc import Callable, Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from litellm_messplus.status.alerts import Alert, AlertKind
from litellm_messplus.status.calibration_tables import calibration_tables
from litellm_messplus.status.interval import Verdict
from litellm_messplus.status.key_tables import key_tables
from litellm_messplus.status.label_rows import bias_rows, judge_tables, label_rows
from litellm_messplus.status.overhead_rows import overhead_rows
from litellm_messplus.status.report import (
    BestSingle,
    Finding,
    LevelStatus,
    Satisfaction,
    Source,
    Status,
    WindowStatus,
)

UNKNOWN = "unknown"
STYLES = {Verdict.KEPT: "green", Verdict.NOT_KEPT: "red", Verdict.CANNOT_SAY: "yellow"}


def render(status: Status) -> RenderableType:
    """Everything, to be printed by a rich console."""
    if not status.levels:
        return Group(*map(_alert, status.alerts), Text("no requests yet"))
    return Group(
        *map(_alert, status.alerts),
        *(_level(level, status.window) for level in status.levels),
        *judge_tables(status.judges),
        *key_tables(status.keys),
        *(table for zoo in status.calibration for table in calibration_tables(zoo)),
    )


def _alert(alert: Alert) -> Text:
    style = "yellow" if alert.kind is AlertKind.THIN_EVIDENCE else "bold red"
    return Text(f"{alert.subject}: {alert.message}", style=style)


def _level(level: LevelStatus, window: int) -> Table:
    table = Table(title=Text(f"{level.zoo}, service level {level.service_level}"))
    table.add_column(f"alpha {level.alpha:g}")
    table.add_column("whole time", justify="right", overflow="fold")
    table.add_column(f"last {window} requests", justify="right", overflow="fold")
    for name, cell in _ROWS.items():
        table.add_row(name, cell(level.overall, level), cell(level.last, level))
    for section in (label_rows(level), overhead_rows(level)):
        table.add_section()
        for name, overall, last in section:
            table.add_row(Text(name), overall, last)
    table.add_section()
    for label, value in bias_rows(level.response_bias):
        table.add_row(label, Text(value), "")
    for label, value in _now(level):
        table.add_row(label, "", Text(value))
    for label, value in _single(level.best_single, level.cost_unit):
        table.add_row(label, Text(value), "")
    return table


def _verdict(window: WindowStatus, level: LevelStatus) -> Text:
    found = window.satisfaction.verdict
    return Text(found.value, style=STYLES[found])


def _rate(window: WindowStatus, level: LevelStatus) -> str:
    found = window.satisfaction
    if found.rate is None or found.low is None or found.high is None:
        return UNKNOWN
    shown = f"{found.rate:.1%} ({found.low:.1%} to {found.high:.1%})"
    return shown if found.promised == level.alpha else f"{shown}, promised {found.promised:.1%}"


def _evidence(window: WindowStatus, level: LevelStatus) -> Text:
    found: Satisfaction = window.satisfaction
    return Text(found.evidence, style="yellow" if found.is_thin else "")


def _cost(window: WindowStatus, level: LevelStatus) -> str:
    shown = _money(window.cost.per_request, level.cost_unit)
    missing = window.cost.calls_without_cost
    return f"{shown} ({missing} calls of unknown cost)" if missing else shown


def _explored(window: WindowStatus, level: LevelStatus) -> str:
    found = window.exploration
    return f"{_share(found.share)} of requests, {_share(found.cost_share)} of cost"


def _saved(window: WindowStatus, level: LevelStatus) -> str:
    found = window.savings
    return UNKNOWN if found is None else _share(found.saved_share)


_ROWS: dict[str, Callable[[WindowStatus, LevelStatus], RenderableType]] = {
    "promise (95 %)": _verdict,
    "satisfied, interval": _rate,
    "evidence": _evidence,
    "with a verdict": lambda window, level: _share(window.satisfaction.answered_share),
    "cost per request": _cost,
    "explored": _explored,
    "saved against the largest": _saved,
}


def _now(level: LevelStatus) -> Iterator[tuple[str, str]]:
    when = "now" if level.source is Source.ENGINE else "at the newest request"
    yield f"queue {when}", UNKNOWN if level.queue is None else f"{level.queue:.2f}"
    yield f"price {when}", _money(level.price, level.cost_unit)
    if not level.is_within_reach:
        yield "within reach", "no candidate can hold alpha"


def _single(found: BestSingle, unit: str | None) -> Iterator[tuple[str, str]]:
    if found.finding is not Finding.FOUND:
        yield "best single model", found.note
        return
    satisfied, cost = _share(found.satisfaction), _money(found.cost_per_request, unit)
    yield "best single model", f"{found.candidate}: {satisfied} satisfied, {cost} a call"
    thin = "not enough evidence, " if found.is_thin else ""
    yield "saved against it", f"{_share(found.saved_share)} ({thin}{found.note})"


def _share(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.1%}"


def _money(value: float | None, unit: str | None) -> str:
    return UNKNOWN if value is None else f"{value:.6g} {unit or ''}".rstrip()
