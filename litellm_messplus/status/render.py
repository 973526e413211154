"""The status for people: a line for each promise and alert, and the tables."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from litellm_messplus.conversations.rule import KEPT
from litellm_messplus.figures.interval import Standing
from litellm_messplus.figures.tables import tables
from litellm_messplus.figures.templates import lines, written
from litellm_messplus.figures.words import percent
from litellm_messplus.runtime.vocabulary import Failure
from litellm_messplus.status import newest
from litellm_messplus.status.alerts import AlertKind, subject
from litellm_messplus.status.figures import (
    JUDGE,
    KEY,
    LABEL_COSTS,
    LEVEL,
    WINDOW,
    Figure,
    Plain,
    Source,
    rows,
)
from litellm_messplus.status.switches import switch_lines

# What an operator should do about a promise, in one phrase.

MOST = 0.5
"""The share of requests with a verdict from which waiting is enough."""
NOTHING = "nothing to do"
FEEDBACK = (AlertKind.NO_FEEDBACK, AlertKind.THIN_EVIDENCE)
"""The alerts that call for more verdicts."""


def advice(level: Plain, status: Plain) -> str:
    """Name the most urgent step, from the alerts and the verdict."""
    kinds = {each["kind"] for each in status["alerts"] if _is_about(each, level)}
    if AlertKind.OUT_OF_REACH in kinds:
        return "to do: lower alpha, or add a model that satisfies more"
    last = level["last"]["satisfaction"]
    if kinds == {AlertKind.BELOW} and last["verdict"] == Standing.ON_TRACK:
        return f"{NOTHING}: the last {last['requests']} requests are on track"
    if kinds.difference(FEEDBACK):
        return "to do: see the alerts below"
    if kinds or level["overall"]["satisfaction"]["verdict"] == Standing.TOO_EARLY:
        return _more_verdicts(level, status)
    return NOTHING


def _is_about(alert: Plain, level: Plain) -> bool:
    """Tell whether the alert is about this promise, its zoo, or all."""
    return all(alert[name] in (None, level[name]) for name in ("zoo", "service_level"))


def _more_verdicts(level: Plain, status: Plain) -> str:
    if not level["overall"]["satisfaction"]["requests"]:
        return NOTHING
    if (level["last"]["satisfaction"]["judged_share"] or 0.0) >= MOST:
        return f"{NOTHING}: verdicts come, wait for more"
    if any(judge["zoo"] == level["zoo"] for judge in status["judges"]):
        return "to do: send more feedback, or let the judge grade more"
    return "to do: send feedback, or switch a judge on"


# The status for a manager: one line for each promise.


def summary(status: Plain) -> Iterator[str]:
    """Write one line for each promise, over the whole time, for each zoo that is not on, and for
    what was not routed."""
    for level in status["levels"]:
        yield from lines("status/promise.j2", **level, advice=advice(level, status), why=Failure)
    for level in status["levels"]:
        if level["as_before"] is not None:
            yield from lines("status/as_before.j2", **level)
    yield from switch_lines(status["switches"])
    for each in status["unrouted"]:
        yield written("{{ zoo }}: {{ answers }} requests by {{ call_type }} were not routed", each)


def alert_lines(status: Plain) -> Iterator[Text]:
    """Write one line for each alert."""
    for each in status["alerts"]:
        style = "yellow" if each["kind"] == AlertKind.THIN_EVIDENCE else "bold red"
        yield Text(f"{subject(each)}: {each['message']}", style=style)


# The tables: one for each promise, then those of the zoos.

STYLES: Mapping[str, str] = {
    Standing.ON_TRACK: "green",
    Standing.BELOW: "red",
    Standing.TOO_EARLY: "yellow",
    Standing.FAILING: "bold red",
}
LABELS, OVERHEAD = "labels.", "overhead."
"""The figures of the second and third section of a promise's table."""


def render(status: Plain) -> RenderableType:
    """Render every table, to be printed by a rich console below the `summary`."""
    return Group(
        *(_promise(level, status["window"]) for level in status["levels"]),
        *map(_judge, status["judges"]),
        *tables(
            "status/tables.j2",
            **status,
            status=status,
            label_costs_figures=[each for each in LABEL_COSTS if each.row],
            key_figures=[each for each in KEY if each.row],
            text=written,
            of_all=newest.OF_ALL,
            of_each_level=newest.OF_EACH_LEVEL,
            kept=sorted(KEPT),
        ),
    )


def _promise(level: Plain, window: int) -> Table:
    unit = "" if level["cost_unit"] else "; costs in the zoo's unit"
    table = Table(title=Text(f"{level['zoo']}, service level {level['service_level']}{unit}"))
    table.add_column(f"alpha {level['alpha']:g}")
    table.add_column("whole time", justify="right", overflow="fold")
    table.add_column(f"last {window} requests", justify="right", overflow="fold")
    sections: dict[str, list[tuple[str | Text, ...]]] = {"": [], LABELS: [], OVERHEAD: []}
    spans = [level["overall"], level["last"]]
    both = zip(*(rows(WINDOW, each, unit=level["cost_unit"]) for each in spans), strict=True)
    for (figure, overall), (_, last) in both:
        title = figure.row
        if figure.path == "savings.saved_share":
            title += f" against {level['largest'] or 'the largest model'}"
        texts = [
            _styled(figure, text, span, level)
            for text, span in zip((overall, last), spans, strict=True)
        ]
        place = next((name for name in (LABELS, OVERHEAD) if figure.path.startswith(name)), "")
        sections[place].append((Text(title), *texts))
    sections[LABELS] += _sources(*(span["labels"]["sources"] for span in spans))
    for section in sections.values():
        for row in section:
            table.add_row(*row)
        table.add_section()
    when = "now" if level["source"] == Source.ENGINE else "at the newest request"
    for each, text in rows(LEVEL, level, unit=level["cost_unit"]):
        table.add_row(f"{each.row} {when}", "", Text(text))
    if not level["is_within_reach"]:
        table.add_row("within reach", "", Text("no candidate can hold alpha"))
    return table


def _styled(figure: Figure[Any], text: str, window: Plain, level: Plain) -> Text:
    found = window["satisfaction"]
    match figure.path:
        case "satisfaction.verdict":
            return Text(text, style=STYLES[found["verdict"]])
        case "satisfaction.evidence" if found["is_thin"]:
            return Text(text, style="yellow")
        case "satisfaction.rate" if found["promised"] != level["alpha"]:
            return Text(f"{text}, promised {percent(found['promised'])}")
    return Text(text)


def _sources(overall: Sequence[Plain], last: Sequence[Plain]) -> Iterator[tuple[Text, str, str]]:
    """Yield a row for each source of labels that has given one."""
    recent = {each["source"]: each for each in last}
    for each in overall:
        yield Text(f"{each['source']} says"), _said(each), _said(recent.get(each["source"]))


def _said(source: Plain | None) -> str:
    if source is None:
        return "nothing"
    count = "{{ 'all' if counting == labelled else counting }} count"
    return written("{{ around(rate, low, high) }} of {{ labelled }}, " + count, source)


def _judge(judge: Plain) -> Table:
    table = Table(title=Text(f"{judge['zoo']}, judge {judge['judge']}"), show_header=False)
    alone = ("kappa", "both_satisfied") if judge["kappa"] is None else ()
    shown = [
        each for each in JUDGE if each.path not in alone
    ]  # without calls that users judged too
    for each, text in rows(shown, judge):
        style = "yellow" if each.path == "note" and judge["counts"] is False else ""
        table.add_row(each.row, Text(text, style=style))
    return table
