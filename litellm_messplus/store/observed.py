"""What became of a zoo's newest requests, routed and served as before: for forecast and way back.

Each reading is bounded: the newest requests of each stream, found along an index, then their calls
and labels by id.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

from sqlalchemy import ColumnElement, Row, func, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.records import is_refusal
from litellm_messplus.state.entries import Given, Rule
from litellm_messplus.store.tables import calls, labels, requests
from litellm_messplus.store.verdicts import given
from litellm_messplus.switching.forecast import DecidedAside, Happened
from litellm_messplus.switching.modes import WARM_UP, Arm, is_before, level_before
from litellm_messplus.switching.way_back import Served
from litellm_messplus.vocabulary import CallRole, CallStatus

MOST = 4000
"""Requests of a stream that are looked at, the newest."""
FARTHEST = 100_000
"""Requests of a stream, the newest, among which they are looked for: few may have been decided."""
AT_ONCE = 400
"""Requests whose calls and labels are read by one statement."""


@dataclass(slots=True)
class Observed:
    """One request and what is logged about it so far."""

    request: Row[Any]
    calls: list[Row[Any]] = field(default_factory=list)
    labels: dict[str, list[Given]] = field(default_factory=lambda: defaultdict(list))

    @property
    def served(self) -> Row[Any] | None:
        """The call that the user saw."""
        return next((call for call in self.calls if call.role == CallRole.SERVED), None)

    @property
    def is_refused(self) -> bool:
        """Whether the request itself was refused, so that no model is to blame."""
        return self.served is not None and is_refusal(self.served.error)

    @property
    def cost(self) -> float | None:
        """The cost of the served call and of those beside it; None where nobody knows."""
        served = self.served
        if served is None or served.cost is None:
            return None
        beside = (call.cost or 0.0 for call in self.calls if call.role != CallRole.SERVED)
        return float(served.cost) + sum(beside)

    def of_choice(self) -> Row[Any] | None:
        """Find the call of the model that the router would have chosen: unseen, else served."""
        own = [
            call
            for call in self.calls
            if call.candidate == self.request.would_choose and call.status == CallStatus.SUCCESS
        ]
        unseen = [call for call in own if call.role != CallRole.SERVED]
        is_known = self.request.chosen == self.request.would_choose
        return unseen[0] if unseen else own[0] if own and is_known else None


class ObservedLog:
    """The newest requests of one zoo's ``levels``; ``rule`` makes verdicts of their labels."""

    def __init__(
        self, database: AsyncEngine, zoo: str, levels: Collection[str], rule: Rule
    ) -> None:
        self._database = database
        self._zoo = zoo
        self._levels = tuple(levels)
        self._rule = rule

    async def served(self, since: datetime | None, most: int = MOST) -> list[Served]:
        """Read how requests were served, in the order of the log. Raises SQLAlchemyError."""
        before = map(level_before, self._levels)
        return [
            self._served(each) for each in await self._read((*self._levels, *before), since, most)
        ]

    async def aside(self, most: int = MOST) -> list[DecidedAside]:
        """Read what was decided aside. Raises SQLAlchemyError."""
        streams = [level_before(level) for level in self._levels]
        found = await self._read(streams, None, most, requests.c.would_choose.is_not(None))
        return [self._aside(each) for each in found if each.request.number > WARM_UP]

    async def happened(self, since: datetime | None, most: int = MOST) -> Happened:
        """Read what the routed requests came to. Raises SQLAlchemyError."""
        found = await self._read(self._levels, since, most)
        verdicts = [verdict for each in found if (verdict := self._verdict(each)) is not None]
        costs = [cost for each in found if (cost := each.cost) is not None]
        weight = sum(each.weight * each.stands_for for each in verdicts)
        satisfied = sum(each.value * each.weight * each.stands_for for each in verdicts)
        return Happened(
            requests=len(found),
            answered=len(verdicts),
            satisfaction=satisfied / weight if weight > 0.0 else None,
            cost=sum(costs) / len(costs) if costs else None,
        )

    async def _read(
        self,
        streams: Sequence[str],
        since: datetime | None,
        most: int,
        *conditions: ColumnElement[bool],
    ) -> list[Observed]:
        async with self._database.connect() as connection:
            rows = [
                row
                for stream in streams
                for row in await self._newest(connection, stream, most, *conditions)
            ]
            rows = [row for row in rows if since is None or row.created_at >= since]
            found = {row.request_id: Observed(row) for row in sorted(rows, key=_position)}
            ids = iter(found)
            while some := tuple(islice(ids, AT_ONCE)):
                await _add(connection, found, some)
        return list(found.values())

    async def _newest(
        self,
        connection: AsyncConnection,
        stream: str,
        most: int,
        *conditions: ColumnElement[bool],
    ) -> Sequence[Row[Any]]:
        """Read the newest of a stream, of which the conditions hold."""
        asked = requests.c
        columns: tuple[Any, ...] = (
            *(
                asked.request_id,
                asked.position,
                asked.t.label("number"),
                asked.created_at,
                asked.service_level,
            ),
            *(asked.alpha, asked.arm, asked.chosen, asked.would_choose, asked.would_cost),
            *(asked.estimated_cost, asked.estimated_satisfaction, asked.conversation_draw),
            asked.key_hash,
        )
        is_own = (asked.zoo == self._zoo) & (asked.service_level == stream)
        last = select(func.max(asked.t)).where(is_own).scalar_subquery()
        query = (
            select(*columns)
            .where(is_own, asked.t > last - FARTHEST, *conditions)
            .order_by(asked.t.desc())
            .limit(most)
        )
        return (await connection.execute(query)).all()

    def _verdict(self, found: Observed) -> Given | None:
        served = found.served
        return None if served is None else self._rule.counting(found.labels[served.call_id])

    def _is_judged(self, found: Observed, call: Row[Any]) -> bool:
        return self._rule.counting(found.labels[call.call_id]) is not None

    def _served(self, found: Observed) -> Served:
        request, verdict = found.request, self._verdict(found)
        call = None if found.is_refused else found.served
        return Served(
            level=request.service_level,
            alpha=request.alpha,
            is_routed=request.arm == Arm.ROUTED and not is_before(request.service_level),
            satisfaction=None if verdict is None else verdict.value,
            weight=0.0 if verdict is None else verdict.weight * verdict.stands_for,
            has_failed=None if call is None else call.status != CallStatus.SUCCESS,
            seconds=None if call is None or call.is_cache_hit else call.seconds,
            key=request.key_hash,
        )

    def _aside(self, found: Observed) -> DecidedAside:
        request, call = found.request, found.of_choice()
        choice = request.would_choose
        verdict = None if call is None else self._rule.counting(found.labels[call.call_id])
        expected = request.estimated_cost[choice]
        return DecidedAside(
            conversation=request.request_id
            if request.conversation_draw is None
            else request.conversation_draw,
            predicted=request.estimated_satisfaction[choice],
            expected_cost=expected,
            is_seen=request.chosen == choice,
            satisfaction=None if verdict is None else verdict.value,
            cost=None if call is None else call.cost,
            beside=max(request.would_cost - expected, 0.0),
            alpha=request.alpha,
            costs=request.estimated_cost,
            rates=request.estimated_satisfaction,
            judged=tuple(
                each.candidate
                for each in found.calls
                if each.candidate is not None and self._is_judged(found, each)
            ),
        )


def _position(row: Row[Any]) -> int:
    return int(row.position)


async def _add(
    connection: AsyncConnection, found: dict[str, Observed], ids: Collection[str]
) -> None:
    """Add the calls and labels of these requests, in the order of the log."""
    for call in await connection.execute(_calls(ids)):
        found[call.request_id].calls.append(call)
    for label in await connection.execute(_labels(ids)):
        found[label.request_id].labels[label.call_id].append(given(label))


def _calls(ids: Collection[str]) -> Any:
    own = calls.c
    columns = (
        *(own.request_id, own.call_id, own.role, own.status, own.candidate),
        *(own.cost, own.seconds, own.is_cache_hit, own.error),
    )
    return select(*columns).where(own.request_id.in_(ids)).order_by(own.position)


def _labels(ids: Collection[str]) -> Any:
    own = labels.c
    columns = (
        *(own.request_id, own.call_id, own.kind, own.source),
        *(own.value, own.weight, own.probability),
    )
    return select(*columns).where(own.request_id.in_(ids)).order_by(own.position)
