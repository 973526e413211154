"""What judges and users said of the same calls, counted. Runs alike on SQLite and Postgres."""

from typing import Any

from sqlalchemy import and_, case, column, func, select, table
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.labels.agreement import Agreement
from litellm_messplus.store.tables import gradings, requests

WINDOW = 1000
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
    connection: AsyncConnection, window: int = WINDOW
) -> dict[tuple[str, str], Agreement]:
    """By zoo and judge (the model group), over the newest ``window`` calls of each among the newest
    ``LOOKED_AT`` gradings; a pair without such calls is left out."""
    judged, said = LABELS.alias("judged"), LABELS.alias("said")
    graded = (
        select(gradings.c.request_id, gradings.c.judge)
        .where(gradings.c.status == "graded")
        .order_by(gradings.c.position.desc())
        .limit(LOOKED_AT)
        .subquery("graded")
    )
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
        select(
            pairs.c.zoo,
            pairs.c.judge,
            *agreement_counts(yes, user),
        )
        .where(pairs.c.place <= window)
        .group_by(pairs.c.zoo, pairs.c.judge)
    )
    return {(row[0], row[1]): Agreement(*row[2:]) for row in await connection.execute(query)}


def agreement_counts(judge: Any, user: Any) -> list[Any]:
    """The fields of an `Agreement`, from the conditions that judge and user are satisfied."""
    cells = (judge & user, judge & ~user, ~judge & user, ~judge & ~user)
    return [count_where(cell) for cell in cells]


def count_where(condition: Any) -> Any:
    """How many rows meet it."""
    return func.sum(case((condition, 1), else_=0))
