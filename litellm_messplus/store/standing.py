"""The earlier records that decide what an entry teaches: the labels on its call that can still
count, and the models that served its conversation.

A label that its source has replaced changes no verdict any more, so the fold does not read it: if
every label were read for each one, the cost of n verdicts on one answer would grow with n cubed.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

from sqlalchemy import Select, and_, select, union
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.learning.logged import newest_labels
from litellm_messplus.records import served_call_id
from litellm_messplus.runtime.vocabulary import CallRole, CallStatus, LabelKind
from litellm_messplus.state.credits import Shares, shares_of
from litellm_messplus.state.verdict import Given, newest_of_sources
from litellm_messplus.store.tables import calls, labels, requests


def given(found: Any) -> Given:
    """Make a label from its record or from a row."""
    return Given(LabelKind(found.kind), found.source, found.value, found.weight, found.probability)


class StandingLabels:
    """The standing labels by call, as of a position: each source's newest label with a weight, in
    log order."""

    def __init__(self, by_call: Mapping[str, Sequence[Given]] | None = None) -> None:
        self._by_call = {call_id: list(found) for call_id, found in (by_call or {}).items()}

    @classmethod
    async def read(cls, connection: AsyncConnection, after: int, upto: int) -> Self:
        """Read them as of position ``after``, for the calls of the records in (after, upto]."""
        found: dict[str, list[Given]] = defaultdict(list)
        for row in await connection.execute(_standing_query(after, upto)):
            found[row.call_id].append(given(row))
        return cls(found)

    def __len__(self) -> int:
        """Return the number of calls with standing labels."""
        return len(self._by_call)

    def of(self, call_id: str) -> tuple[Given, ...]:
        return tuple(self._by_call.get(call_id, ()))

    def add(self, call_id: str, label: Given) -> None:
        """Add the next label of the log."""
        if label.weight > 0.0:
            standing = (*self._by_call.get(call_id, ()), label)
            self._by_call[call_id] = newest_of_sources(standing)


def _standing_query(after: int, upto: int) -> Select[Any]:
    touched = union(
        *(
            select(table.c.call_id).where(table.c.position > after, table.c.position <= upto)
            for table in (calls, labels)
        )
    )
    of = labels.c
    newest = newest_labels(and_(of.call_id.in_(touched), of.position <= after))
    return (
        select(of.call_id, of.kind, of.source, of.value, of.weight, of.probability)
        .join(newest, newest.c.weighs == of.position)
        .order_by(of.position)
    )


# Which models served the labelled conversations: if a promise counts conversations, the first
# request of one carries the verdict on all of it.


class Turn(NamedTuple):
    """A further request of a conversation, and its served call, whose fields are None until it has
    ended."""

    position: int
    chosen: str
    ended_at: int | None
    status: str | None
    is_cache_hit: bool | None
    candidate: str | None

    def is_served(self, position: int) -> bool:
        """Tell whether a model answered it as of a position; True while its call has not ended."""
        if self.ended_at is None or self.ended_at > position:
            return True
        return self.status == CallStatus.SUCCESS and not self.is_cache_hit

    def author(self, position: int) -> str | None:
        """Return the candidate that served it, or the chosen one while its call has not ended."""
        is_known = self.ended_at is not None and self.ended_at < position
        return self.candidate if is_known else self.chosen


class Courses:
    """The logged turns of conversations that are counted as one, by their first request."""

    def __init__(
        self,
        turns: Mapping[str, Sequence[Turn]] | None = None,
        labelled: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        self._turns = turns or {}
        self._labelled = labelled or {}

    @classmethod
    async def read(cls, connection: AsyncConnection, after: int, upto: int) -> Self:
        """Read the conversations whose first request has a label or a call at a position in (after,
        upto]."""
        turns: dict[str, list[Turn]] = defaultdict(list)
        for first, *turn in await connection.execute(_turns_query(after, upto)):
            turns[first].append(Turn(*turn))
        labelled: dict[str, list[int]] = defaultdict(list)
        if turns:
            for request_id, position in await connection.execute(_labels_query(list(turns), upto)):
                labelled[request_id].append(position)
        return cls(turns, labelled)

    def shares(self, label: Any) -> Shares:
        """Return which candidates served the conversation before a label, given as a row with its
        request and its ended served call, if any; empty if the conversation had no further turn."""
        first, position = label.request_id, label.position
        if label.call_id != served_call_id(first):
            return ()
        later = [turn for turn in self._turns.get(first, ()) if turn.position < position]
        if not later:
            return ()
        begun = Turn(0, label.chosen, None, None, None, None)
        if label.status is not None:
            begun = Turn(0, label.chosen, 0, label.status, label.is_cache_hit, label.candidate)
        served = [turn for turn in (begun, *later) if turn.is_served(position)]
        return shares_of(turn.author(position) for turn in served)

    def have_taught(self, call: Any) -> bool:
        """Tell whether the verdict on a conversation was learned by shares before its first call,
        ``call``, ended."""
        turns = self._turns.get(call.request_id, ())
        before = [at for at in self._labelled.get(call.request_id, ()) if at < call.position]
        return any(turn.position < at for turn in turns for at in before)


def _turns_query(after: int, upto: int) -> Select[Any]:
    """Query the turns of conversations whose first request has a label or a call in the page."""
    labelled, ended = (
        select(table.c.request_id).where(table.c.position > after, table.c.position <= upto)
        for table in (labels, calls)
    )
    served = and_(
        calls.c.request_id == requests.c.request_id,
        calls.c.role == CallRole.SERVED,
        calls.c.position <= upto,
    )
    return (
        select(
            *(requests.c.counted_with, requests.c.position, requests.c.chosen, calls.c.position),
            *(calls.c.status, calls.c.is_cache_hit, calls.c.candidate),
        )
        .outerjoin(calls, served)
        .where(
            requests.c.counted_with.is_not(None),  # so that the partial index is used
            requests.c.counted_with.in_(labelled.union(ended)),
            requests.c.position <= upto,
        )
        .order_by(requests.c.position)
    )


def _labels_query(first: Sequence[str], upto: int) -> Select[Any]:
    return select(labels.c.request_id, labels.c.position).where(
        labels.c.request_id.in_(first), labels.c.position <= upto, labels.c.weight > 0.0
    )
