"""A proxy's configuration, and a database with a log that such a proxy wrote."""

import asyncio
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from litellm_messplus.upkeep import prune as pruning
from tests.support.configured_log import configuration, sqlite, write_log

Damage = Callable[..., None]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only these tests read the log."""
    monkeypatch.setattr(pruning, "PAUSE_SECONDS", 0.0)


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("upkeep") / "messplus.db"
    asyncio.run(write_log(sqlite(path)))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


@pytest.fixture
def stored(written: Path, tmp_path: Path) -> Path:
    """A copy to be damaged."""
    path = tmp_path / "messplus.db"
    shutil.copy(written, path)
    return path


@pytest.fixture
def config(stored: Path, tmp_path: Path) -> Path:
    path = tmp_path / "proxy_config.yaml"
    path.write_text(yaml.safe_dump(configuration(sqlite(stored))))
    return path


@pytest.fixture
def damage(stored: Path) -> Damage:
    """Runs SQL on it, as somebody would by hand."""

    def run(sql: str, *parameters: Any) -> None:
        with closing(sqlite3.connect(stored)) as connection:
            changed = connection.execute(sql, parameters)
            assert changed.rowcount != 0, "this damages nothing"
            connection.commit()

    return run
