"""What the status asks the log, grouped by zoo and service level. `docs/status.md` shows the SQL.

Only reads, and runs alike on SQLite and Postgres.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Boolean, Integer, Select, Subquery, case, cast, column, func, select, table
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.store.tables import calls, requests

OUT_OF_REACH = "no candidate is expected to hold alpha"
"""How a decision's reason begins where nothing can hold alpha."""
RECENT_DECISIONS = 20
"""Decisions, probes left out, of which most must say so: one alone may waver."""

Key = tuple[str, str]
"""Zoo and service level."""

OUTCOMES = table(
    "request_outcomes",
    *map(column, ("request_id", "zoo", "service_level", "alpha", "status", "satisfaction")),
    *map(column, ("served_cost", "exploration_cost", "cost", "cost_largest")),
    column("is_exploration", Boolean),
)
CURRENT_LABELS = table("current_labels", *map(column, ("call_id", "source", "value")))
"""The views, as far as they are read here."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over requests. ``priced`` ones have a served call of known cost; ``compared`` ones
    succeeded at a known cost, and what the largest would have cost is known too."""

    requests: int
    answered: int
    rate: float | None
    mean_alpha: float | None
    cost: float
    priced: int
    priced_cost: float
    explorations: int
    exploration_cost: float
    compared: int
    compared_cost: float
    compared_cost_largest: float


@dataclass(frozen=True, slots=True)
class Calls:
    """The successful calls of one candidate, in any role."""

    candidate: str
    labelled: int
    rate: float | None
    mean_cost: float | None


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest request."""

    alpha: float
    queue: float
    price: float | None
    candidates: tuple[str, ...]


async def totals(connection: AsyncConnection, window: int | None = None) -> dict[Key, Totals]:
    """Over all requests, or over the newest ``window`` of each service level."""
    found = OUTCOMES.c
    known, is_answered = found.served_cost.is_not(None), found.satisfaction.is_not(None)
    compared = known & (found.status == "success") & found.cost_largest.is_not(None)
    query = select(
        found.zoo,
        found.service_level,
        func.count(),
        func.count(found.satisfaction),
        func.avg(found.satisfaction),
        _promised(case((is_answered, found.alpha))),
        func.sum(found.cost),
        func.count(found.served_cost),
        func.coalesce(func.sum(case((known, found.cost))), 0.0),
        func.sum(cast(found.is_exploration, Integer)),
        func.sum(found.exploration_cost),
        func.count(case((compared, 1))),
        func.coalesce(func.sum(case((compared, found.cost))), 0.0),
        func.coalesce(func.sum(case((compared, found.cost_largest))), 0.0),
    ).group_by(found.zoo, found.service_level)
    if window is not None:
        query = _within(query, found.request_id, window)
    return {(row[0], row[1]): Totals(*row[2:]) for row in await connection.execute(query)}


async def calls_without_cost(
    connection: AsyncConnection, window: int | None = None
) -> dict[Key, int]:
    """Successful calls whose cost nobody stated, exploration calls too."""
    query = (
        select(requests.c.zoo, requests.c.service_level, func.count())
        .select_from(calls.join(requests, requests.c.request_id == calls.c.request_id))
        .where(calls.c.status == "success", calls.c.cost.is_(None))
        .group_by(requests.c.zoo, requests.c.service_level)
    )
    if window is not None:
        query = _within(query, calls.c.request_id, window)
    return {(row[0], row[1]): row[2] for row in await connection.execute(query)}


async def calls_of_candidates(connection: AsyncConnection) -> dict[Key, list[Calls]]:
    """What every candidate's calls came to, the served and the exploration calls together."""
    verdict = CURRENT_LABELS.c
    query = (
        select(
            requests.c.zoo,
            requests.c.service_level,
            calls.c.candidate,
            func.count(verdict.value),
            func.avg(verdict.value),
            func.avg(calls.c.cost),
        )
        .select_from(calls)
        .join(requests, requests.c.request_id == calls.c.request_id)
        .outerjoin(
            CURRENT_LABELS, (verdict.call_id == calls.c.call_id) & (verdict.source == "feedback")
        )
        .where(calls.c.status == "success", calls.c.candidate.is_not(None))
        .group_by(requests.c.zoo, requests.c.service_level, calls.c.candidate)
        .order_by(calls.c.candidate)
    )
    found: dict[Key, list[Calls]] = {}
    for row in await connection.execute(query):
        found.setdefault((row[0], row[1]), []).append(Calls(*row[2:]))
    return found


async def newest(connection: AsyncConnection) -> dict[Key, Newest]:
    """The newest request of every service level."""
    last = _numbered()
    asked = requests.c
    query = (
        select(
            asked.zoo, asked.service_level, asked.alpha, asked.queue, asked.price,
            asked.estimated_cost,
        )
        .join(last, last.c.request_id == asked.request_id)
        .where(last.c.place == 1)
    )  # fmt: skip
    return {
        (row.zoo, row.service_level): Newest(
            row.alpha, row.queue, row.price, tuple(row.estimated_cost)
        )
        for row in await connection.execute(query)
    }


async def out_of_reach(connection: AsyncConnection) -> set[Key]:
    """The service levels of which most of the newest decisions say that nothing can hold alpha."""
    decided = _numbered(~requests.c.is_exploration)
    says_so = requests.c.reason.startswith(OUT_OF_REACH, autoescape=True)
    query = (
        select(requests.c.zoo, requests.c.service_level)
        .join(decided, decided.c.request_id == requests.c.request_id)
        .where(decided.c.place <= RECENT_DECISIONS)
        .group_by(requests.c.zoo, requests.c.service_level)
        .having(2 * func.count(case((says_so, 1))) > func.count())
    )
    return {(row[0], row[1]) for row in await connection.execute(query)}


def _promised(alpha: Any) -> Any:
    """The mean; where all are the same, that very number, which a mean would only round."""
    lowest = func.min(alpha)
    return case((lowest == func.max(alpha), lowest), else_=func.avg(alpha))


def _within(query: Select[Any], request_id: Any, window: int) -> Select[Any]:
    """The query over the newest ``window`` requests of each service level."""
    last = _numbered()
    newest_ids = select(last.c.request_id).where(last.c.place <= window)
    return query.where(request_id.in_(newest_ids))


def _numbered(*conditions: Any) -> Subquery:
    """Requests by ``place``, the newest of each service level being 1."""
    place = func.row_number().over(
        partition_by=(requests.c.zoo, requests.c.service_level),
        order_by=requests.c.position.desc(),
    )
    return select(requests.c.request_id, place.label("place")).where(*conditions).subquery()
