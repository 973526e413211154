"""Who wrote an answer, by the id that it went out with."""

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.store.rows import storable
from litellm_messplus.store.tables import calls, requests

Columns = tuple[str | None, str | None, str | None]
"""Candidate, deployment and model."""


async def author(engine: AsyncEngine, zoo: str, response_id: str) -> Columns | None:
    """Of the zoo's newest call that a model answered with that id: repetitions are passed over."""
    query = (
        select(calls.c.candidate, calls.c.deployment_id, calls.c.model)
        .join(requests, requests.c.request_id == calls.c.request_id)
        .where(
            calls.c.response_id == storable(response_id),
            calls.c.status == "success",
            calls.c.is_cache_hit.is_(False),
            requests.c.zoo == zoo,
        )
        .order_by(calls.c.position.desc())
        .limit(1)
    )
    async with engine.connect() as connection:
        found = (await connection.execute(query)).first()
    return None if found is None else (found.candidate, found.deployment_id, found.model)
