"""The earlier labels that decide what an entry teaches: those on its call that can still count.

A label that its source has replaced changes no verdict any more, so the fold does not read it: if
every label were read for each one, the cost of n verdicts on one answer would grow with n cubed.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Self

from sqlalchemy import ColumnElement, Select, Subquery, and_, func, select, union
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.core.verdict import Given, newest_of_sources
from litellm_messplus.runtime.vocabulary import LabelKind
from litellm_messplus.store.tables import calls, labels


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
        .join(newest, newest.c.position == of.position)
        .order_by(of.position)
    )


def newest_labels(where: ColumnElement[bool]) -> Subquery:
    """Query the position of the newest label with a weight of each source on a call: all that a
    rule may need, however many labels there are."""
    of = labels.c
    newest = select(func.max(of.position).label("position")).where(where, of.weight > 0.0)
    return newest.group_by(of.call_id, of.source).subquery()
