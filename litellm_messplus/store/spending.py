"""What labels cost beside what is saved, from the tables of sums: they know every worker's, and
requests that have left the log."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from sqlalchemy import case, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.figures.tally import Tally, tallies
from litellm_messplus.store.tables import grading_sums, request_sums, requests
from litellm_messplus.vocabulary import BEFORE_SUFFIX, is_before


@dataclass(frozen=True, slots=True)
class LabelCosts:
    """Costs of one zoo. ``unseen`` is what calls cost that no user saw, in the zoo's unit: they are
    made to be labelled; ``judging`` is in dollars. ``saved`` is what routing saved against always
    calling the largest: the sum over the promises, of which nothing that was served as before is
    part. Those ``_today`` are of one day (UTC), as is ``largest_today``, what the largest alone
    would have cost; ``largest_before`` is that of the day before."""

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
    of = grading_sums.c
    judging = (func.sum(of.cost), func.sum(case((of.day == today, of.cost))))
    query = select(of.zoo, *(func.coalesce(each, 0.0) for each in judging)).group_by(of.zoo)
    judged = {row[0]: tuple(row[1:]) for row in await connection.execute(query)}
    whole: dict[str, Tally] = defaultdict(Tally)
    saved: dict[str, float] = defaultdict(float)
    by_level = await tallies(connection, "zoo", "service_level", source=request_sums)
    for (zoo, level), tally in by_level.items():
        whole[zoo] += tally
        saved[zoo] += 0.0 if is_before(level) else tally.saved
    is_recent = request_sums.c.day.in_((today, yesterday))
    days = await tallies(connection, "day", "zoo", source=request_sums, where=is_recent)
    found = {}
    for zoo, tally in whole.items():
        now, before = days.get((today, zoo), Tally()), days.get((yesterday, zoo), Tally())
        all_judging, judging_today = judged.get(zoo, (0.0, 0.0))
        found[zoo] = LabelCosts(
            requests=tally.requests,
            saved=saved[zoo],
            unseen=tally.exploration_cost,
            unseen_today=now.exploration_cost,
            largest_today=now.compared_cost_largest,
            largest_before=before.compared_cost_largest,
            judging=all_judging,
            judging_today=judging_today,
        )
    return found


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


async def sampled_on(connection: AsyncConnection, day: date) -> dict[str, float]:
    """Read what unseen calls cost on a day, by zoo, of requests that were served as before."""
    found = request_sums.c
    is_before = (found.day == day) & found.service_level.endswith(BEFORE_SUFFIX)
    sampled = await tallies(connection, "zoo", source=request_sums, where=is_before)
    return {zoo: tally.exploration_cost for (zoo,), tally in sampled.items()}
