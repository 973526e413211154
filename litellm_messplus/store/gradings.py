"""What grading has cost: the budget of a day starts from here, whatever ended the process."""

from datetime import UTC, date, datetime, time, timedelta

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.labels.judge.budget import Spent
from litellm_messplus.store.tables import gradings, requests


async def spent(connection: AsyncConnection, day: date) -> dict[str, Spent]:
    """By zoo, what was spent on a day (UTC), whichever model graded; zoos without are left out."""
    start = datetime.combine(day, time.min, tzinfo=UTC)
    query = (
        select(
            requests.c.zoo,
            func.count(),
            func.coalesce(func.sum(gradings.c.cost), 0.0),
        )
        .select_from(gradings)
        .join(requests, requests.c.request_id == gradings.c.request_id)
        .where(gradings.c.created_at >= start, gradings.c.created_at < start + timedelta(days=1))
        .group_by(requests.c.zoo)
    )
    found = await connection.execute(query)
    return {zoo: Spent(day, asked, dollars) for zoo, asked, dollars in found}
