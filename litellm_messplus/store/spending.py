"""What labels cost beside what is saved, from the tables of sums: they know every worker's, and
requests that have left the log."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any

from sqlalchemy import case, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.store.sum_tables import grading_sums, request_sums
from litellm_messplus.store.tables import requests
from litellm_messplus.switching.modes import BEFORE_SUFFIX


@dataclass(frozen=True, slots=True)
class LabelCosts:
    """Costs of one zoo. ``unseen`` is what calls cost that no user saw, in the zoo's unit: they are
    made to be labelled; ``judging`` is in dollars. ``saved`` is against always calling the largest,
    as if labels had cost nothing. Those ``_today`` are of one day (UTC), as is ``largest_today``,
    what the largest alone would have cost; ``largest_before`` is that of the day before."""

    requests: int = 0
    saved: float = 0.0
    unseen: float = 0.0
    unseen_today: float = 0.0
    largest_today: float = 0.0
    largest_before: float = 0.0
    judging: float = 0.0
    judging_today: float = 0.0


async def label_costs(
    connection: AsyncConnection, today: date, yesterday: date
) -> dict[str, LabelCosts]:
    """Read the costs by zoo; zoos without a request are left out."""
    judged = {row[0]: tuple(row[1:]) for row in await connection.execute(_judging(today))}
    found = request_sums.c
    saved = found.compared_cost_largest - found.compared_cost + found.exploration_cost
    query = select(
        found.zoo,
        func.sum(found.requests),
        func.coalesce(func.sum(saved), 0.0),
        func.sum(found.exploration_cost),
        _on(today, found.exploration_cost),
        _on(today, found.compared_cost_largest),
        _on(yesterday, found.compared_cost_largest),
    ).group_by(found.zoo)
    return {
        row[0]: LabelCosts(*row[1:], *judged.get(row[0], (0.0, 0.0)))
        for row in await connection.execute(query)
    }


async def first_asked(connection: AsyncConnection, zoo: str, today: date) -> datetime | None:
    """Find when the zoo was first asked on that day (UTC)."""
    query = (
        select(requests.c.created_at)
        .where(
            requests.c.created_at >= datetime.combine(today, time.min, tzinfo=UTC),
            requests.c.zoo == zoo,
        )
        .order_by(requests.c.created_at)
        .limit(1)
    )
    return (await connection.execute(query)).scalar_one_or_none()


def _judging(today: date) -> Any:
    found = grading_sums.c
    return select(
        found.zoo,
        func.coalesce(func.sum(found.cost), 0.0),
        func.coalesce(func.sum(case((found.day == today, found.cost))), 0.0),
    ).group_by(found.zoo)


def _on(day: date, figure: Any) -> Any:
    return func.coalesce(func.sum(case((request_sums.c.day == day, figure))), 0.0)


async def sampled_on(connection: AsyncConnection, day: date) -> dict[str, float]:
    """Read what unseen calls cost on a day, by zoo, of requests that were served as before."""
    found = request_sums.c
    query = (
        select(found.zoo, func.sum(found.exploration_cost))
        .where(found.day == day, found.service_level.endswith(BEFORE_SUFFIX))
        .group_by(found.zoo)
    )
    return {row[0]: row[1] for row in await connection.execute(query)}
