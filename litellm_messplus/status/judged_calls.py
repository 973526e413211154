"""What the calibration asks the log: the newest judged calls, and what was predicted of them."""

from collections.abc import AsyncIterator
from typing import Any

from sqlalchemy import Select, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.status.prequential import JudgedCall
from litellm_messplus.status.queries import VERDICTS
from litellm_messplus.store.tables import calls, requests

JUDGED_CALLS = 5_000
"""The newest judged calls, of all zoos together, that the calibration is of."""
WARM_UP = 1_000
"""Judged calls before those: the running means start from them, as the predictor did."""
AT_ONCE = 50
"""Rows between two turns of the event loop, which serves requests meanwhile."""


async def judged_calls(
    connection: AsyncConnection, count: int = JUDGED_CALLS, warm_up: int = WARM_UP
) -> AsyncIterator[JudgedCall]:
    """The newest judged calls, in the order of their decisions; those of the warm-up unscored.

    Reads ``count`` + ``warm_up`` calls at the most, however long the log is.
    """
    verdict = _verdicts().limit(count + warm_up).subquery("verdict")
    oldest_left_out = _verdicts().with_only_columns(VERDICTS.c.position).offset(count).limit(1)
    scored_after = func.coalesce(oldest_left_out.scalar_subquery(), 0)
    query = (
        select(
            requests.c.zoo,
            calls.c.candidate,
            requests.c.position,
            calls.c.position.label("ended_at"),
            verdict.c.position.label("judged_at"),
            requests.c.estimated_satisfaction,
            verdict.c.value,
            verdict.c.weight,
            (verdict.c.position > scored_after).label("is_scored"),
        )
        .select_from(verdict)
        .join(calls, calls.c.call_id == verdict.c.call_id)
        .join(requests, requests.c.request_id == calls.c.request_id)
        .where(
            calls.c.status == "success",
            calls.c.candidate.is_not(None),
            calls.c.is_cache_hit.is_(False),  # what was learned from was learned once
        )
        .order_by(requests.c.position, calls.c.position)
    )
    found = await connection.stream(query, execution_options={"yield_per": AT_ONCE})
    async for rows in found.partitions():
        for row in rows:
            predicted = row.estimated_satisfaction.get(row.candidate)
            if predicted is not None:
                known_at = max(row.ended_at, row.judged_at)
                yield JudgedCall(
                    row.zoo, row.candidate, row.position, known_at, predicted, row.value,
                    row.weight, bool(row.is_scored),
                )  # fmt: skip


def _verdicts() -> Select[Any]:
    """Of each call the one that counts, the newest first: found along the index of positions."""
    return select(
        VERDICTS.c.call_id, VERDICTS.c.position, VERDICTS.c.value, VERDICTS.c.weight
    ).order_by(VERDICTS.c.position.desc())
