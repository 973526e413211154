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

from litellm_messplus.encoders.lookup import load_encoder
from litellm_messplus.engine import Engine
from litellm_messplus.proxy.deployments.index import build_zoos
from litellm_messplus.restore import keep, restore
from litellm_messplus.settings.load import load_settings
from litellm_messplus.store import log
from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.store.summaries import SUMS
from tests.support.builders import traffic

POLICIES = {"zoo": "adaptive", "old": "paper"}
"""The zoos, by policy."""
REQUESTS = 40
Damage = Callable[..., None]


def configuration(database: Path) -> dict[str, Any]:
    return {
        "model_list": [
            {
                "model_name": zoo,
                "litellm_params": {"model": f"openai/{name}"},
                "model_info": {
                    "input_cost_per_token": price,
                    "output_cost_per_token": price,
                    "messplus": {"candidate": name},
                },
            }
            for zoo in POLICIES
            for name, price in {"small": 1e-6, "medium": 4e-6, "large": 2e-5}.items()
        ],
        "messplus": {
            "database": f"sqlite+aiosqlite:///{database}",
            "encoder": "tests.upkeep.silent_pairs:SilentPairs",
            "zoos": {
                zoo: {"alpha": 0.6, "policy": policy, "service_levels": {"gold": {"alpha": 0.8}}}
                for zoo, policy in POLICIES.items()
            },
        },
    }


def engines_of(config: dict[str, Any]) -> dict[str, Engine]:
    settings = load_settings(config)
    encoder = load_encoder(settings.encoder)
    zoos = build_zoos(settings, config["model_list"])
    return {name: Engine(zoo, encoder, settings.seed) for name, zoo in zoos.items()}


async def started(config: dict[str, Any]) -> dict[str, Engine]:
    """The engines as a proxy with that configuration starts them."""
    engines, database = engines_of(config), create_engine(config["messplus"]["database"])
    await restore(database, engines)
    await database.dispose()
    return engines


async def _write(path: Path) -> None:
    """A log with the snapshots of three quarters of the way."""
    config = configuration(path)
    database = create_engine(config["messplus"]["database"])
    await migrate(database)
    records = [record for zoo in POLICIES for record in traffic(REQUESTS, prefix=zoo, zoo=zoo)]
    cut = len(records) * 3 // 4
    await log.append(database, records[:cut])
    for engine in (await started(config)).values():
        await keep(database, engine, cut)
    await log.append(database, records[cut:])
    await database.dispose()


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("upkeep") / "messplus.db"
    asyncio.run(_write(path))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


@pytest.fixture
def database(written: Path, tmp_path: Path) -> Path:
    """A copy to be damaged."""
    path = tmp_path / "messplus.db"
    shutil.copy(written, path)
    return path


@pytest.fixture
def config(database: Path, tmp_path: Path) -> Path:
    path = tmp_path / "proxy_config.yaml"
    path.write_text(yaml.safe_dump(configuration(database)))
    return path


@pytest.fixture
def damage(database: Path) -> Damage:
    """Runs SQL on it, as somebody would by hand."""

    def run(sql: str, *parameters: Any) -> None:
        with closing(sqlite3.connect(database)) as connection:
            changed = connection.execute(sql, parameters)
            assert changed.rowcount > 0, "this damages nothing"
            connection.commit()

    return run


@pytest.fixture
def sums_follow(database: Path) -> Callable[[], None]:
    """Makes the sums what the log says, as if what was changed by hand had been written so."""

    def follow() -> None:
        with closing(sqlite3.connect(database)) as connection:
            for table in SUMS:
                names = ", ".join(column.name for column in table.columns)
                connection.execute(f"DELETE FROM {table.name}")
                connection.execute(
                    f"INSERT INTO {table.name} ({names}) SELECT {names} FROM logged_{table.name}"
                )
            connection.commit()

    return follow
