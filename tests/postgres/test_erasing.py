"""One key's requests are erased on Postgres as on SQLite."""

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.records import RequestRecord
from litellm_messplus.restore import keep, restore
from litellm_messplus.store import log
from litellm_messplus.upkeep import prune as pruning
from litellm_messplus.upkeep.erase import Owner, dry_run, erase
from litellm_messplus.upkeep.verify import check_projections
from tests.support.builders import build_engine, traffic, with_columns
from tests.support.folding import bits, only_zoo


async def state_of(database: AsyncEngine) -> bytes:
    """What a start comes to, to the bit."""
    engine = build_engine()
    await restore(database, only_zoo(engine))
    return bits(engine)


async def test_no_row_of_the_key_is_found_and_a_start_goes_on_exactly(
    database: AsyncEngine, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "SETTLE_SECONDS", 0.0)
    records = [
        with_columns(each, key_hash="hers", tags=("hers",))
        if isinstance(each, RequestRecord)
        else each
        for each in traffic(20)
    ]
    await log.append(database, records)
    engine = build_engine()
    await keep(database, engine, await restore(database, only_zoo(engine)))

    assert (await dry_run(database_url, Owner(key="hers"), None)).erased == {"zoo": 20}
    assert (await erase(database_url, Owner(key="hers"), None)).erased == {"zoo": 20}

    async with database.begin() as connection:
        query = "SELECT COUNT(*) FROM requests WHERE COALESCE(key_hash, CAST(tags AS TEXT)) > ''"
        assert (await connection.exec_driver_sql(query)).scalar_one() == 0
        await connection.exec_driver_sql("DELETE FROM snapshots")
    assert await state_of(database) == bits(engine)
    assert {each.outcome.value for each in await check_projections(database)} == {"sound"}
