"""Who served the conversations that labels are on: where a promise counts conversations, the first
request of one has the verdict on all of it.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

from sqlalchemy import Select, and_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.records import served_call_id
from litellm_messplus.state.credits import Shares, shares_of
from litellm_messplus.store.tables import calls, labels, requests
from litellm_messplus.vocabulary import CallRole, CallStatus


class Turn(NamedTuple):
    """A further request of a conversation, and its served call; what is of the call is None while
    that has not ended."""

    position: int
    chosen: str
    ended_at: int | None
    status: str | None
    is_cache_hit: bool | None
    candidate: str | None

    def is_served(self, position: int) -> bool:
        """Tell whether a model answered it, or is taken to, as of a place in the log."""
        if self.ended_at is None or self.ended_at > position:
            return True
        return self.status == CallStatus.SUCCESS and not self.is_cache_hit

    def author(self, position: int) -> str | None:
        """Name the candidate that served it; the one that was to, while its call has not ended."""
        is_known = self.ended_at is not None and self.ended_at < position
        return self.candidate if is_known else self.chosen


class Courses:
    """The turns of conversations that are counted as one, by their first request, as far as the
    log has them."""

    def __init__(
        self,
        turns: Mapping[str, Sequence[Turn]] | None = None,
        labelled: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        self._turns = turns or {}
        self._labelled = labelled or {}

    @classmethod
    async def read(cls, connection: AsyncConnection, after: int, upto: int) -> Self:
        """Read the conversations that the labels at positions up to ``upto`` are on, where they, or
        their call, are at one in (after, upto]."""
        turns: dict[str, list[Turn]] = defaultdict(list)
        for first, *turn in await connection.execute(_turns_query(after, upto)):
            turns[first].append(Turn(*turn))
        labelled: dict[str, list[int]] = defaultdict(list)
        if turns:
            for request_id, position in await connection.execute(_labels_query(list(turns), upto)):
                labelled[request_id].append(position)
        return cls(turns, labelled)

    def shares(self, label: Any) -> Shares:
        """Say who served the conversation up to a label, which comes with its request and with the
        served call where that has ended; nobody where the conversation had not gone on."""
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
        """Tell whether the verdict on a conversation was learned by its shares before this call,
        its first, had ended."""
        turns = self._turns.get(call.request_id, ())
        before = [at for at in self._labelled.get(call.request_id, ()) if at < call.position]
        return any(turn.position < at for turn in turns for at in before)


def _turns_query(after: int, upto: int) -> Select[Any]:
    """Select the turns of conversations whose first request has a label, or a call, in the page."""
    said, ended = (
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
            requests.c.counted_with.is_not(None),  # so that the index of those is taken
            requests.c.counted_with.in_(said.union(ended)),
            requests.c.position <= upto,
        )
        .order_by(requests.c.position)
    )


def _labels_query(first: Sequence[str], upto: int) -> Select[Any]:
    return select(labels.c.request_id, labels.c.position).where(
        labels.c.request_id.in_(first), labels.c.position <= upto, labels.c.weight > 0.0
    )
