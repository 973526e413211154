"""The audit by the judge, counted: what it and the users said of the requests that it graded.

Runs alike on SQLite and Postgres, along the indexes of `gradings` and of the calls' labels.
"""

from sqlalchemy import and_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.labels.agreement import Agreement
from litellm_messplus.labels.response_bias import Audit
from litellm_messplus.store.agreement import LABELS, SATISFIED, agreement_counts, count_where
from litellm_messplus.store.tables import gradings, requests

WINDOW = 10_000
"""The newest gradings: how users behave may change."""


async def audits(connection: AsyncConnection, window: int = WINDOW) -> dict[tuple[str, str], Audit]:
    """By zoo and service level, over the newest ``window`` gradings of all; levels without are left
    out. A level has a rate of its own at which it is graded, so its levels do not add up to a
    uniform sample of a zoo."""
    newest = (
        select(gradings.c.request_id)
        .where(gradings.c.status == "graded")
        .order_by(gradings.c.position.desc())
        .limit(window)
        .subquery()
    )
    judged, said = LABELS.alias("judged"), LABELS.alias("said")
    yes, user = judged.c.value >= SATISFIED, said.c.value >= SATISFIED
    served = requests.c.request_id + ".0"
    query = (
        select(
            requests.c.zoo,
            requests.c.service_level,
            *agreement_counts(yes, user),
            count_where(yes & said.c.value.is_(None)),
            count_where(~yes & said.c.value.is_(None)),
        )
        .select_from(requests)
        .join(judged, and_(judged.c.call_id == served, judged.c.kind == "judge"))
        .outerjoin(said, and_(said.c.call_id == served, said.c.kind == "feedback"))
        .where(requests.c.request_id.in_(select(newest.c.request_id)))
        .group_by(requests.c.zoo, requests.c.service_level)
    )
    return {
        (row[0], row[1]): Audit(Agreement(*row[2:6]), row[6], row[7])
        for row in await connection.execute(query)
    }
