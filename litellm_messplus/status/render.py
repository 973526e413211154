"""The tables of the status, for people: one for each promise, then those of the zoos."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from litellm_messplus.figures.interval import Standing
from litellm_messplus.figures.shown import LEVEL, WINDOW, Cell, cells
from litellm_messplus.figures.words import UNKNOWN, figure, percent, percent_around, percent_range
from litellm_messplus.status.labels import SourceRate
from litellm_messplus.status.report import (
    Alert,
    AlertKind,
    AsBefore,
    LevelStatus,
    Source,
    Status,
    WindowStatus,
)
from litellm_messplus.status.switches import switch_lines
from litellm_messplus.status.tables import (
    calibration_tables,
    candidate_tables,
    conversation_tables,
    incident_tables,
    judge_tables,
    key_tables,
    label_cost_tables,
)

# What an operator should do about a promise, in one phrase.

MOST = 0.5
"""The share of requests with a verdict from which waiting is enough."""
NOTHING = "nothing to do"
FEEDBACK = (AlertKind.NO_FEEDBACK, AlertKind.THIN_EVIDENCE)
"""The alerts that call for more verdicts."""


def advice(level: LevelStatus, status: Status) -> str:
    """Name the most urgent step, from the alerts and the verdict."""
    alerts = [each for each in status.alerts if _is_about(each, level)]
    kinds = {each.kind for each in alerts}
    if AlertKind.OUT_OF_REACH in kinds:
        return "to do: lower alpha, or add a model that satisfies more"
    last = level.last.satisfaction
    if kinds == {AlertKind.BELOW} and last.verdict is Standing.ON_TRACK:
        return f"{NOTHING}: the last {last.requests} requests are on track"
    if kinds.difference(FEEDBACK):
        return "to do: see the alerts below"
    if kinds or level.overall.satisfaction.verdict is Standing.TOO_EARLY:
        return _more_verdicts(level, status)
    return NOTHING


def _is_about(alert: Alert, level: LevelStatus) -> bool:
    """Tell whether the alert is about this promise, its zoo, or all."""
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


# The table of a promise: its figures, of the whole time and of the last window.

STYLES = {
    Standing.ON_TRACK: "green",
    Standing.BELOW: "red",
    Standing.TOO_EARLY: "yellow",
    Standing.FAILING: "bold red",
}

Row = tuple[Text, str | Text, str | Text]
"""The name of a figure, and its values over the whole time and over the last window."""


def _both_windows(level: LevelStatus, within: str | tuple[str, ...]) -> Iterator[Row]:
    """Yield the rows of both windows, of the figures at the paths ``within``."""
    overall, last = (
        cells(WINDOW, window, level.cost_unit, within) for window in (level.overall, level.last)
    )
    for one, other in zip(overall, last, strict=True):
        is_saving = one.path == "savings.saved_share"
        title = f"{one.title} against {level.baseline}" if is_saving else one.title
        yield Text(title), _styled(one, level.overall, level), _styled(other, level.last, level)


def _styled(cell: Cell, window: WindowStatus, level: LevelStatus) -> Text:
    found = window.satisfaction
    match cell.path:
        case "satisfaction.verdict":
            return Text(cell.text, style=STYLES[found.verdict])
        case "satisfaction.evidence" if found.is_thin:
            return Text(cell.text, style="yellow")
        case "satisfaction.rate" if found.promised != level.alpha:
            return Text(f"{cell.text}, promised {percent(found.promised)}")
    return Text(cell.text)


def _label_rows(level: LevelStatus) -> Iterator[Row]:
    """Yield the requests with any label, then each source that has given one."""
    yield from _both_windows(level, "labels.")
    recent = {each.source: each for each in level.last.labels.sources}
    for source in level.overall.labels.sources:
        title = Text(f"{source.source} says")
        yield title, _source(source), _source(recent.get(source.source))


def _source(found: SourceRate | None) -> str:
    if found is None:
        return "nothing"
    counting = "all count" if found.counting == found.labelled else f"{found.counting} count"
    rate = percent_around(found.rate, found.low, found.high)
    return f"{rate} of {found.labelled}, {counting}"


FIRST = ("satisfaction.", "cost.", "exploration.", "savings.")
"""The figures at the top of a promise's table."""


def _level(level: LevelStatus, window: int) -> Table:
    unit = "" if level.cost_unit else "; costs in the zoo's unit"
    table = Table(title=Text(f"{level.zoo}, service level {level.service_level}{unit}"))
    table.add_column(f"alpha {level.alpha:g}")
    table.add_column("whole time", justify="right", overflow="fold")
    table.add_column(f"last {window} requests", justify="right", overflow="fold")
    for title, overall, last in _both_windows(level, FIRST):
        table.add_row(title, overall, last)
    for section in (_label_rows(level), _both_windows(level, "overhead.")):
        table.add_section()
        for name, overall, last in section:
            table.add_row(name, overall, last)
    table.add_section()
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
        parts = (*_figures(level), advice(level, status))
        yield Text(f"{level.zoo}, {level.service_level}: {'; '.join(parts)}")
    for level in status.levels:
        if level.as_before is not None:
            yield Text(_before(level, level.as_before))
    yield from map(Text, switch_lines(status.switches))
    for each in status.unrouted:
        yield Text(f"{each.zoo}: {each.answers} requests by {each.call_type} were not routed")


def _before(level: LevelStatus, found: AsBefore) -> str:
    """Write the requests that were served as before as one line."""
    rate = "none judged"
    if found.rate is not None:
        around = percent_around(found.rate, found.low, found.high)
        rate = f"{around} of {found.judged} judged satisfied"
    cost = UNKNOWN
    if found.cost_per_request is not None:
        cost = figure(found.cost_per_request, level.cost_unit)
    return (
        f"{level.zoo}, {level.service_level}, served as before, the newest {found.requests} "
        f"requests: {found.requests_per_hour:,.0f} an hour now, "
        f"{percent(found.answered_share)} answered, {rate}, {cost} a request"
    )


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
    yield _saved_in_words(level)


def _rate_in_words(window: WindowStatus) -> str:
    found = window.satisfaction
    if found.rate is None:
        return f"satisfaction unknown: {window.denominators}"
    interval = percent_range(found.low, found.high)
    return f"{percent(found.rate)} ({interval}) satisfied of {window.denominators}"


def _promised(promised: float, alpha: float) -> str:
    """Write the mean if alpha was changed, and the current alpha."""
    now = figure(100.0 * alpha, "%")
    return now if promised == alpha else f"{figure(100.0 * promised, '%')} on average and {now} now"


DEAR_LABELS = 0.25
"""Share of what routing saves from which on labels are named as dear."""


def _saved_in_words(level: LevelStatus) -> str:
    """Write what routing saved, what labels cost, and the rest, as one sentence."""
    found, unit = level.overall.savings, level.cost_unit
    if found is None or not found.cost_largest:
        return "what was saved is unknown"
    did = "saved" if found.routing_saved >= 0.0 else "cost"
    more = "of" if found.routing_saved >= 0.0 else "more than"
    share = percent(abs(found.routing_saved) / found.cost_largest)
    amount = figure(abs(found.routing_saved), unit)
    text = f"routing {did} {amount} ({share}) {more} always calling {level.baseline}"
    if found.label_cost:
        text += f"; finding labels cost {figure(found.label_cost, unit)}"
        text += f"; net {figure(found.saved, unit)}"
    if found.label_cost > DEAR_LABELS * max(found.routing_saved, 0.0):
        text += " (for fewer labels, lower label_rate or buy_labels)"
    return text
