"""What the status asks the log, grouped by zoo and service level. `docs/status.md` shows the SQL.

Only reads, and runs alike on SQLite and Postgres.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Boolean,
    Integer,
    Select,
    case,
    cast,
    column,
    exists,
    false,
    func,
    or_,
    select,
    table,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.store.tables import call_energy, calls, labels, requests

OUT_OF_REACH = "no candidate is expected to hold alpha"
"""How a decision's reason begins where nothing can hold alpha."""
RECENT_DECISIONS = 20
"""Decisions, probes left out, of which most must say so: one alone may waver."""

Key = tuple[str, str]
"""Zoo and service level."""
Start = Mapping[Key, int]
"""The position of each service level's first request in a window."""

OUTCOMES = table(
    "request_outcomes",
    *map(column, ("request_id", "zoo", "service_level", "alpha", "status")),
    *map(column, ("satisfaction", "satisfaction_weight")),
    *map(column, ("served_cost", "exploration_cost", "cost", "cost_largest")),
    column("is_exploration", Boolean),
)
VERDICTS = table("verdicts", *map(column, ("call_id", "source", "value", "weight", "position")))
"""The views, as far as they are read here."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over requests. Of the ``labelled`` ones, by any source, some are ``answered``: they have
    a verdict, as a label counts. ``rate`` and ``mean_alpha`` weigh each verdict, and ``effective``
    is how many equal ones say as much. ``priced`` requests have a served call of known cost;
    ``compared`` ones succeeded at a known cost, and what the largest would have cost is known
    too."""

    requests: int
    labelled: int
    answered: int
    effective: float
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
    effective: float
    rate: float | None
    mean_cost: float | None


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest request."""

    alpha: float
    queue: float
    price: float | None
    candidates: tuple[str, ...]
    largest: str


async def totals(connection: AsyncConnection, start: Start | None = None) -> dict[Key, Totals]:
    """Over all requests, or over those of a window."""
    found = OUTCOMES.c
    is_labelled = exists().where(labels.c.call_id == found.request_id + ".0")
    known, weight = found.served_cost.is_not(None), found.satisfaction_weight
    compared = known & (found.status == "success") & found.cost_largest.is_not(None)
    query = select(
        found.zoo,
        found.service_level,
        func.count(),
        func.count(case((weight.is_not(None) | is_labelled, 1))),
        func.count(found.satisfaction),
        effective(weight),
        mean(found.satisfaction, weight),
        _promised(found.alpha, weight),
        func.sum(found.cost),
        func.count(found.served_cost),
        func.coalesce(func.sum(case((known, found.cost))), 0.0),
        func.sum(cast(found.is_exploration, Integer)),
        func.sum(found.exploration_cost),
        func.count(case((compared, 1))),
        func.coalesce(func.sum(case((compared, found.cost))), 0.0),
        func.coalesce(func.sum(case((compared, found.cost_largest))), 0.0),
    ).group_by(found.zoo, found.service_level)
    query = within(query, found.request_id, start)
    return {(row[0], row[1]): Totals(*row[2:]) for row in await connection.execute(query)}


async def calls_without_cost(
    connection: AsyncConnection, start: Start | None = None
) -> dict[Key, int]:
    """Successful calls whose cost nobody stated, exploration calls too."""
    query = (
        select(requests.c.zoo, requests.c.service_level, func.count())
        .select_from(calls.join(requests, requests.c.request_id == calls.c.request_id))
        .where(calls.c.status == "success", calls.c.cost.is_(None))
        .group_by(requests.c.zoo, requests.c.service_level)
    )
    query = within(query, calls.c.request_id, start)
    return {(row[0], row[1]): row[2] for row in await connection.execute(query)}


async def calls_of_candidates(connection: AsyncConnection) -> dict[Key, list[Calls]]:
    """What every candidate's calls came to, the served and the exploration calls together."""
    judged = {
        tuple(row[:3]): tuple(row[3:])
        for row in await connection.execute(
            _by_candidate(
                func.count(),
                effective(VERDICTS.c.weight),
                mean(VERDICTS.c.value, VERDICTS.c.weight),
            ).join(VERDICTS, VERDICTS.c.call_id == calls.c.call_id)
        )
    }
    found: dict[Key, list[Calls]] = {}
    cost = func.coalesce(call_energy.c.cost, calls.c.cost)
    costs = (
        _by_candidate(func.avg(cost))
        .outerjoin(call_energy, call_energy.c.call_id == calls.c.call_id)
        .order_by(calls.c.candidate)
    )
    for zoo, level, candidate, cost in await connection.execute(costs):
        labelled, equal, rate = judged.get((zoo, level, candidate), (0, 0.0, None))
        found.setdefault((zoo, level), []).append(Calls(candidate, labelled, equal, rate, cost))
    return found


