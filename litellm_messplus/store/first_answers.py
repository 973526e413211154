"""The answer that came before another one to the same request: what it looked like.

A model called after an answer was read, or unseen by the user, answers a prompt of which one more
thing is known: how another model answered it. Two joins along the primary key of calls read it with
the entries; the requests that this process wrote have it in memory.
"""

from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Select, Table, and_, case

from litellm_messplus.core.answer import AnswerSurface
from litellm_messplus.core.predictor import Before
from litellm_messplus.records import CallRecord, RequestRecord, replaced_call_id, served_call_id
from litellm_messplus.runtime.vocabulary import CallRole
from litellm_messplus.store.rows import logged_answer
from litellm_messplus.store.standing import StandingLabels
from litellm_messplus.store.tables import calls, served_call

FIRST, SHOWN = calls.alias("first_calls"), calls.alias("shown_calls")
"""The call whose answer was replaced, and the one that the user saw."""
_COLUMNS = ("candidate", "answer_surface", "answer_version")


def with_before(query: Select[Any], own: Table) -> Select[Any]:
    """Add the answer that came before to a query of calls, or of labels joined with theirs; ``own``
    is the table whose positions count."""
    request_id, position = own.c.request_id, own.c.position
    is_first = and_(
        FIRST.c.call_id == request_id.concat(replaced_call_id("")),
        FIRST.c.call_id != own.c.call_id,
        FIRST.c.position < position,
    )
    is_shown = and_(
        calls.c.role == CallRole.EXPLORATION,
        SHOWN.c.call_id == served_call(own),
        SHOWN.c.position < position,
    )
    was_replaced = FIRST.c.call_id.is_not(None)
    columns = (
        case((was_replaced, FIRST.c[name]), else_=SHOWN.c[name]).label(f"before_{name}")
        for name in _COLUMNS
    )
    return query.add_columns(*columns).outerjoin(FIRST, is_first).outerjoin(SHOWN, is_shown)


def before_in(row: Any) -> Before | None:
    """Read from a row of such a query the answer that came before; None without one."""
    answer = logged_answer(row.before_answer_surface, row.before_answer_version)
    return _before(row.before_candidate, answer)


def _before(candidate: str | None, answer: AnswerSurface | None) -> Before | None:
    return None if candidate is None or answer is None else Before(candidate, answer)


@dataclass(frozen=True, slots=True)
class Remembered:
    """A request that this process wrote: its calls that have ended, by their ids, and the labels
    that stand."""

    request: RequestRecord
    calls: dict[str, CallRecord] = field(default_factory=dict)
    labels: StandingLabels = field(default_factory=StandingLabels)

    def before(self, call_id: str, role: CallRole | None) -> Before | None:
        """Return the answer that came before that of a call; its ``role`` is None until it ends."""
        first = self.calls.get(replaced_call_id(self.request.request_id))
        if first is not None and first.call_id != call_id:
            return _answer_of(first)
        shown = self.calls.get(served_call_id(self.request.request_id))
        return None if shown is None or role is not CallRole.EXPLORATION else _answer_of(shown)


def _answer_of(call: CallRecord) -> Before | None:
    return _before(call.candidate, logged_answer(call.answer_surface, call.answer_version))
