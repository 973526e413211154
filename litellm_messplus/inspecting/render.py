"""Rendering of an explanation and of a list of requests, for a rich console."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.text import Text

from litellm_messplus.core.decision import Reason
from litellm_messplus.core.held import FAILED
from litellm_messplus.figures.figure import Plain
from litellm_messplus.figures.templates import lines, tables
from litellm_messplus.inspecting.explain import Explanation, reason_in_words
from litellm_messplus.inspecting.logged import plain
from litellm_messplus.runtime.terminal import Rows
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


def render_explanation(found: Explanation) -> RenderableType:
    """Render sentences first, then expectations, calls, labels, and other prices."""
    return Group(*map(Text, sentences(found)), *tables_of(found))


def tables_of(found: Explanation) -> Iterator[Rows]:
    """Write the tables of an explanation: expectations, other prices, calls, labels."""
    return tables("inspecting/tables.j2", found=found)


def render_requests(found: Sequence[Plain]) -> RenderableType:
    """Render one row a request, the newest first."""
    rows = tables("inspecting/requests.j2", found=found, reason=reason_in_words)
    return next(rows, Text("no such requests"))