def _by_candidate(*figures: Any) -> Select[Any]:
    """Figures over the successful calls; what LiteLLM's cache repeated was no call."""
    each = (requests.c.zoo, requests.c.service_level, calls.c.candidate)
    return (
        select(*each, *figures)
        .select_from(calls)
        .join(requests, requests.c.request_id == calls.c.request_id)
        .where(
            calls.c.status == "success",
            calls.c.candidate.is_not(None),
            calls.c.is_cache_hit.is_(False),
        )
        .group_by(*each)
    )


async def newest(connection: AsyncConnection) -> dict[Key, Newest]:
    """The newest request of every service level."""
    asked = requests.c
    last = select(func.max(asked.position)).group_by(asked.zoo, asked.service_level)
    query = select(
        *(asked.zoo, asked.service_level, asked.alpha, asked.queue, asked.price),
        *(asked.estimated_cost, asked.largest),
    ).where(asked.position.in_(last))
    return {
        (row.zoo, row.service_level): Newest(
            row.alpha, row.queue, row.price, tuple(row.estimated_cost), row.largest
        )
        for row in await connection.execute(query)
    }


async def window_start(connection: AsyncConnection, window: int) -> Start:
    """From which position on a request is one of the newest ``window`` of its service level."""
    place = _place()
    last = select(
        requests.c.zoo, requests.c.service_level, requests.c.position, place.label("place")
    ).subquery()
    query = (
        select(last.c.zoo, last.c.service_level, func.min(last.c.position))
        .where(last.c.place <= window)
        .group_by(last.c.zoo, last.c.service_level)
    )
    return {(row[0], row[1]): row[2] for row in await connection.execute(query)}


async def out_of_reach(connection: AsyncConnection) -> set[Key]:
    """The service levels of which most of the newest decisions say that nothing can hold alpha."""
    decided = (
        select(requests.c.request_id, _place().label("place"))
        .where(~requests.c.is_exploration)
        .subquery()
    )
    says_so = requests.c.reason.startswith(OUT_OF_REACH, autoescape=True)
    query = (
        select(requests.c.zoo, requests.c.service_level)
        .join(decided, decided.c.request_id == requests.c.request_id)
        .where(decided.c.place <= RECENT_DECISIONS)
        .group_by(requests.c.zoo, requests.c.service_level)
        .having(2 * func.count(case((says_so, 1))) > func.count())
    )
    return {(row[0], row[1]) for row in await connection.execute(query)}


def mean(value: Any, weight: Any) -> Any:
    """Of values that weigh differently; rows without a weight are left out, and NULL is of none."""
    return func.sum(weight * value) / func.sum(weight)


def effective(weight: Any) -> Any:
    """How many equal weights say as much as these; 0 of none."""
    found = func.sum(weight) * func.sum(weight) / func.sum(weight * weight)
    return func.coalesce(found, 0.0)


def _promised(alpha: Any, weight: Any) -> Any:
    """The mean; where all are the same, that very number, which a mean would only round."""
    known = case((weight.is_not(None), alpha))
    lowest = func.min(known)
    return case((lowest == func.max(known), lowest), else_=mean(alpha, weight))


def within(query: Select[Any], request_id: Any, start: Start | None) -> Select[Any]:
    """The query over the requests of a window; None is the whole time."""
    if start is None:
        return query
    asked = requests.c
    each = (
        (asked.zoo == zoo) & (asked.service_level == level) & (asked.position >= position)
        for (zoo, level), position in start.items()
    )
    oldest = min(start.values(), default=0)  # lets the database go along the index of positions
    ids = select(asked.request_id).where(asked.position >= oldest, or_(false(), *each))
    return query.where(request_id.in_(ids))


def _place() -> Any:
    """Of a request in its service level, the newest being 1."""
    return func.row_number().over(
        partition_by=(requests.c.zoo, requests.c.service_level),
        order_by=requests.c.position.desc(),
    )
