"""Outcomes of a zoo's newest requests, routed and served as before: for forecast and way back.

Each reading is bounded: the newest requests of each stream, found by an index, with their outcomes,
and the calls of those decided in shadow.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, func, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.figures.tally import Tally
from litellm_messplus.runtime.vocabulary import (
    WARM_UP,
    CallRole,
    CallStatus,
    Failure,
    is_before,
    level_before,
)
from litellm_messplus.store.rows import in_parts
from litellm_messplus.store.tables import calls, labels, outcomes, requests
from litellm_messplus.switching.forecast import DecidedAside, Happened
from litellm_messplus.switching.modes import Arm
from litellm_messplus.switching.way_back import Served

MOST = 4000
"""The number of newest requests of a stream that are read."""
FARTHEST = 100_000
"""The number of newest requests of a stream searched for them: few may be decided in shadow."""
DECIDED = ("chosen", "would_choose", "would_cost", "estimated_cost", "estimated_satisfaction")


class ObservedLog:
    """The newest requests of one zoo's ``levels``."""

    def __init__(self, database: AsyncEngine, zoo: str, levels: Collection[str]) -> None:
        self._database = database
        self._zoo = zoo
        self._levels = tuple(levels)

    async def served(self, since: datetime | None, most: int = MOST) -> list[Served]:
        """Read how requests were served, in log order. Raises SQLAlchemyError."""
        streams = (*self._levels, *map(level_before, self._levels))
        is_drawn = outcomes.c.arm != Arm.OFF
        async with self._database.connect() as connection:
            found = await self._newest(connection, streams, since, most, is_drawn)
        return [_served(row) for row in found]

    async def aside(self, most: int = MOST) -> list[DecidedAside]:
        """Read the decisions made in shadow. Raises SQLAlchemyError."""
        streams = [level_before(level) for level in self._levels]
        is_decided = requests.c.would_choose.is_not(None)
        async with self._database.connect() as connection:
            found = await self._newest(connection, streams, None, most, is_decided)
            found = [row for row in found if row.number > WARM_UP]
            called = await _calls_of(connection, [row.request_id for row in found])
        return [_aside(row, called.get(row.request_id, ())) for row in found]

    async def happened(self, since: datetime | None, most: int = MOST) -> Happened:
        """Read the outcomes of the routed requests. Raises SQLAlchemyError."""
        async with self._database.connect() as connection:
            tally = Tally.of(await self._newest(connection, self._levels, since, most))
        return Happened(tally.requests, tally.judged, tally.rate, tally.cost_per_request)

    async def _newest(
        self,
        connection: AsyncConnection,
        streams: Sequence[str],
        since: datetime | None,
        most: int,
        *conditions: ColumnElement[bool],
    ) -> list[Row[Any]]:
        """Read the newest requests of each stream that meet the conditions, with their outcomes, in
        log order."""
        found: list[Row[Any]] = []
        for stream in streams:
            found += await connection.execute(self._query(stream, most, *conditions))
        found = [row for row in found if since is None or row.created_at >= since]
        return sorted(found, key=lambda row: int(row.position))

    def _query(self, stream: str, most: int, *conditions: ColumnElement[bool]) -> Select[Any]:
        request = requests.c
        is_own = (request.zoo == self._zoo) & (request.service_level == stream)
        last = select(func.max(request.t)).where(is_own).scalar_subquery()
        names = ("created_at", "key_hash", *DECIDED, "conversation_draw")
        return (
            select(outcomes, request.t.label("number"), *(request[name] for name in names))
            .join(requests, request.request_id == outcomes.c.request_id)
            .where(is_own, request.t > last - FARTHEST, *conditions)
            .order_by(request.t.desc())
            .limit(most)
        )


def _served(row: Row[Any]) -> Served:
    # If the request itself was refused, no model is to blame.
    is_blameless = row.status is None or row.failure == Failure.REFUSED
    return Served(
        level=row.service_level,
        alpha=row.alpha,
        is_routed=row.arm == Arm.ROUTED and not is_before(row.service_level),
        satisfaction=None if row.status is None else row.satisfaction,
        weight=(row.satisfaction_weight or 0.0) if row.status is not None else 0.0,
        has_failed=None if is_blameless else row.status != CallStatus.SUCCESS,
        key=row.key_hash,
    )


def _aside(row: Row[Any], called: Sequence[Row[Any]]) -> DecidedAside:
    choice, call = row.would_choose, _of_choice(row, called)
    expected = row.estimated_cost[choice]
    return DecidedAside(
        conversation=row.request_id if row.conversation_draw is None else row.conversation_draw,
        predicted=row.estimated_satisfaction[choice],
        expected_cost=expected,
        is_seen=row.chosen == choice,
        satisfaction=None if call is None else call.satisfaction,
        cost=None if call is None else call.cost,
        extra_cost=max(row.would_cost - expected, 0.0),
        alpha=row.alpha,
        costs=row.estimated_cost,
        rates=row.estimated_satisfaction,
        largest=row.cost_largest,
        judged=tuple(
            each.candidate
            for each in called
            if each.candidate is not None and each.satisfaction is not None
        ),
    )


def _of_choice(row: Row[Any], called: Sequence[Row[Any]]) -> Row[Any] | None:
    """Find the call of the model that the router would have chosen: unseen, else served."""
    own = [
        call
        for call in called
        if call.candidate == row.would_choose and call.status == CallStatus.SUCCESS
    ]
    unseen = [call for call in own if call.role != CallRole.SERVED]
    return unseen[0] if unseen else own[0] if own and row.chosen == row.would_choose else None


async def _calls_of(connection: AsyncConnection, ids: Collection[str]) -> dict[str, list[Any]]:
    """Read the calls of these requests, in log order, each with its verdict."""
    own = calls.c
    query = (
        select(
            *(own.request_id, own.role, own.status, own.candidate, own.cost),
            labels.c.value.label("satisfaction"),
        )
        .outerjoin(labels, (labels.c.call_id == own.call_id) & labels.c.counts)
        .order_by(own.position)
    )
    found: dict[str, list[Any]] = defaultdict(list)
    for some in in_parts(ids):
        for call in await connection.execute(query.where(own.request_id.in_(some))):
            found[call.request_id].append(call)
    return found
