"""The tables of sums say what the log says, after whatever was written in whatever batches."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, text
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.store.summaries import SUMS
from litellm_messplus.store.tables import (
    call_energy,
    calls,
    gradings,
    label_precedence,
    labels,
    requests,
)
from tests.unit.summing import assert_sums_are_the_logs, eventful, write

POSTGRES = "MESSPLUS_TEST_POSTGRES"
"""Names a URL of an empty Postgres database, where there is one to test on."""
LOGGED = (requests, calls, labels, gradings, call_energy, label_precedence)


@pytest.fixture(params=["sqlite", "postgres"])
async def summed(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AsyncEngine]:
    """An empty log at this code's version, on each database."""
    url = f"sqlite+aiosqlite:///{tmp_path / 'messplus.db'}"
    if request.param == "postgres":
        given = os.environ.get(POSTGRES)
        if given is None:
            pytest.skip(f"{POSTGRES} names no database")
        url = given
    engine = create_engine(url)
    await migrate(engine)
    await empty(engine)
    yield engine
    await engine.dispose()


async def empty(database: AsyncEngine) -> None:
    """As it was made."""
    async with database.begin() as connection:
        for table in (*LOGGED, *SUMS):
            await connection.execute(delete(table))
        await connection.execute(text("UPDATE log_head SET position = 0"))


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # it empties what it is given
@given(seed=st.integers(0, 10**6))
async def test_the_sums_are_the_logs_after_any_sequence(summed: AsyncEngine, seed: int) -> None:
    await empty(summed)
    await write(summed, eventful(8, seed), Random(seed))

    await assert_sums_are_the_logs(summed)
