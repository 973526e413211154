"""The newest requests of a promise, as points of a chart: right after a start, days say nothing."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.page.series import Point, Sums, point
from litellm_messplus.status.queries import OUTCOMES
from litellm_messplus.store.tables import calls, requests

NEWEST = 500
"""Requests that are read, along an index, however long the log is."""
POINTS = 50
"""At the most, each of as many requests as the others."""
TRAILING = 100
"""Requests whose verdicts make the rate of a point: ten would say nothing."""


@dataclass(frozen=True, slots=True)
class _Request:
    """Rows of the log; ``outcome`` is None where there is none yet."""

    row: Any
    outcome: Any
    calls: Sequence[Any]


async def read_newest(connection: AsyncConnection, zoo: str, level: str) -> list[Point]:
    """Read points over the newest requests, the oldest first.

    The rate of a point is of the last ``TRAILING`` requests by then; all else is of its own.
    """
    found = await _read(connection, zoo, level)
    size = max(1, -(-len(found) // POINTS))
    recent: deque[_Request] = deque(maxlen=TRAILING)
    points = []
    for start in range(0, len(found), size):
        own = found[start : start + size]
        recent.extend(own)
        last = own[-1].row
        points.append(point(last.created_at, _sums(own, recent), last.number))
    return points


async def _read(connection: AsyncConnection, zoo: str, level: str) -> list[_Request]:
    asked = requests.c
    query = (
        select(
            asked.request_id, asked.t.label("number"), asked.created_at, asked.alpha, asked.queue
        )
        .where(asked.zoo == zoo, asked.service_level == level)
        .order_by(asked.position.desc())
        .limit(NEWEST)
    )
    rows = (await connection.execute(query)).all()[::-1]
    ids = [row.request_id for row in rows]
    outcomes = {
        row.request_id: row
        for row in await connection.execute(select(OUTCOMES).where(OUTCOMES.c.request_id.in_(ids)))
    }
    called: dict[str, list[Any]] = {}
    of = calls.c
    ended = select(of.request_id, of.candidate, of.role, of.status).where(of.request_id.in_(ids))
    for row in await connection.execute(ended):
        called.setdefault(row.request_id, []).append(row)
    return [
        _Request(row, outcomes.get(row.request_id), called.get(row.request_id, ())) for row in rows
    ]


def _sums(own: Sequence[_Request], recent: Sequence[_Request]) -> Sums:
    sums = Sums(alphas={each.row.alpha for each in recent})
    for each in own:
        _add(sums, each)
    for each in recent:
        _add_verdict(sums, each)
    return sums


def _add(sums: Sums, each: _Request) -> None:
    sums.requests += 1
    sums.queue += each.row.queue
    sums.queued += 1
    for call in each.calls:
        sums.add_call(call.candidate or "", call.role, 1, int(call.status == "failure"))
    outcome = each.outcome
    if outcome is None:
        return
    sums.cost += outcome.cost
    is_known = outcome.served_cost is not None and outcome.cost_largest is not None
    if outcome.status == "success" and is_known:
        sums.compared += 1
        sums.compared_cost += outcome.cost
        sums.compared_cost_largest += outcome.cost_largest


def _add_verdict(sums: Sums, each: _Request) -> None:
    outcome = each.outcome
    if outcome is None or outcome.satisfaction is None:
        return
    weight = outcome.satisfaction_weight
    sums.answered += 1
    sums.weight += weight
    sums.weight_squared += weight * weight
    sums.weighted_satisfaction += weight * outcome.satisfaction
    sums.weighted_alpha += weight * each.row.alpha
