"""One real Postgres for all tests of this folder, and an empty database to each that asks."""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.store.database import create_engine, migrate
from tests.support.both_databases import server
from tests.support.postgres import Postgres

__all__ = ["server"]


@pytest.fixture
async def database_url(server: Postgres) -> str:
    return await server.new_database()


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An empty log at this code's version."""
    engine = create_engine(database_url)
    await migrate(engine)
    yield engine
    await engine.dispose()
