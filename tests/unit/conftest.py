"""Deterministic property tests, and a real SQLite database to each test that asks for one."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import settings
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.zoo import Zoo
from tests.unit.builders import POLICIES, build_zoo

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


@pytest.fixture(params=POLICIES)
def zoo(request: pytest.FixtureRequest) -> Zoo:
    """The same zoo under each policy in turn."""
    return build_zoo(policy=request.param)
