"""Fixtures of a database of each kind in turn: a file of SQLite, and one on a real Postgres."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.store.database import create_engine, migrate
from tests.support.postgres import Postgres, postgres_server


@pytest.fixture(scope="session")
def server() -> Iterator[Postgres]:
    with postgres_server() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgresql"])
def either_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite+aiosqlite:///{tmp_path / 'messplus.db'}"
    url: str = request.getfixturevalue("server").database()
    return url


@pytest.fixture
async def either(either_url: str) -> AsyncIterator[AsyncEngine]:
    """An empty log at this code's version."""
    engine = create_engine(either_url)
    await migrate(engine)
    yield engine
    await engine.dispose()
