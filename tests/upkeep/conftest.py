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
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.deciding.decider import Engine
from litellm_messplus.restore import restore
from litellm_messplus.store import log
from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.upkeep import prune as pruning
from tests.support.configured_log import configuration, engines_of, sqlite, write_log
from tests.support.folding import build_journal
from tests.support.patience import until_it_holds
from tests.support.summing import rewrite_projections

Damage = Callable[..., None]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only these tests read the log."""
    monkeypatch.setattr(pruning, "SETTLE_SECONDS", 0.0)
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


@pytest.fixture
def sums_follow(stored: Path) -> Callable[[], None]:
    """Makes the sums what the log says, as if what was changed by hand had been written so."""

    async def follow() -> None:
        engine = create_engine(sqlite(stored))
        await rewrite_projections(engine)
        await engine.dispose()

    return lambda: asyncio.run(follow())


# A zoo of three models, and its engine as workers have it.

PRICES = {"small": 1e-6, "medium": 4e-6, "large": 2e-5}


def one_zoo(database: Path, **zoo: object) -> dict[str, Any]:
    """The configuration of a proxy with one zoo, on a database."""
    return {
        "model_list": [
            {
                "model_name": "zoo",
                "litellm_params": {"model": f"openai/{name}"},
                "model_info": {
                    "input_cost_per_token": price,
                    "output_cost_per_token": price,
                    "messplus": {"candidate": name},
                },
            }
            for name, price in PRICES.items()
        ],
        "messplus": {"database": sqlite(database), "zoos": {"zoo": {"alpha": 0.75, **zoo}}},
    }


def url_of(config: Path) -> str:
    found: str = yaml.safe_load(config.read_text())["messplus"]["database"]
    return found


def _opened(config: Path) -> tuple[Engine, AsyncEngine]:
    given = yaml.safe_load(config.read_text())
    return engines_of(given)["zoo"], create_engine(given["messplus"]["database"])


async def started(config: Path) -> Engine:
    """The engine as a proxy with that configuration would start it."""
    engine, opened = _opened(config)
    await restore(opened, {"zoo": engine})
    await opened.dispose()
    return engine


async def followed(config: Path, change: Callable[[], object]) -> Engine:
    """The engine of a worker that was running while the log was changed."""
    engine, opened = _opened(config)
    await migrate(opened)
    journal = build_journal(opened, engine, position=await restore(opened, {"zoo": engine}))
    journal.start()
    await asyncio.to_thread(change)
    head = await log.head(opened)
    assert head > 0
    await until_it_holds(lambda: journal.position == head)
    await journal.close()
    await opened.dispose()
    return engine
