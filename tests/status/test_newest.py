"""What the status says of the newest request, where that one could not go to all candidates."""

from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.status.reading import newest
from litellm_messplus.store import log
from litellm_messplus.store.database import create_engine, migrate
from tests.support.builders import LARGE, MEDIUM, SMALL, request


@pytest.fixture
async def empty(tmp_path: Path) -> AsyncEngine:
    engine = create_engine(f"sqlite+aiosqlite:///{tmp_path / 'messplus.db'}")
    await migrate(engine)
    return engine


async def test_the_largest_is_that_of_the_newest_request_that_all_could_take(
    empty: AsyncEngine,
) -> None:
    gated = request(
        "gated",
        expected_t=2,
        queue=3.0,
        eligible=(SMALL, MEDIUM),
        largest=MEDIUM,
        estimated_cost={SMALL: 1.0, MEDIUM: 2.0},
    )
    await log.append(empty, [request("free"), gated])
    async with empty.connect() as connection:
        (found,) = (await newest(connection)).values()
    await empty.dispose()

    assert (found.largest, found.queue) == (LARGE, 3.0)


async def test_without_any_such_request_it_is_that_of_the_newest(empty: AsyncEngine) -> None:
    await log.append(empty, [request("gated", eligible=(MEDIUM,), largest=MEDIUM)])
    async with empty.connect() as connection:
        (found,) = (await newest(connection)).values()
    await empty.dispose()

    assert found.largest == MEDIUM
