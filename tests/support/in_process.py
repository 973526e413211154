"""The real plugin without LiteLLM's proxy around it: what LiteLLM would call, the test calls."""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Table, select

from litellm_messplus.brain.brain import Brain
from litellm_messplus.core.encoder import Encoder
from litellm_messplus.core.engine import Engine
from litellm_messplus.core.hashed_ngrams import HashedNgrams
from litellm_messplus.serving import router
from litellm_messplus.serving.composition import Parts
from litellm_messplus.serving.deployments.index import configured_zoos
from litellm_messplus.serving.inside import BrainInside
from litellm_messplus.serving.plugin import MessplusPlugin
from litellm_messplus.serving.worker_hands import WorkerHands
from litellm_messplus.settings.load import load_settings
from litellm_messplus.settings.schema import MessplusSettings
from litellm_messplus.store.answered import read_conversation_key
from litellm_messplus.store.database import create_engine, migrate
from tests.support.patience import PATIENT


def deployment(
    model: str, price: float, identity: str = "", params: dict[str, Any] | None = None, **info: Any
) -> dict[str, Any]:
    return {
        "model_name": "zoo",
        "litellm_params": {"model": f"openai/{model}", **(params or {})},
        "model_info": {
            "id": identity or model,
            "input_cost_per_token": price,
            "output_cost_per_token": price,
            **info,
        },
    }


METADATA = ("metadata", "litellm_metadata")
DEPLOYMENTS = [deployment("small", 1e-7), deployment("large", 1e-5)]
NUMBERS: defaultdict[Path, Iterator[int]] = defaultdict(lambda: count(25))
"""The numbers of the requests in each folder, which are their ids: draws go by these, so a test
draws the same each time. From 25 on the first six of a zoo try nothing."""


@asynccontextmanager
async def running(
    folder: Path,
    zoo: dict[str, Any] | None = None,
    encoder: Encoder | None = None,
    deployments: Sequence[dict[str, Any]] = DEPLOYMENTS,
    sections: Mapping[str, Any] | None = None,
    **given: Any,
) -> AsyncIterator[MessplusPlugin]:
    """A plugin over ``deployments``; ``zoo`` are settings of the zoo, ``given`` those of the
    plugin, ``sections`` the rest of the proxy's configuration."""
    config = {
        **(sections or {}),
        "model_list": list(deployments),
        "messplus": {
            "database": url(folder),
            "zoos": {"zoo": {"alpha": 0.8, **(zoo or {})}},
            "deadline_seconds": PATIENT,
            **given,
        },
    }
    settings = load_settings(config)
    encoder = encoder or HashedNgrams()
    engines = {
        name: Engine(found, encoder, seed=0)
        for name, found in configured_zoos(settings, config).items()
    }
    database = create_engine(settings.database)
    await migrate(database)
    plugin = MessplusPlugin(inside(Brain(settings, encoder, engines, database), settings))
    brain_of(plugin.parts).line_log.begin(await read_conversation_key(database))
    plugin.start()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(router, "new_id", lambda: f"{next(NUMBERS[folder]):032x}")
        try:
            yield plugin
        finally:  # else the connections of a test that fails fail others
            await plugin.close()


def brain_of(parts: Parts) -> Brain:
    """The brain inside the worker's process."""
    assert isinstance(parts.way, BrainInside)
    return parts.way.brain


def inside(brain: Brain, settings: MessplusSettings) -> Parts:
    """A worker with the brain in its process."""
    hands = WorkerHands({name: engine.zoo for name, engine in brain.engines.items()})
    return Parts(settings, BrainInside(brain, hands))


@dataclass(eq=False)
class LoggingObject:
    """LiteLLM's object of a request, which is one for all of its attempts."""

    call_type: str


def call(call_id: str, call_type: str = "acompletion", **kwargs: Any) -> dict[str, Any]:
    """The arguments of a request as LiteLLM's router hands them to a filter."""
    return {
        "litellm_call_id": call_id,
        "litellm_logging_obj": LoggingObject(call_type),
        "metadata": {"user_api_key_hash": "key"},
        **kwargs,
    }


def log_event(arguments: dict[str, Any], deployment_id: str, **payload: Any) -> dict[str, Any]:
    """What LiteLLM tells at the end of that request, served by that deployment."""
    found = {"model_id": deployment_id, "model": deployment_id, "startTime": 1.0, "endTime": 2.0}
    return {
        "litellm_call_id": arguments["litellm_call_id"],
        "litellm_params": {name: arguments[name] for name in METADATA if name in arguments},
        "standard_logging_object": {**found, **payload},
    }


def url(folder: Path) -> str:
    return f"sqlite+aiosqlite:///{folder}/messplus.db"


async def written(folder: Path, table: Table) -> list[Any]:
    """The rows of the log, in its order."""
    database = create_engine(url(folder))
    async with database.connect() as connection:
        found = await connection.execute(select(table).order_by(table.c.position))
        rows = [SimpleNamespace(**row) for row in found.mappings()]
    await database.dispose()
    return rows
