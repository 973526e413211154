"""What labels cost, and how reliable judges are: their agreement with users and their position
bias, over the newest gradings. The same queries run on SQLite and Postgres."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from sqlalchemy import Subquery, and_, case, column, func, select, table
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.figures.tally import Tally, tallies
from litellm_messplus.labels.agreement import Agreement, PositionBias
from litellm_messplus.labels.judge.budget import Spent
from litellm_messplus.runtime.vocabulary import BEFORE_SUFFIX, Preferred, is_before
from litellm_messplus.store.hours import CALLS, REQUESTS
from litellm_messplus.store.tables import JUDGING, gradings, requests

# Verdicts of judges and users on the same calls.

AGREEMENT_WINDOW = 1000
"""The number of newest calls judged by both: an old rubric or model is forgotten."""
LOOKED_AT = 3_000
"""The number of newest gradings, of all zoos, searched for those calls: users judge often enough
for them to be found there, and the cost does not grow with the log."""
SATISFIED = 0.5
LABELS = table(
    "current_labels", *map(column, ("call_id", "request_id", "created_at", "kind", "value"))
)
"""The columns of the view that are read here. It includes labels of weight 0: agreement is measured
on them too."""


async def agreements(
    connection: AsyncConnection, window: int = AGREEMENT_WINDOW
) -> dict[tuple[str, str], Agreement]:
    """Read the agreements by zoo and judge (the model group), over the newest ``window`` calls of
    each among the newest ``LOOKED_AT`` gradings; pairs without such calls are omitted."""
    judged, rated = LABELS.alias("judged"), LABELS.alias("rated")
    graded = newest_gradings(gradings.c.status == "graded")
    each = (requests.c.zoo, graded.c.judge)
    pairs = (
        select(
            *each,
            (judged.c.value >= SATISFIED).label("judge_satisfied"),
            (rated.c.value >= SATISFIED).label("user_satisfied"),
            func.row_number()
            .over(partition_by=each, order_by=(judged.c.created_at.desc(), judged.c.call_id.desc()))
            .label("place"),
        )
        .select_from(graded)
        .join(requests, requests.c.request_id == graded.c.request_id)
        .join(judged, and_(judged.c.request_id == graded.c.request_id, judged.c.kind == "judge"))
        .join(rated, and_(rated.c.call_id == judged.c.call_id, rated.c.kind == "feedback"))
        .subquery()
    )
    yes, user = pairs.c.judge_satisfied, pairs.c.user_satisfied
    query = (
        select(pairs.c.zoo, pairs.c.judge, *agreement_counts(yes, user))
        .where(pairs.c.place <= window)
        .group_by(pairs.c.zoo, pairs.c.judge)
    )
    return {(row[0], row[1]): Agreement(*row[2:]) for row in await connection.execute(query)}


def newest_gradings(*conditions: Any) -> Subquery:
    """Query the newest ``LOOKED_AT`` gradings that meet the conditions."""
    columns = (gradings.c[name] for name in ("request_id", "judge", "position", "preferred"))
    newest = select(*columns).where(*conditions).order_by(gradings.c.position.desc())
    return newest.limit(LOOKED_AT).subquery()


def agreement_counts(judge: Any, user: Any) -> list[Any]:
    """Count the fields of an `Agreement`, from the conditions that judge and user are satisfied."""
    cells = (judge & user, judge & ~user, ~judge & user, ~judge & ~user)
    return [count_where(cell) for cell in cells]


def count_where(condition: Any) -> Any:
    """Count the rows that meet the condition."""
    return func.sum(case((condition, 1), else_=0))


# The position of the answers that judges preferred.

PREFERENCE_WINDOW = 1000
"""The number of newest comparisons of each judge: an old model is forgotten."""


async def preferences(
    connection: AsyncConnection, window: int = PREFERENCE_WINDOW
) -> dict[tuple[str, str], PositionBias]:
    """Count the positions that each judge preferred, by zoo and judge, over its newest ``window``
    comparisons among the newest ``LOOKED_AT`` gradings; judges without any are omitted."""
    newest = newest_gradings()
    each = (requests.c.zoo, newest.c.judge)
    place = func.row_number().over(partition_by=each, order_by=newest.c.position.desc())
    compared = (
        select(*each, newest.c.preferred, place.label("place"))
        .select_from(newest)
        .join(requests, requests.c.request_id == newest.c.request_id)
        .where(newest.c.preferred.is_not(None))
        .subquery("compared")
    )
    found = compared.c
    query = (
        select(
            found.zoo,
            found.judge,
            *(count_where(found.preferred == preferred.value) for preferred in Preferred),
        )
        .where(found.place <= window)
        .group_by(found.zoo, found.judge)
    )
    return {(row[0], row[1]): PositionBias(*row[2:]) for row in await connection.execute(query)}


# What labels cost and what routing saves, from the sums, which include every worker's requests
# and those pruned from the log.


@dataclass(frozen=True, slots=True)
class LabelCosts:
    """Costs of one zoo. ``unseen`` is the cost of calls that no user saw, made to be labelled, in
    the zoo's unit; ``judging`` is in dollars. ``saved`` is what routing saved against always
    calling the largest: the sum over the promises, without requests served as before. Those
    ``_today`` are of one day (UTC), as is ``largest_today``, the cost of the largest alone;
    ``largest_before`` is that of the day before."""

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
    """Read the costs by zoo; zoos without a request are omitted."""
    of = CALLS.c
    judging = (func.sum(of.cost), func.sum(case((of.day == today, of.cost), else_=0.0)))
    query = select(of.zoo, *judging).where(of.role == JUDGING).group_by(of.zoo)
    judged = {row[0]: tuple(row[1:]) for row in await connection.execute(query)}
    whole: dict[str, Tally] = defaultdict(Tally)
    saved: dict[str, float] = defaultdict(float)
    by_level = await tallies(connection, "zoo", "service_level", source=REQUESTS)
    for (zoo, level), tally in by_level.items():
        whole[zoo] += tally
        saved[zoo] += 0.0 if is_before(level) else tally.saved
    is_recent = REQUESTS.c.day.in_((today, yesterday))
    days = await tallies(connection, "day", "zoo", source=REQUESTS, where=is_recent)
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


async def first_request(connection: AsyncConnection, zoo: str, today: date) -> datetime | None:
    """Find the time of the zoo's first request on that day (UTC)."""
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
    """Read the cost of unseen calls on a day, by zoo, for requests that were served as before."""
    found = REQUESTS.c
    is_before = (found.day == day) & found.service_level.endswith(BEFORE_SUFFIX)
    sampled = await tallies(connection, "zoo", source=REQUESTS, where=is_before)
    return {zoo: tally.exploration_cost for (zoo,), tally in sampled.items()}


# The cost of grading so far, from which a day's budget continues after a restart.


async def spent(connection: AsyncConnection, day: date) -> dict[str, Spent]:
    """Read what all judges spent on a day (UTC), by zoo; zoos without gradings are omitted."""
    start = datetime.combine(day, time.min, tzinfo=UTC)
    query = (
        select(requests.c.zoo, func.count(), func.coalesce(func.sum(gradings.c.cost), 0.0))
        .select_from(gradings)
        .join(requests, requests.c.request_id == gradings.c.request_id)
        .where(gradings.c.created_at >= start, gradings.c.created_at < start + timedelta(days=1))
        .group_by(requests.c.zoo)
    )
    found = await connection.execute(query)
    return {zoo: Spent(day, count, dollars) for zoo, count, dollars in found}
