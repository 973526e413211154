"""An explanation and a list of requests, to be printed by a rich console."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from litellm_messplus.inspecting.explain import Explanation
from litellm_messplus.inspecting.listing import Listed
from litellm_messplus.inspecting.sentences import sentences
from litellm_messplus.inspecting.words import UNKNOWN, exact, plain, rounded

LONGEST_CELL = 120
COUNTS = {True: "counts", False: "", None: UNKNOWN}


def render_explanation(found: Explanation) -> RenderableType:
    """Sentences first, then what was expected, what was called, what was said, and other prices."""
    tables = (
        _candidates(found) if found.candidates else None,
        _prices(found) if found.prices else None,
        _calls(found) if found.logged.calls else None,
        _labels(found) if found.logged.labels else None,
    )
    return Group(*map(Text, sentences(found)), *(each for each in tables if each is not None))


def render_requests(found: Sequence[Listed]) -> RenderableType:
    """One line a request, the newest first."""
    if not found:
        return Text("no such requests")
    columns = ("request", "time, UTC", "zoo", "chosen", "satisfied", "cost", "reason")
    table = _table(f"{len(found)} requests, the newest first", columns)
    for each in found:
        verdict = "no label" if each.satisfied is None else exact(each.satisfied)
        time = each.created_at.strftime("%Y-%m-%d %H:%M:%S")
        cost = rounded(each.cost)
        _add(table, each.request_id, time, each.zoo, each.chosen, verdict, cost, each.reason)
    return table


def _candidates(found: Explanation) -> Table:
    table = _table("expected", ("candidate", "satisfaction", "cost", "score", ""))
    for each in found.candidates:
        marks = [
            word
            for word, is_so in (("chosen", each.is_chosen), ("lowest score", each.is_best))
            if is_so
        ]
        score = "no price" if each.score is None else exact(each.score)
        cells = (exact(each.satisfaction), exact(each.cost), score)
        _add(table, each.candidate, *cells, ", ".join(marks))
    return table


def _prices(found: Explanation) -> Table:
    table = _table("lowest score at other prices", ("candidate", "from price", "below", ""))
    for each in found.prices:
        high = "any" if each.high is None else rounded(float(each.high))
        now = "now" if each is found.now else ""
        _add(table, each.candidate, rounded(float(each.low)), high, now)
    return table


def _calls(found: Explanation) -> Table:
    names = ("call", "role", "candidate", "status", "prompt tokens", "answer tokens")
    table = _table("calls", (*names, "cost", "seconds", "error"))
    for call in found.logged.calls:
        tokens = (exact(call["prompt_tokens"]), exact(call["completion_tokens"]))
        cost = f"{exact(call['cost'])} {call['cost_source']}"
        candidate = call["candidate"] or f"outside: {call['model']}"
        place = call["call_id"].rpartition(".")[2]
        ended = (cost, exact(call["seconds"]), call["error"])
        _add(table, place, call["role"], candidate, call["status"], *tokens, *ended)
    return table


def _labels(found: Explanation) -> Table:
    table = _table("labels", ("call", "time, UTC", "source", "value", "weight", "", "comment"))
    for label in found.logged.labels:
        place = label["call_id"].rpartition(".")[2]
        numbers = (exact(label["value"]), exact(label["weight"]))
        counts = COUNTS[found.counts(label)]
        _add(table, place, label["created_at"], label["source"], *numbers, counts, label["comment"])
    return table


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left")
    for name in columns:
        table.add_column(name, overflow="fold")
    return table


def _add(table: Table, *cells: str | None) -> None:
    table.add_row(*(Text(plain(cell, LONGEST_CELL)) for cell in cells))
