"""The list of requests: every filter does what its name states, and none reads the whole log."""

from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.inspecting import listing
from litellm_messplus.inspecting.listing import SHOWN, Given, Wanted, list_requests
from litellm_messplus.store.database import create_engine
from tests.page.seeded import LARGE, ZOO


async def listed(database: AsyncEngine, **wanted: Any) -> dict[str, Any]:
    async with database.connect() as connection:
        return await list_requests(connection, Wanted(ZOO, "default", **wanted))


async def every(database: AsyncEngine, **wanted: Any) -> list[dict[str, Any]]:
    """All of them, answer by answer."""
    rows: list[dict[str, Any]] = []
    before = None
    for _ in range(10_000):
        found = await listed(database, before=before, **wanted)
        rows += found["requests"]
        before = found["before"]
        if before is None:
            return rows
    raise AssertionError("there is no end of it")


async def test_the_newest_come_first(database: AsyncEngine) -> None:
    found = await listed(database)

    times = [row["created_at"] for row in found["requests"]]
    assert len(times) == SHOWN
    assert times == sorted(times, reverse=True)
    assert {row["zoo"] for row in found["requests"]} == {ZOO}


async def test_answers_go_on_where_the_last_ended(database: AsyncEngine) -> None:
    ids = [row["request_id"] for row in await every(database)]

    assert len(ids) == len(set(ids)) > 2000
    assert ids == sorted(ids, reverse=True)


@pytest.mark.parametrize(
    ("wanted", "holds"),
    [
        ({"model": LARGE}, lambda row: LARGE in (row["chosen"], row["served"])),
        ({"verdict": Given.SATISFIED}, lambda row: row["satisfaction"] == 1.0),
        ({"verdict": Given.UNSATISFIED}, lambda row: row["satisfaction"] == 0.0),
        ({"verdict": Given.NONE}, lambda row: row["satisfaction"] is None),
        ({"key": "3333"}, lambda row: row["key_hash"].startswith("3333")),
        ({"is_exploration": True}, lambda row: row["is_exploration"]),
        ({"is_exploration": False}, lambda row: not row["is_exploration"]),
    ],
    ids=["model", "satisfied", "unsatisfied", "no verdict", "key", "exploration", "no exploration"],
)
async def test_a_filter_gives_all_that_it_names_and_no_other(
    database: AsyncEngine, wanted: dict[str, Any], holds: Any
) -> None:
    found = await every(database, **wanted)
    expected = [row for row in await every(database) if holds(row)]

    assert found
    assert found == expected


async def test_those_served_as_before_are_listed_too(watched_url: str) -> None:
    engine = create_engine(watched_url)
    found = await listed(engine)
    await engine.dispose()

    assert len(found["requests"]) == SHOWN
    assert {row["arm"] for row in found["requests"]} == {"before"}


async def test_a_pattern_in_a_key_is_only_text(database: AsyncEngine) -> None:
    assert await every(database, key="%") == []
    assert await every(database, key="_333") == []


async def test_what_nothing_passes_is_looked_for_only_so_far_back(
    database: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "LOOK_BACK", 100)
    newest = (await listed(database))["before"]
    assert newest is not None

    found = await listed(database, model="no such model", before=newest)

    assert found["requests"] == []
    assert found["before"] == newest - 100
