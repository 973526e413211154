"""Requests are erased and pruned on Postgres as on SQLite."""

from datetime import UTC, datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.records import RequestRecord
from litellm_messplus.restore import keep, restore
from litellm_messplus.store import log
from litellm_messplus.store.erasing import Owner
from litellm_messplus.upkeep.prune import erase, prune
from litellm_messplus.upkeep.verify import verify
from tests.support.builders import build_engine, traffic, with_columns
from tests.support.folding import bits, only_zoo
from tests.support.summing import assert_projections_are_the_logs


async def state_of(database: AsyncEngine) -> bytes:
    """What a start comes to, to the bit."""
    engine = build_engine()
    await restore(database, only_zoo(engine))
    return bits(engine)


async def test_no_row_of_the_key_is_found_and_a_start_goes_on_exactly(
    database: AsyncEngine, database_url: str
) -> None:
    records = [
        with_columns(each, key_hash="hers", tags=("hers",))
        if isinstance(each, RequestRecord)
        else each
        for each in traffic(20)
    ]
    await log.append(database, records)
    engine = build_engine()
    await keep(database, engine, await restore(database, only_zoo(engine)))

    assert (await erase(database_url, Owner(key="hers"), is_dry_run=True)).requests == 20
    assert (await erase(database_url, Owner(key="hers"))).requests == 20

    async with database.connect() as connection:
        query = "SELECT COUNT(*) FROM requests WHERE COALESCE(key_hash, CAST(tags AS TEXT)) > ''"
        assert (await connection.exec_driver_sql(query)).scalar_one() == 0
    assert await state_of(database) == bits(engine)
    await assert_projections_are_the_logs(database)


async def test_old_requests_go_and_starts_go_on(database: AsyncEngine, database_url: str) -> None:
    await log.append(database, traffic(20))
    engine = build_engine()
    await keep(database, engine, await restore(database, only_zoo(engine)))

    found = await prune(database_url, datetime.now(UTC) - timedelta(days=2))

    assert (found.requests, found.held) == (20, 0)
    assert (await verify(database_url)).faults == ()
    assert await state_of(database) == bits(engine)
