"""The newest requests of a promise, as points of a chart: right after a start, days say nothing."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.figures.tally import Tally
from litellm_messplus.page.series import Called, Point, point
from litellm_messplus.store.sum_tables import outcomes
from litellm_messplus.store.tables import calls, requests
from litellm_messplus.vocabulary import CallStatus

NEWEST = 500
"""Requests that are read, along an index, however long the log is."""
POINTS = 50
"""At the most, each of as many requests as the others."""
TRAILING = 100
"""Requests whose verdicts make the rate of a point: ten would say nothing."""


async def read_newest(connection: AsyncConnection, zoo: str, level: str) -> list[Point]:
    """Read points over the newest requests, the oldest first.

    The rate of a point is of the last ``TRAILING`` requests by then; all else is of its own.
    """
    found, called = await _read(connection, zoo, level)
    size = max(1, -(-len(found) // POINTS))
    points = []
    for end in range(size, len(found) + size, size):
        own = found[end - size : end]
        judged = Tally.of(found[max(0, min(end, len(found)) - TRAILING) : end])
        calls = Called()
        for request in own:
            for call in called[request.request_id]:
                failed = int(call.status == CallStatus.FAILURE)
                calls.add(call.candidate or "", call.role, 1, failed)
        last = own[-1]
        points.append(point(last.created_at, Tally.of(own), calls, judged, last.number))
    return points


async def _read(
    connection: AsyncConnection, zoo: str, level: str
) -> tuple[Sequence[Row[Any]], dict[str, list[Any]]]:
    """Read the outcomes of the newest requests in their order, and their calls."""
    asked, of = requests.c, calls.c
    query = (
        select(outcomes, asked.t.label("number"), asked.created_at)
        .join(requests, asked.request_id == outcomes.c.request_id)
        .where(asked.zoo == zoo, asked.service_level == level)
        .order_by(asked.position.desc())
        .limit(NEWEST)
    )
    rows = (await connection.execute(query)).all()[::-1]
    called: dict[str, list[Any]] = defaultdict(list)
    ids = [row.request_id for row in rows]
    ended = select(of.request_id, of.candidate, of.role, of.status).where(of.request_id.in_(ids))
    for row in await connection.execute(ended):
        called[row.request_id].append(row)
    return rows, called
