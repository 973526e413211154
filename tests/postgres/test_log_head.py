"""The head of the log on Postgres: one that is behind its records is moved up to them."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.store import log
from litellm_messplus.upkeep.verify import verify
from tests.support.builders import label, request, served_call, traffic


async def test_a_head_behind_the_log_moves_up(database: AsyncEngine, database_url: str) -> None:
    await log.append(database, traffic(20))
    head = await log.head(database)
    async with database.begin() as connection:
        await connection.execute(text("UPDATE log_head SET position = position - 12"))

    assert await log.mend_head(database) == head - 12
    assert await log.mend_head(database) is None

    assert await log.head(database) == head
    await log.append(database, [request("new"), served_call("new"), label("new")])
    assert (await verify(database_url)).faults == ()


async def test_a_record_is_known_by_its_id(database: AsyncEngine) -> None:
    await log.append(database, [request(), served_call(), label()])
    logged = [await log.is_logged(database, each) for each in (request(), served_call(), label())]
    assert logged == [True, True, True]
    assert not await log.is_logged(database, label("r2"))
