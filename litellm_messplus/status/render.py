"""The status for people: a line for each promise and alert, and the tables."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from litellm_messplus.core.hold import KEPT
from litellm_messplus.figures.figure import Plain, rows
from litellm_messplus.figures.interval import Standing
from litellm_messplus.figures.templates import lines, tables, written
from litellm_messplus.runtime.terminal import Rows
from litellm_messplus.runtime.vocabulary import Failure
from litellm_messplus.status import newest
from litellm_messplus.status.alerts import AlertKind, subject
from litellm_messplus.status.figures import JUDGE, KEY, LABEL_COSTS, LEVEL, WINDOW
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
        return "to do: see the alerts"
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


SAID = ("satisfied", "money", "traffic")
"""The sentences of a promise, by their templates."""

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
        yield Text(f"{subject(each)}: {each['message']} ({each['runbook']})", style=style)


def said(level: Plain, status: Plain) -> Plain:
    """Write what a promise comes to in single sentences: how it stands, what was saved, and how
    many came and failed; and what to do."""
    parts = {each: lines(f"status/{each}.j2", **level, why=Failure)[0] for each in SAID}
    return parts | {"advice": advice(level, status)}


# The tables: one for each promise, then those of the zoos.

TABLES = ("promises", "labels", "requests", "predictions", "reading")
"""The groups of tables, by their templates."""


def render(status: Plain) -> RenderableType:
    """Render every table, to be printed by a rich console below the `summary`."""
    return Group(*(each for name in TABLES for each in tables_of(name, status)))


def tables_of(name: str, status: Plain) -> Iterator[Rows]:
    """Write the tables of one group."""
    return tables(
        f"status/table_{name}.j2",
        **status,
        status=status,
        figures={"level": LEVEL, "window": WINDOW, "judge": JUDGE},
        label_costs_figures=[each for each in LABEL_COSTS if each.row],
        key_figures=[each for each in KEY if each.row],
        rows=rows,
        zip=zip,
        text=written,
        of_all=newest.OF_ALL,
        of_each_level=newest.OF_EACH_LEVEL,
        kept=sorted(KEPT),
    )
