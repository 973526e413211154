"""The tables of the status, for people: one for each promise, then those of the zoos."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from litellm_messplus.figures.interval import Standing
from litellm_messplus.figures.shown import KEY, LABEL_COSTS, LEVEL, cells, titles
from litellm_messplus.figures.words import figure, percent, percent_range
from litellm_messplus.status.alerts import Alert, AlertKind
from litellm_messplus.status.as_before import before_line
from litellm_messplus.status.conversations import conversation_tables
from litellm_messplus.status.incidents import incident_tables, short_key
from litellm_messplus.status.limits import limit_rows, limit_words
from litellm_messplus.status.report import (
    KeyStatus,
    LabelCostStatus,
    LevelStatus,
    Source,
    Status,
    WindowStatus,
)
from litellm_messplus.status.switches import switch_lines
from litellm_messplus.status.tables import (
    bias_rows,
    both_windows,
    calibration_tables,
    candidate_tables,
    judge_tables,
    label_rows,
)
from litellm_messplus.terminal import Rows, numbers, whole

# What an operator should do about a promise, in one phrase.

MOST = 0.5
"""The share of requests with a verdict from which on waiting is enough."""
NOTHING = "nothing to do"
FEEDBACK = (AlertKind.NO_FEEDBACK, AlertKind.THIN_EVIDENCE)
"""The alerts that ask for more verdicts."""


def advice(level: LevelStatus, status: Status) -> str:
    """Name the most urgent step, from the alerts and the verdict."""
    alerts = [each for each in status.alerts if _is_about(each, level)]
    kinds = {each.kind for each in alerts}
    if AlertKind.OUT_OF_REACH in kinds:
        return "to do: lower alpha, or add a model that satisfies more"
    last = level.last.satisfaction
    if kinds == {AlertKind.BELOW} and last.verdict is Standing.ON_TRACK:
        return f"{NOTHING}: the last {last.requests} {last.unit} are on track"
    if kinds.difference(FEEDBACK):
        return "to do: see the alerts below"
    if kinds or level.overall.satisfaction.verdict is Standing.TOO_EARLY:
        return _more_verdicts(level, status)
    return NOTHING


def _is_about(alert: Alert, level: LevelStatus) -> bool:
    """Say whether the alert is of this promise, of its zoo, or of all."""
    return alert.zoo in (None, level.zoo) and alert.service_level in (None, level.service_level)


def _more_verdicts(level: LevelStatus, status: Status) -> str:
    found = level.overall.satisfaction
    if not found.requests:
        return NOTHING
    if (level.last.satisfaction.judged_share or 0.0) >= MOST:
        return f"{NOTHING}: verdicts come, wait for more"
    if any(judge.zoo == level.zoo for judge in status.judges):
        return "to do: send more feedback, or let the judge grade more"
    return "to do: send feedback, or switch a judge on"


# Tables of a row for each key, and for each zoo.


def key_tables(keys: Sequence[KeyStatus]) -> Iterator[RenderableType]:
    """Yield one table of all keys; none where nobody said anything in the last day."""
    if not keys:
        return
    columns = (*whole("key", "zoo, service level"), *numbers(*titles(KEY)))
    rows = Rows("keys with the most labels, last day", columns)
    for key in keys:
        *found, held = (cell.text for cell in cells(KEY, key))
        styled = Text(held, style="yellow" if key.held else "")
        rows.add(short_key(key.key_hash), f"{key.zoo}, {key.service_level}", *found, styled)
    yield rows


def label_cost_tables(costs: Sequence[LabelCostStatus]) -> Iterator[RenderableType]:
    """Yield one table of all zoos whose labels cost something; none where none do."""
    paid = [each for each in costs if each.unseen or each.judging]
    if not paid:
        return
    rows = Rows(
        "what labels cost, whole time and today, in the zoo's unit",
        (*whole("zoo"), *numbers(*titles(LABEL_COSTS))),
    )
    for each in paid:
        rows.add(each.zoo, *(cell.text for cell in cells(LABEL_COSTS, each)))
    yield rows


def render(status: Status) -> RenderableType:
    """Render every table, to be printed by a rich console below the `summary`."""
    return Group(
        *(_level(level, status.window) for level in status.levels),
        *judge_tables(status.judges),
        *label_cost_tables(status.label_costs),
        *key_tables(status.keys),
        *incident_tables(status.incidents),
        *candidate_tables(status.candidates),
        *conversation_tables(status.conversations),
        *(table for zoo in status.calibration for table in calibration_tables(zoo)),
    )


FIRST = ("satisfaction.", "cost.", "exploration.", "savings.")
"""The figures at the top of a promise's table."""


