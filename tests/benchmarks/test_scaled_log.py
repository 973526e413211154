"""The log that `benchmarks.scale` makes is one that the store could have written."""

import pytest
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from benchmarks.scaled_log import BLOCK, make_log
from litellm_messplus.store import history, log
from litellm_messplus.store.tables import requests
from litellm_messplus.upkeep.verify import verify
from tests.support.summing import assert_projections_are_the_logs


async def test_sums_order_references_are_a_logs(database: AsyncEngine, database_url: str) -> None:
    scaled = await make_log(database, 3 * BLOCK, "zoo")

    await assert_projections_are_the_logs(database)
    assert (await verify(database_url)).faults == ()
    assert await log.head(database) == scaled.position
    async with database.connect() as connection:
        newest = select(requests.c.request_id).order_by(requests.c.position.desc()).limit(1)
        assert (await connection.execute(newest)).scalar_one() == scaled.newest
        days = select(func.count(func.date(requests.c.created_at).distinct()))
        assert (await connection.execute(days)).scalar_one() >= 3
    assert await history.history(database, scaled.newest) is not None


async def test_a_length_that_is_no_multiple_of_the_block_is_refused(database: AsyncEngine) -> None:
    with pytest.raises(SystemExit, match="--requests: given 1500; allowed: a multiple of 1000"):
        await make_log(database, 1500, "zoo")
