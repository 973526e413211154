"""The status for people: a line for each promise and alert, and the tables."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from litellm_messplus.conversations.rule import KEPT
from litellm_messplus.figures.interval import Standing
from litellm_messplus.figures.templates import lines, written
from litellm_messplus.figures.words import percent, percent_around
from litellm_messplus.runtime.terminal import Rows, numbers, whole
from litellm_messplus.runtime.vocabulary import Failure
from litellm_messplus.status import newest
from litellm_messplus.status.alerts import AlertKind, subject
from litellm_messplus.status.calibration import ReadingPays
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
PAYS: Mapping[str, str] = {
    ReadingPays.YES: "green",
    ReadingPays.NO: "yellow",
    ReadingPays.TOO_EARLY: "yellow",
}
LABELS, OVERHEAD = "labels.", "overhead."
"""The figures of the second and third section of a promise's table."""


def render(status: Plain) -> RenderableType:
    """Render every table, to be printed by a rich console below the `summary`."""
    return Group(*_tables(status))


def _tables(status: Plain) -> Iterator[RenderableType]:
    for level in status["levels"]:
        yield _promise(level, status["window"])
    for judge in status["judges"]:
        yield _judge(judge)
    costs = [each for each in status["label_costs"] if each["unseen"] or each["judging"]]
    title = "what labels cost, whole time and today, in the zoo's unit"
    yield from _table(title, {"zoo": "{{ zoo }}"}, _columns(LABEL_COSTS), costs)
    key, level = "{{ (key_hash or 'none')[:12] }}", "{{ zoo }}, {{ service_level }}"
    whose = {"key": key, "zoo, service level": level}
    title = "keys with the most labels, last day"
    yield from _table(title, whose, _columns(KEY), status["keys"])
    caused = {
        "requests": "{{ requests | figure }}",
        "failed": "{{ failed | figure }}",
        "late": "{{ late | figure }}",
        "checks": "{{ checks | figure }}",
        "of them unsatisfied": "{{ unsatisfied_checks | figure }}",
        "held back": "{{ held | figure }}",
    }
    title = f"what keys caused, of the newest {newest.OF_ALL:,} requests"
    yield from _table(title, {"key": key, "zoo": "{{ zoo }}"}, caused, status["incidents"])
    changed = {
        "model": "{{ candidate }}",
        "when, UTC": "{{ at | moment }}",
        "zoo": "{{ zoo }}",
        "what": "{{ change }}",
    }
    title = "models that came, changed their price, or went"
    yield from _table(title, changed, {}, status["candidates"])
    lines_of = {
        "begun": "{{ conversations | figure }}",
        "turns": "{{ turns | figure }}",
        "cost": "{{ cost | figure }}",
        "held": "{{ (kept.values() | sum / requests) | percent }}"
        "{% for name, count in kept.items() if count %}"
        "{{ ' (' if loop.first else ', ' }}{{ count }} {{ name }}{{ ')' if loop.last }}"
        "{% endfor %}",
        "switches": "{{ switches | figure }}",
        **{name: f"{{{{ holds.{name} | figure }}}}" for name in ("trouble", "lost", "unknown")},
    }
    held = [
        each | {"kept": {name: each["holds"][name] for name in sorted(KEPT)}}
        for each in status["conversations"]
    ]
    of = f"conversations, of the newest {newest.OF_EACH_LEVEL:,} requests"
    title = f"{of}; costs in the zoo's unit"
    yield from _table(title, {"zoo, service level": level}, lines_of, held)
    for zoo in status["calibration"]:
        yield _reliability(zoo)
        yield _readings(zoo)


def _columns(figures: Iterable[Figure[Any]]) -> dict[str, str]:
    """Return the templates of the figures that have a column, by its title."""
    return {each.row: each.template for each in figures if each.row}


def _table(
    title: str, names: Mapping[str, str], figures: Mapping[str, str], found: Sequence[Plain]
) -> Iterator[Rows]:
    """Yield a table with a row for each part, from the templates of its columns; none without
    any."""
    if found:
        cells = (*names.values(), *figures.values())
        each_row = [[written(cell, each) for cell in cells] for each in found]
        yield Rows(title, (*whole(*names), *numbers(*figures)), each_row)


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


# The calibration: predictions against verdicts, and whether reading pays.


def _reliability(calibration: Plain) -> Rows:
    """Lay out a row per bin; if calibrated, the satisfied share is the predicted one."""
    figures = numbers("predicted", "satisfied, interval", "judged calls")
    title = f"{calibration['zoo']}, predictions against verdicts"
    table = Rows(title, (*whole("candidate"), *figures))
    for candidate in calibration["candidates"]:
        for found in candidate["bins"]:
            table.add(
                candidate["candidate"],
                percent(found["predicted"]),
                percent_around(*(found[f"satisfied{of}"] for of in ("", "_low", "_high"))),
                written("{{ calls | figure }}", found),
            )
        table.end_section()
    return table


def _readings(calibration: Plain) -> Rows:
    figures = numbers("predicted", "running mean", "gain, interval", "pays")
    title = f"{calibration['zoo']}, does reading the prompt pay? (log-loss in nats)"
    table = Rows(title, (*whole("candidate"), *figures))
    for candidate in calibration["candidates"]:
        table.add(candidate["candidate"], *_reading(candidate["reading"]))
    table.end_section()
    table.add("all", *_reading(calibration["reading"]))
    return table


def _reading(found: Plain) -> Iterator[str | Text]:
    yield written("{{ log_loss | figure }}", found)
    yield written("{{ log_loss_mean | figure }}", found)
    gain = "{{ '%+.4f' % gain }}"
    if found["gain_low"] is not None:
        gain += " ({{ '%+.4f' % gain_low }} to {{ '%+.4f' % gain_high }})"
    yield written(gain, found)
    yield Text(found["reading_pays"], style=PAYS[found["reading_pays"]])
