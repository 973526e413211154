"""Conversations that are counted as one, on Postgres as on SQLite."""

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.store import entries, log
from tests.support.builders import LARGE, SMALL
from tests.support.folding import bits, fold_all, read
from tests.support.summing import assert_projections_are_the_logs
from tests.support.whole_conversations import two_conversations


async def test_in_any_pages_it_is_the_same(
    database: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await log.append(database, two_conversations())
    head = await log.head(database)
    whole, state = await read(database, 0, head), bits(await fold_all(database))
    shares = [dict(entry["shares"]) for entry in whole if entry["kind"] == "Labelled"]
    assert shares[1] == pytest.approx({SMALL: 2 / 3, LARGE: 1 / 3})
    for page in (1, 5):
        monkeypatch.setattr(entries, "PAGE", page)
        assert await read(database, 0, head) == whole
        assert bits(await fold_all(database)) == state


async def test_the_sums_count_conversations_and_requests(database: AsyncEngine) -> None:
    await log.append(database, two_conversations())

    await assert_projections_are_the_logs(database)
    async with database.connect() as connection:
        found = await connection.exec_driver_sql(
            "SELECT SUM(requests), SUM(counted), SUM(judged) FROM request_sums"
        )
        assert tuple(found.one()) == (5, 2, 2)
