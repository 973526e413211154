"""Deterministic property tests, and a real SQLite database to each test that asks for one."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import settings
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.store.database import create_engine, migrate

settings.register_profile("unit", deadline=None, derandomize=True, database=None, max_examples=60)
settings.load_profile("unit")


@pytest.fixture
def database_url(tmp_path: Path) -> str:
    return f"sqlite+aiosqlite:///{tmp_path / 'messplus.db'}"


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An empty log in a file, at this code's version."""
    engine = create_engine(database_url)
    await migrate(engine)
    yield engine
    await engine.dispose()
