"""Whether the log holds what was acknowledged, and is sound: read from the database afterwards."""

import asyncio
from collections.abc import Mapping

from sqlalchemy import text

from litellm_messplus.store.database import create_engine
from litellm_messplus.upkeep.verify import verify

NEWEST_LAST = "SELECT request_id, value FROM labels WHERE source = 'feedback' ORDER BY position"


def lost_labels(database: str, acknowledged: Mapping[str, float]) -> dict[str, float | None]:
    """The acknowledged labels that are not in the log with their value, with what is there."""
    found = asyncio.run(_labels(database))
    return {
        request_id: found.get(request_id)
        for request_id, value in acknowledged.items()
        if found.get(request_id) != value
    }


def what_is_wrong(database: str) -> tuple[str, ...]:
    """What `messplus verify` finds: nothing in a sound database."""
    return asyncio.run(verify(database)).faults


async def _labels(database: str) -> dict[str, float]:
    engine = create_engine(database)
    try:
        async with engine.connect() as connection:
            rows = (await connection.execute(text(NEWEST_LAST))).all()
    finally:
        await engine.dispose()
    return {str(request_id): float(value) for request_id, value in rows}
