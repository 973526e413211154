"""What the status says of the whole time: read from the tables of sums, never from the log.

They grow with the days, not with the requests, and know requests that have left the log. What the
status says of the newest requests is in `queries`, and reads only those, along indexes.
"""

from typing import Any

from sqlalchemy import case, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.status.labels import Given, Sources, by_strength
from litellm_messplus.status.queries import Calls, Key, Totals
from litellm_messplus.status.report import Overhead
from litellm_messplus.status.windows import overhead
from litellm_messplus.store.sum_tables import call_sums, label_sums, request_sums
from litellm_messplus.vocabulary import LabelKind


async def totals(connection: AsyncConnection) -> dict[Key, Totals]:
    """Sum up all requests."""
    found = request_sums.c
    known = case((found.answered > 0, found.alpha))
    lowest = func.min(known)
    mean_alpha = func.sum(found.weight * found.alpha) / func.nullif(func.sum(found.weight), 0.0)
    query = select(
        found.zoo,
        found.service_level,
        func.sum(found.requests),
        func.sum(found.counted),
        func.sum(found.labelled),
        func.sum(found.answered),
        _effective(found),
        _rate(found),
        case((lowest == func.max(known), lowest), else_=mean_alpha),
        func.sum(found.cost),
        func.sum(found.priced),
        func.sum(found.priced_cost),
        func.sum(found.explorations),
        func.sum(found.exploration_cost),
        func.sum(found.compared),
        func.sum(found.compared_cost),
        func.sum(found.compared_cost_largest),
    ).group_by(found.zoo, found.service_level)
    rows = await connection.execute(query)
    return {(zoo, level): Totals(*figures) for zoo, level, *figures in rows.all()}


async def overheads(connection: AsyncConnection) -> dict[Key, Overhead]:
    """Average the overheads of all requests whose served call took a known time."""
    found = request_sums.c
    timed, metered = func.sum(found.timed), func.sum(found.metered)
    query = (
        select(
            found.zoo,
            found.service_level,
            timed,
            func.sum(found.late),
            func.sum(found.predicting_seconds) / timed,
            func.sum(found.deciding_seconds) / timed,
            func.sum(found.call_seconds) / timed,
            func.sum(found.joules) / func.nullif(metered, 0),
        )
        .group_by(found.zoo, found.service_level)
        .having(timed > 0)
    )
    return {(row[0], row[1]): overhead(*row[2:]) for row in await connection.execute(query)}


async def calls_without_cost(connection: AsyncConnection) -> dict[Key, int]:
    """Count successful calls whose cost nobody stated, exploration calls too."""
    found = call_sums.c
    unstated = func.sum(found.unstated)
    query = (
        select(found.zoo, found.service_level, unstated)
        .group_by(found.zoo, found.service_level)
        .having(unstated > 0)
    )
    return {(row[0], row[1]): row[2] for row in await connection.execute(query)}


async def calls_of_candidates(connection: AsyncConnection) -> dict[Key, list[Calls]]:
    """Sum up every candidate's calls, the served and the exploration calls together; what LiteLLM's
    cache repeated was no call."""
    of = call_sums.c
    each = (of.zoo, of.service_level, of.candidate)
    query = (
        select(
            *each,
            func.sum(of.judged),
            _effective(of),
            _rate(of),
            func.sum(of.priced_cost) / func.nullif(func.sum(of.priced), 0),
        )
        .where(of.own > 0)
        .group_by(*each)
        .order_by(of.candidate)
    )
    found: dict[Key, list[Calls]] = {}
    for zoo, level, *figures in await connection.execute(query):
        found.setdefault((zoo, level), []).append(Calls(*figures))
    return found


async def sources(connection: AsyncConnection) -> dict[Key, Sources]:
    """Sum up the labels on all served calls by source; the strongest kind first."""
    of = label_sums.c
    each = (of.zoo, of.service_level, of.kind, of.source)
    labelled = func.sum(of.labelled)
    query = (
        select(
            *each,
            labelled,
            func.sum(of.satisfaction),
            func.sum(of.satisfaction_squared),
            func.sum(of.counting),
        )
        .group_by(*each)
        .having(labelled > 0)
    )
    found: dict[Key, list[Given]] = {}
    for zoo, level, kind, *figures in await connection.execute(query):
        found.setdefault((zoo, level), []).append(Given(LabelKind(kind), *figures))
    return {key: by_strength(given) for key, given in found.items()}


def _rate(of: Any) -> Any:
    """Return the mean of verdicts that weigh differently; NULL of none."""
    return func.sum(of.weighted_satisfaction) / func.nullif(func.sum(of.weight), 0.0)


def _effective(of: Any) -> Any:
    """Return how many equal weights say as much as these; 0 of none."""
    weight, squared = func.sum(of.weight), func.sum(of.weight_squared)
    return func.coalesce(weight * weight / func.nullif(squared, 0.0), 0.0)
