"""Rendering of an explanation and of a list of requests, for a rich console."""

from collections.abc import Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.text import Text

from litellm_messplus.core.decision import Reason
from litellm_messplus.core.held import FAILED
from litellm_messplus.figures.templates import lines
from litellm_messplus.figures.words import UNKNOWN, figure, moment
from litellm_messplus.inspecting.explain import Explanation, reason_in_words
from litellm_messplus.inspecting.listing import Listed
from litellm_messplus.inspecting.logged import plain
from litellm_messplus.runtime.terminal import Rows, numbers, whole, words
from litellm_messplus.switching.modes import LITELLM

NOT_BY_SCORE = (Reason.HELD, Reason.TROUBLE, Reason.DEADLINE_MISSED)
"""Reasons for which the scores do not decide who serves."""

HOLDS: dict[str, str] = {
    "tool_loop": "It was held: a tool loop was open.",
    "state": "It was held: no other model can read its prompt.",
    "warm": "It was held: its prompt cache was warm.",
    "trouble": "The hold was broken: the model before got no further.",
    "lost": "The hold was broken: the model before had no deployment that could take it.",
    "unknown": "It was unknown which model had answered before: it was decided anew.",
}
"""The logged reasons of a hold, in words."""


# An explanation in sentences.


def sentences(found: Explanation) -> list[str]:
    """Return all sentences, in the order of a reader's questions."""
    row, labels = found.logged.request, found.logged.labels
    written = lines(
        "inspecting/explanation.j2",
        found=found,
        logged=found.logged,
        reason=reason_in_words(row["reason"]),
        at=datetime.fromisoformat(row["created_at"]),
        unsent=not found.logged.knows_unseen and any(found.counts(x) is None for x in labels),
        holds=HOLDS,
        not_by_score=NOT_BY_SCORE,
        failed=FAILED,
        litellm=LITELLM,
    )
    return [plain(sentence) for sentence in written]


LONGEST_CELL = 120
COUNTS = {True: "counts", False: "", None: UNKNOWN}


def render_explanation(found: Explanation) -> RenderableType:
    """Render sentences first, then expectations, calls, labels, and other prices."""
    tables = (
        _candidates(found) if found.candidates else None,
        _prices(found) if found.prices else None,
        _calls(found) if found.logged.calls else None,
        _labels(found) if found.logged.labels else None,
    )
    return Group(*map(Text, sentences(found)), *(each for each in tables if each is not None))


def render_requests(found: Sequence[Listed]) -> RenderableType:
    """Render one row a request, the newest first."""
    if not found:
        return Text("no such requests")
    title = f"{len(found)} requests, the newest first; costs in each zoo's unit"
    names = whole("request", "time, UTC", "zoo", "chosen", "outcome")
    columns = (*names, *numbers("satisfied", "cost"))
    rows = Rows(title, (*columns, *words("reason")))
    for each in found:
        verdict = "no label" if each.satisfied is None else figure(each.satisfied)
        cost, reason = figure(each.cost), reason_in_words(each.reason)
        cells = (each.request_id, moment(each.created_at), each.zoo, each.chosen, each.outcome)
        _add(rows, *cells, verdict, cost, reason)
    return rows


def _candidates(found: Explanation) -> Rows:
    columns = (*numbers("satisfaction", "cost", "score"), *words(""))
    rows = Rows("expected; costs and scores in the zoo's unit", (*whole("candidate"), *columns))
    for each in found.candidates:
        marks = [
            word
            for word, is_so in (("chosen", each.is_chosen), ("lowest score", each.is_best))
            if is_so
        ]
        score = "no price" if each.score is None else figure(each.score)
        cells = (figure(each.satisfaction), figure(each.cost), score)
        _add(rows, each.candidate, *cells, ", ".join(marks))
    return rows


def _prices(found: Explanation) -> Rows:
    columns = (*whole("candidate"), *numbers("from price", "below"), *whole(""))
    rows = Rows("lowest score at other prices, in the zoo's unit", columns)
    for each in found.prices:
        high = "any" if each.high is None else figure(float(each.high))
        now = "now" if each is found.now else ""
        _add(rows, each.candidate, figure(float(each.low)), high, now)
    return rows


def _calls(found: Explanation) -> Rows:
    names = whole("call", "role", "candidate", "status")
    figures = numbers("prompt tokens", "answer tokens", "cost", "seconds")
    rows = Rows("calls; costs in the zoo's unit", (*names, *figures, *words("cost is", "error")))
    for call in found.logged.calls:
        tokens = (figure(call["prompt_tokens"]), figure(call["completion_tokens"]))
        candidate = call["candidate"] or f"outside: {call['model']}"
        place = call["call_id"].rpartition(".")[2]
        ended = (figure(call["cost"]), figure(call["seconds"]), call["cost_source"], call["error"])
        _add(rows, place, call["role"], candidate, call["status"], *tokens, *ended)
    return rows


def _labels(found: Explanation) -> Rows:
    columns = (*whole("call", "time, UTC", "source"), *numbers("value", "weight"), *whole(""))
    rows = Rows("labels", (*columns, *words("comment")))
    for label in found.logged.labels:
        place = label["call_id"].rpartition(".")[2]
        given = (figure(label["value"]), figure(label["weight"]))
        counts = COUNTS[found.counts(label)]
        at = moment(datetime.fromisoformat(label["created_at"]))
        _add(rows, place, at, label["source"], *given, counts, label["comment"])
    return rows


def _add(rows: Rows, *cells: str | None) -> None:
    rows.add(*(plain(cell, LONGEST_CELL) for cell in cells))
