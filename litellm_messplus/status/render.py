"""The tables of the status, for people: one for each promise, then those of the zoos."""

from collections.abc import Callable, Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from litellm_messplus.status.calibration_tables import calibration_tables
from litellm_messplus.status.interval import Verdict
from litellm_messplus.status.key_tables import key_tables
from litellm_messplus.status.label_rows import bias_rows, judge_tables, label_rows
from litellm_messplus.status.overhead_rows import overhead_rows
from litellm_messplus.status.report import (
    Finding,
    LevelStatus,
    Satisfaction,
    Source,
    Status,
    WindowStatus,
)

UNKNOWN = "unknown"
STYLES = {
    Verdict.KEPT: "green",
    Verdict.KEPT_WITHIN: "green",
    Verdict.NOT_KEPT: "red",
    Verdict.CANNOT_SAY: "yellow",
}


def render(status: Status) -> RenderableType:
    """Every table, to be printed by a rich console below the `summary`."""
    return Group(
        *(_level(level, status.window) for level in status.levels),
        *judge_tables(status.judges),
        *key_tables(status.keys),
        *(table for zoo in status.calibration for table in calibration_tables(zoo)),
    )


def _level(level: LevelStatus, window: int) -> Table:
    table = Table(title=Text(f"{level.zoo}, service level {level.service_level}"))
    table.add_column(f"alpha {level.alpha:g}")
    table.add_column("whole time", justify="right", overflow="fold")
    table.add_column(f"last {window} requests", justify="right", overflow="fold")
    for name, cell in _ROWS.items():
        table.add_row(name, cell(level.overall, level), cell(level.last, level))
    savings = (_share(_saved(each)) for each in (level.overall, level.last))
    table.add_row(Text(f"saved against {level.baseline}"), *savings)
    for section in (label_rows(level), overhead_rows(level)):
        table.add_section()
        for name, overall, last in section:
            table.add_row(Text(name), overall, last)
    table.add_section()
    for label, value in bias_rows(level.response_bias):
        table.add_row(label, Text(value), "")
    for label, value in _now(level):
        table.add_row(label, "", Text(value))
    for label, value in _single(level):
        table.add_row(Text(label), Text(value), "")
    return table


def _verdict(window: WindowStatus, level: LevelStatus) -> Text:
    found = window.satisfaction
    return Text(found.verdict_in_words, style=STYLES[found.verdict])


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


def _saved(window: WindowStatus) -> float | None:
    return window.savings.saved_share if window.savings else None


_ROWS: dict[str, Callable[[WindowStatus, LevelStatus], RenderableType]] = {
    "promise (95 %)": _verdict,
    "satisfied, interval": _rate,
    "evidence": _evidence,
    "with a verdict": lambda window, level: _share(window.satisfaction.answered_share),
    "cost per request": _cost,
    "explored": _explored,
}


def _now(level: LevelStatus) -> Iterator[tuple[str, str]]:
    when = "now" if level.source is Source.ENGINE else "at the newest request"
    yield f"queue {when}", UNKNOWN if level.queue is None else f"{level.queue:.2f}"
    yield f"price {when}", _money(level.price, level.cost_unit)
    if not level.is_within_reach:
        yield "within reach", "no candidate can hold alpha"


def _single(level: LevelStatus) -> Iterator[tuple[str, str]]:
    """Name the model; leave out the saving against the largest, which has its own row above."""
    found = level.best_single
    if found.finding is not Finding.FOUND:
        yield "best single model", found.note
        return
    satisfied, cost = _share(found.satisfaction), _money(found.cost_per_request, level.cost_unit)
    is_largest = found.candidate == level.largest
    name = f"{found.candidate}, the largest" if is_largest else found.candidate
    thin = "not enough evidence, " if found.is_thin else ""
    note = f"{thin}{found.note}"
    yield "best single model", f"{name}: {satisfied} satisfied, {cost} a call ({note})"
    if not is_largest:
        yield f"saved against {found.candidate}, an estimate", _share(found.saved_share)


def _share(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.1%}"


def _money(value: float | None, unit: str | None) -> str:
    return UNKNOWN if value is None else f"{value:.6g} {unit or ''}".rstrip()
