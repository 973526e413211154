"""What predicting and deciding take beside the calls themselves."""

from sqlalchemy import case, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.status.queries import Key, Start, within
from litellm_messplus.status.report import Overhead
from litellm_messplus.store.tables import calls, requests


async def overheads(connection: AsyncConnection, start: Start) -> dict[Key, Overhead]:
    """Over the requests of a window."""
    asked = requests.c
    predicting = func.coalesce(asked.encode_seconds, 0.0)
    query = (
        select(
            asked.zoo,
            asked.service_level,
            func.count(),
            func.sum(case((asked.encode_seconds.is_(None), 1), else_=0)),
            func.avg(predicting),
            func.avg(asked.decision_seconds - predicting),
            func.avg(calls.c.seconds),
            func.avg(asked.encode_joules),
        )
        .select_from(calls)
        .join(requests, asked.request_id == calls.c.request_id)
        .where(calls.c.role == "served", calls.c.seconds.is_not(None))
        .group_by(asked.zoo, asked.service_level)
    )
    query = within(query, calls.c.request_id, start)
    return {(row[0], row[1]): overhead(*row[2:]) for row in await connection.execute(query)}


def overhead(
    requests: int,
    late: int,
    predicting: float,
    deciding: float,
    call: float,
    joules: float | None,
) -> Overhead:
    """For the report: of so many requests, the means of what each part took."""
    deciding = max(deciding, 0.0)  # both are measured by one clock, but rounded
    whole = predicting + deciding + call or 1.0
    return Overhead(
        requests, late, predicting, deciding, call,
        predicting / whole, deciding / whole, call / whole, joules,
    )  # fmt: skip