def _level(level: LevelStatus, window: int) -> Table:
    unit = "" if level.cost_unit else "; costs in the zoo's unit"
    table = Table(title=Text(f"{level.zoo}, service level {level.service_level}{unit}"))
    table.add_column(f"alpha {level.alpha:g}")
    table.add_column("whole time", justify="right", overflow="fold")
    table.add_column(f"last {window} requests", justify="right", overflow="fold")
    for title, overall, last in both_windows(level, FIRST):
        table.add_row(title, overall, last)
    limits = limit_rows(level.limits, level.cost_unit)
    for section in (limits, label_rows(level), both_windows(level, "overhead.")):
        table.add_section()
        for name, overall, last in section:
            table.add_row(name, overall, last)
    table.add_section()
    for label, value in bias_rows(level.response_bias):
        table.add_row(label, Text(value), "")
    for label, value in _now(level):
        table.add_row(label, "", Text(value))
    return table


def _now(level: LevelStatus) -> Iterator[tuple[str, str]]:
    when = "now" if level.source is Source.ENGINE else "at the newest request"
    for cell in cells(LEVEL, level, level.cost_unit):
        yield f"{cell.title} {when}", cell.text
    if not level.is_within_reach:
        yield "within reach", "no candidate can hold alpha"


# The status for a manager: one line for each promise.


def summary(status: Status) -> Iterator[Text]:
    """Write one line for each promise, over the whole time, and for each zoo that is not on."""
    for level in status.levels:
        bound = limit_words(level.limits, level.missed)
        parts = (*_figures(level), *bound, advice(level, status))
        yield Text(f"{level.zoo}, {level.service_level}: {'; '.join(parts)}")
    for level in status.levels:
        if level.as_before is not None:
            whose = f"{level.zoo}, {level.service_level}"
            yield Text(before_line(whose, level.as_before, level.cost_unit))
    yield from map(Text, switch_lines(status.switches))


def alert_lines(status: Status) -> Iterator[Text]:
    """Write one line for each alert."""
    return map(_alert, status.alerts)


def _alert(alert: Alert) -> Text:
    style = "yellow" if alert.kind is AlertKind.THIN_EVIDENCE else "bold red"
    return Text(f"{alert.subject}: {alert.message}", style=style)


def _figures(level: LevelStatus) -> Iterator[str]:
    found = level.overall.satisfaction
    promised = f"promised {_promised(found.promised, level.alpha)}"
    if not found.requests:
        yield f"no requests yet, {promised}"
        return
    yield f"{_rate_in_words(level.overall)}, {promised}: {found.verdict}"
    if level.overall.answers.failed:
        share = percent(level.overall.answers.answered_share)
        yield f"{share} answered, failed {level.overall.failures_in_words}"
    yield _saved_in_words(level.overall, level.baseline)


def _rate_in_words(window: WindowStatus) -> str:
    found = window.satisfaction
    if found.rate is None:
        return f"satisfaction unknown: {window.denominators}"
    interval = percent_range(found.low, found.high)
    return f"{percent(found.rate)} ({interval}) satisfied of {window.denominators}"


def _promised(promised: float, alpha: float) -> str:
    """Say the mean where alpha was changed, and alpha as it is now."""
    now = figure(100.0 * alpha, "%")
    return now if promised == alpha else f"{figure(100.0 * promised, '%')} on average and {now} now"


def _saved_in_words(window: WindowStatus, baseline: str) -> str:
    share = window.savings.saved_share if window.savings else None
    if share is None:
        return "what was saved is unknown"
    if share < 0.0:
        return f"cost {percent(-share)} more than always calling {baseline}"
    return f"saved {percent(share)} against always calling {baseline}"
