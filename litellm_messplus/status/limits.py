"""The limits besides alpha: late requests, today's cost, and which limit binds."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, time
from typing import Any

from sqlalchemy import case, false, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.figures.interval import wilson
from litellm_messplus.figures.tally import share, tallies
from litellm_messplus.routing.limits import LATE_SHARE, allowed_share
from litellm_messplus.status.reading import (
    RECENT_DECISIONS,
    Key,
    Start,
    is_since,
    window_start,
    within,
)
from litellm_messplus.status.report import BudgetStatus, LatencyStatus, LimitsStatus
from litellm_messplus.store.tables import calls, request_sums, requests, served_call

Logged = Mapping[str, Any]
"""The column `limits` of a request."""


async def read_limits(
    connection: AsyncConnection, start: Start, now: datetime
) -> dict[Key, LimitsStatus]:
    """Read the limits of the service levels whose newest request had some; the window begins at
    ``start``."""
    newest: dict[Key, list[Logged | None]] = {}
    query = (
        select(requests.c.zoo, requests.c.service_level, requests.c.limits)
        .where(is_since(await window_start(connection, RECENT_DECISIONS)))
        .order_by(requests.c.position.desc())
    )
    for row in await connection.execute(query):
        newest.setdefault((row.zoo, row.service_level), []).append(row.limits)
    limited = {key: found[0] for key, found in newest.items() if found[0] is not None}
    if not limited:
        return {}
    late = await _late(connection, start, limited)
    by, is_today = ("zoo", "service_level"), request_sums.c.day == now.date()
    spent = await tallies(connection, *by, source=request_sums, where=is_today)
    elapsed = (now - datetime.combine(now.date(), time.min, UTC)).total_seconds()
    return {
        key: limits_status(
            each,
            binding_of(newest[key]),
            *late.get(key, (0, 0)),
            spent=spent[key].cost if key in spent else 0.0,
            elapsed=elapsed,
        )
        for key, each in limited.items()
    }


def binding_of(newest: Sequence[Logged | None]) -> str | None:
    """Find the limit that binds in more than half of the newest decisions."""
    binding = [None if each is None else each["binding"] for each in newest]
    limits = ("budget", "latency")
    return next((each for each in limits if 2 * binding.count(each) > len(binding)), None)


async def _late(
    connection: AsyncConnection, start: Start, limits: Mapping[Key, Logged]
) -> dict[Key, tuple[int, int]]:
    """Count late requests, and those whose time is known, by the current limits.

    Lateness is decided as in the fold: an answer of LiteLLM's cache is never late, and failures are
    left out.
    """
    over = or_(
        false(),
        *(
            (requests.c.zoo == zoo)
            & (requests.c.service_level == level)
            & (calls.c.seconds > each["late_after"])
            for (zoo, level), each in limits.items()
            if "late_after" in each
        ),
    )
    late = ~calls.c.is_cache_hit & over
    is_timed = calls.c.is_cache_hit | calls.c.seconds.is_not(None)
    query = (
        select(
            requests.c.zoo,
            requests.c.service_level,
            func.count(case((late, 1))),
            func.count(case((is_timed, 1))),
        )
        .join_from(requests, calls, calls.c.call_id == served_call(requests))
        .where(requests.c.limits.is_not(None), calls.c.status == "success")
        .group_by(requests.c.zoo, requests.c.service_level)
    )
    query = within(query, requests.c.request_id, start)
    return {(row[0], row[1]): (row[2], row[3]) for row in await connection.execute(query)}


def limits_status(
    newest: Logged, binding: str | None, late: int, ended: int, *, spent: float, elapsed: float
) -> LimitsStatus:
    """Build the limits of a service level: from the ``newest`` request's, the ``binding`` one,
    ``late`` of the ``ended`` requests of the window, and today's cost ``spent``, ``elapsed``
    seconds after midnight (UTC)."""
    latency = budget = None
    if "late_after" in newest:
        late_share = share(late, ended)
        around = None if late_share is None else wilson(late_share, float(ended))
        low, high = (around.low, around.high) if around else (None, None)
        latency = LatencyStatus(
            *(newest["late_after"], ended, late, LATE_SHARE, late_share, low, high),
            *(newest["late_owed"], newest["late_price"]),
        )
    if "budget" in newest:
        per_day, allowed = newest["budget"], newest["budget"] * allowed_share(elapsed)
        budget = BudgetStatus(per_day, spent, allowed, newest["strain"])
    return LimitsStatus(binding, latency, budget)
