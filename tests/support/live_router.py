"""The plugin beside LiteLLM's own router, whose models a test adds, edits and removes."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import litellm
import pytest

from litellm_messplus.deciding.decider import Engine
from litellm_messplus.prediction.hashed_ngrams import HashedNgrams
from litellm_messplus.proxy.composition import Parts
from litellm_messplus.proxy.deployments.index import configured_zoos
from litellm_messplus.proxy.plugin import MessplusPlugin
from litellm_messplus.settings.load import load_settings
from litellm_messplus.store import log
from litellm_messplus.store.database import create_engine, migrate
from tests.support import litellm_router
from tests.support.in_process import url
from tests.support.patience import PATIENT, until_it_holds

Deployment = dict[str, Any]


def deployment(model: str, price: float, group: str = "zoo", **info: Any) -> Deployment:
    """One deployment of a model, whose id is the model's name unless it is given."""
    return {
        "model_name": group,
        "litellm_params": {"model": f"openai/{model}", "api_key": "none"},
        "model_info": {
            "id": model,
            "input_cost_per_token": price,
            "output_cost_per_token": price,
            **info,
        },
    }


SMALL, LARGE, NEW = deployment("small", 1e-6), deployment("large", 1e-5), deployment("new", 1e-7)


class LiveProxy:
    """What LiteLLM does with the plugin up to the choice of a deployment."""

    def __init__(self, plugin: MessplusPlugin, router: litellm.Router) -> None:
        self.plugin, self.router = plugin, router
        self._calls = 0

    @property
    def engine(self) -> Engine:
        return self.plugin.engines["zoo"]

    @property
    def counters(self) -> dict[str, int]:
        return self.plugin.counters.as_dict()

    async def choose(self, model: str = "zoo", **metadata: Any) -> list[str]:
        """Ids of the deployments that LiteLLM would load-balance between, of one request."""
        self._calls += 1
        arguments = {
            "litellm_call_id": str(self._calls),
            "litellm_logging_obj": SimpleNamespace(call_type="acompletion"),
            "metadata": {"user_api_key_hash": "key", **metadata},
        }
        messages = [{"role": "user", "content": "What is this?"}]
        return await litellm_router.healthy(self.router, model, arguments, messages=messages)

    def put(self, given: Deployment) -> None:
        """Add a deployment, or put it in the place of the one of its id, as LiteLLM's reconcile
        does."""
        litellm_router.put(self.router, given)

    def remove(self, identity: str) -> None:
        litellm_router.remove(self.router, identity)

    async def swept(self) -> None:
        """Let the plugin look at the router, and the log be folded in."""
        await self.plugin.parts.live.sweep()
        await self.follow()

    async def follow(self) -> None:
        """Fold in what is in the log."""
        journal = self.plugin.parts.journal
        await journal.flush()
        journal.follow()
        head = await log.head(self.plugin.parts._database)
        await until_it_holds(lambda: journal.position >= head)


@asynccontextmanager
async def proxy(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    deployments: Sequence[Deployment] = (SMALL, LARGE),
    zoo: dict[str, Any] | None = None,
    config: dict[str, Any] | None = None,
    **router_settings: Any,
) -> AsyncIterator[LiveProxy]:
    """A worker over a database in ``folder``, which several may share."""
    whole: dict[str, Any] = {
        "model_list": list(deployments),
        "router_settings": router_settings,
        "messplus": {
            "database": url(folder),
            "deadline_seconds": PATIENT,
            "zoos": {"zoo": {"alpha": 0.8, **(zoo or {})}},
        },
        **(config or {}),
    }
    settings = load_settings(whole)
    encoder = HashedNgrams()
    engines = {
        name: Engine(found, encoder, seed=0)
        for name, found in configured_zoos(settings, whole).items()
    }
    database = create_engine(settings.database)
    await migrate(database)
    plugin = MessplusPlugin(Parts(settings, encoder, engines, database))
    router = litellm.Router(model_list=list(deployments), **router_settings)
    monkeypatch.setattr(plugin.parts.gates, "_router", lambda: router)
    monkeypatch.setattr(plugin.parts.live, "_router", lambda: router)
    monkeypatch.setattr(litellm, "callbacks", [plugin])
    plugin.start()
    try:
        yield LiveProxy(plugin, router)
    finally:
        await plugin.close()
