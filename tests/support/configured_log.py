"""A proxy's configuration, and a log that such a proxy wrote."""

from pathlib import Path
from typing import Any

from litellm_messplus.core.engine import Engine
from litellm_messplus.encoders.lookup import load_encoder
from litellm_messplus.restore import keep, restore
from litellm_messplus.serving.deployments.index import build_zoos
from litellm_messplus.settings.load import load_settings
from litellm_messplus.store import log
from litellm_messplus.store.database import create_engine, migrate
from tests.support.builders import traffic

POLICIES = {"zoo": "adaptive", "old": "paper"}
"""The zoos, by policy."""
REQUESTS = 40


def sqlite(path: Path) -> str:
    return f"sqlite+aiosqlite:///{path}"


def configuration(database: str) -> dict[str, Any]:
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
            "database": database,
            "encoder": "tests.support.silent_pairs:SilentPairs",
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


async def write_log(url: str) -> None:
    """A log with the snapshots of three quarters of the way."""
    config = configuration(url)
    database = create_engine(config["messplus"]["database"])
    await migrate(database)
    records = [record for zoo in POLICIES for record in traffic(REQUESTS, prefix=zoo, zoo=zoo)]
    cut = len(records) * 3 // 4
    await log.append(database, records[:cut])
    for engine in (await started(config)).values():
        await keep(database, engine, cut)
    await log.append(database, records[cut:])
    await database.dispose()
