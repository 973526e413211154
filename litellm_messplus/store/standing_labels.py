"""The labels on a call that can still count: the newest of each source.

A label that its source has replaced changes no verdict any more, so the fold does not read it: with
all of them read back for each, a client that judges one answer over and over costs the cube of it.
"""

from collections.abc import Mapping
from typing import Any, Self

from sqlalchemy import Select, func, select, union
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.label_kind import LabelKind
from litellm_messplus.learning.verdict import Given
from litellm_messplus.store.tables import calls, labels


def given(found: Any) -> Given:
    """Of a label, as its record or as a row."""
    return Given(LabelKind(found.kind), found.source, found.value, found.weight)


class StandingLabels:
    """By call, as of a place in the log: each source's newest label that has a weight, in the order
    in which the sources spoke first."""

    def __init__(self, by_call: Mapping[str, Mapping[str, Given]] | None = None) -> None:
        self._by_call = {call_id: dict(found) for call_id, found in (by_call or {}).items()}

    @classmethod
    async def read(cls, connection: AsyncConnection, after: int, upto: int) -> Self:
        """As of position ``after``, on the calls that the positions in (after, upto] are about."""
        found: dict[str, dict[str, Given]] = {}
        for row in await connection.execute(_standing_query(after, upto)):
            found.setdefault(row.call_id, {})[row.source] = given(row)
        return cls(found)

    def of(self, call_id: str) -> tuple[Given, ...]:
        return tuple(self._by_call.get(call_id, {}).values())

    def add(self, call_id: str, label: Given) -> None:
        """The next label in the log."""
        if label.weight > 0.0:
            self._by_call.setdefault(call_id, {})[label.source] = label


def _standing_query(after: int, upto: int) -> Select[Any]:
    touched = union(
        *(
            select(table.c.call_id).where(table.c.position > after, table.c.position <= upto)
            for table in (calls, labels)
        )
    )
    of_source = (
        select(
            func.min(labels.c.position).label("first"), func.max(labels.c.position).label("newest")
        )
        .where(labels.c.call_id.in_(touched), labels.c.position <= after, labels.c.weight > 0.0)
        .group_by(labels.c.call_id, labels.c.source)
        .subquery()
    )
    return (
        select(labels.c.call_id, labels.c.kind, labels.c.source, labels.c.value, labels.c.weight)
        .join(of_source, of_source.c.newest == labels.c.position)
        .order_by(of_source.c.first)
    )
