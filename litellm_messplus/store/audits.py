"""The newest gradings of judges, counted: how far judges and users agree, which place judges
prefer, and what grading costs. Runs alike on SQLite and Postgres."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from sqlalchemy import Subquery, and_, case, column, func, select, table
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.labels.agreement import Agreement
from litellm_messplus.labels.judge.budget import Spent
from litellm_messplus.labels.parity.position import PositionBias
from litellm_messplus.store.tables import gradings, requests
from litellm_messplus.vocabulary import Preferred

# What judges and users said of the same calls.

AGREEMENT_WINDOW = 1000
"""The newest calls that both judged: an old rubric, or an old model, is forgotten."""
LOOKED_AT = 3_000
"""The newest gradings, of all zoos, among which those calls are looked for: so many users answer
that they are found there, and however long the log is, no more of it is read."""
SATISFIED = 0.5
LABELS = table(
    "current_labels", *map(column, ("call_id", "request_id", "created_at", "kind", "value"))
)
"""The view, as far as it is read here. Labels of weight 0 are in it: what does not count is
measured on."""


async def agreements(
    connection: AsyncConnection, window: int = AGREEMENT_WINDOW
) -> dict[tuple[str, str], Agreement]:
    """Read the agreements by zoo and judge (the model group), over the newest ``window`` calls of
    each among the newest ``LOOKED_AT`` gradings; a pair without such calls is left out."""
    judged, said = LABELS.alias("judged"), LABELS.alias("said")
    graded = _newest(LOOKED_AT, gradings.c.status == "graded")
    each = (requests.c.zoo, graded.c.judge)
    pairs = (
        select(
            *each,
            (judged.c.value >= SATISFIED).label("judge_satisfied"),
            (said.c.value >= SATISFIED).label("user_satisfied"),
            func.row_number()
            .over(partition_by=each, order_by=(judged.c.created_at.desc(), judged.c.call_id.desc()))
            .label("place"),
        )
        .select_from(graded)
        .join(requests, requests.c.request_id == graded.c.request_id)
        .join(judged, and_(judged.c.request_id == graded.c.request_id, judged.c.kind == "judge"))
        .join(said, and_(said.c.call_id == judged.c.call_id, said.c.kind == "feedback"))
        .subquery()
    )
    yes, user = pairs.c.judge_satisfied, pairs.c.user_satisfied
    query = (
        select(pairs.c.zoo, pairs.c.judge, *agreement_counts(yes, user))
        .where(pairs.c.place <= window)
        .group_by(pairs.c.zoo, pairs.c.judge)
    )
    return {(row[0], row[1]): Agreement(*row[2:]) for row in await connection.execute(query)}


def _newest(most: int, *conditions: Any) -> Subquery:
    """Query the newest gradings that meet the conditions."""
    columns = (gradings.c[name] for name in ("request_id", "judge", "position", "preferred"))
    newest = select(*columns).where(*conditions).order_by(gradings.c.position.desc())
    return newest.limit(most).subquery()


def agreement_counts(judge: Any, user: Any) -> list[Any]:
    """Count the fields of an `Agreement`, from the conditions that judge and user are satisfied."""
    cells = (judge & user, judge & ~user, ~judge & user, ~judge & ~user)
    return [count_where(cell) for cell in cells]


def count_where(condition: Any) -> Any:
    """Count the rows that meet it."""
    return func.sum(case((condition, 1), else_=0))


# Which place the answers had that judges preferred.

PREFERENCE_WINDOW = 1000
"""The newest comparisons of each judge: an old model is forgotten."""


async def preferences(
    connection: AsyncConnection, window: int = PREFERENCE_WINDOW
) -> dict[tuple[str, str], PositionBias]:
    """Count which places each judge preferred, by zoo and judge, over its newest ``window``
    comparisons among the newest ``LOOKED_AT`` gradings; those without any are left out."""
    newest = _newest(LOOKED_AT)
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


# What grading has cost: the budget of a day starts from here, whatever ended the process.


async def spent(connection: AsyncConnection, day: date) -> dict[str, Spent]:
    """Read, by zoo, what was spent on a day (UTC), whichever model graded; zoos without are left
    out."""
    start = datetime.combine(day, time.min, tzinfo=UTC)
    query = (
        select(requests.c.zoo, func.count(), func.coalesce(func.sum(gradings.c.cost), 0.0))
        .select_from(gradings)
        .join(requests, requests.c.request_id == gradings.c.request_id)
        .where(gradings.c.created_at >= start, gradings.c.created_at < start + timedelta(days=1))
        .group_by(requests.c.zoo)
    )
    found = await connection.execute(query)
    return {zoo: Spent(day, asked, dollars) for zoo, asked, dollars in found}
