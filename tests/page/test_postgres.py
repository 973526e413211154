"""The page shows the same of a log on Postgres as on SQLite."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from litellm_messplus.inspecting.listing import Given, Wanted, list_requests
from litellm_messplus.page.charts import read_models, read_series, read_spend, read_uses, span_of
from litellm_messplus.page.sign_ins import Kind, SignIns
from litellm_messplus.store.database import create_engine, migrate
from tests.page.seeded import ZOO, fill
from tests.support import postgres
from tests.support.summing import rounded

UNTIL = datetime.now(UTC) - timedelta(minutes=1)


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Postgres]:
    with postgres.postgres_server() as running:
        yield running


async def shown(url: str) -> dict[str, Any]:
    """All that the page reads of a log that is made there."""
    database = create_engine(url)
    await migrate(database)
    await fill(database, 600, UNTIL)
    async with database.connect() as connection:
        wanted = Wanted(ZOO, "default", verdict=Given.UNSATISFIED, key="3", is_exploration=False)
        found: dict[str, Any] = {
            f"{days} days": await read_series(connection, ZOO, "default", span_of(days, UNTIL))
            for days in (1, 7, 30, 365)
        }
        found["newest"] = await read_series(connection, ZOO, "gold", None)
        found["models"] = await read_models(connection, ZOO)
        found["uses"] = await read_uses(connection, ZOO, "default", span_of(30, UNTIL))
        found["spend"] = await read_spend(connection, ZOO, "default")
        found["listed"] = (await list_requests(connection, wanted))["requests"]
    sign_ins = SignIns(database)
    session = await sign_ins.redeem(await sign_ins.new(Kind.CODE))
    assert session is not None
    found["is open"] = await sign_ins.is_open(session)
    await database.dispose()
    return {name: rounded(each, 9) for name, each in found.items()}


def test_it_says_the_same(server: postgres.Postgres, tmp_path: Path) -> None:
    of_sqlite = asyncio.run(shown(f"sqlite+aiosqlite:///{tmp_path / 'messplus.db'}"))
    of_postgres = asyncio.run(shown(server.database()))

    assert of_postgres == of_sqlite
    assert of_sqlite["listed"]
