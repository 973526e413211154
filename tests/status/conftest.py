"""The seeded database, made once, and what is read from it."""

import asyncio
from pathlib import Path

import pytest

from litellm_messplus.figures.figure import Plain
from litellm_messplus.status.build import status_of
from tests.support.history import History, migrated
from tests.support.seeded import seeded

WINDOW = 100


@pytest.fixture(scope="session")
def recorded() -> History:
    return seeded()


@pytest.fixture(scope="session")
def seeded_log(tmp_path_factory: pytest.TempPathFactory, recorded: History) -> Path:
    path = tmp_path_factory.mktemp("status") / "a #1%.db"
    migrated(path, recorded)
    return path


@pytest.fixture(scope="session")
def status(seeded_log: Path) -> Plain:
    return read(seeded_log, WINDOW)


def read(path: Path, window: int = WINDOW) -> Plain:
    """The status of a SQLite file."""
    return asyncio.run(status_of(f"sqlite+aiosqlite:///{path}", window))
