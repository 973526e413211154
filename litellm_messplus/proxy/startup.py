"""Starting inside the proxy: the configuration, the database, the engines, then the plugin.

LiteLLM imports its callbacks from a plain function while its event loop already runs, so what
must be awaited before the first request (migrations, restoring the state) runs in a thread with a
loop of its own.
"""

import asyncio
import os
import sys
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn, TypeVar

from threadpoolctl import threadpool_limits

from litellm_messplus.encoders.serving import load_for_requests
from litellm_messplus.engine import Engine
from litellm_messplus.errors import ConfigurationError
from litellm_messplus.proxy import collector
from litellm_messplus.proxy.energy_sources import measured_deployments
from litellm_messplus.proxy.judges import check_judges
from litellm_messplus.proxy.plugin import MessplusPlugin
from litellm_messplus.proxy.prompt_tokens import PromptTokens
from litellm_messplus.proxy.zoos import build_zoos
from litellm_messplus.restore import restore
from litellm_messplus.settings.load import load_settings
from litellm_messplus.settings.schema import MessplusSettings
from litellm_messplus.store import precedence
from litellm_messplus.store.database import create_engine, migrate

T = TypeVar("T")


def start() -> MessplusPlugin:
    """The plugin for the running proxy; what it cannot honour ends the process with the reason."""
    try:
        return _start(_proxy_configuration())
    except ConfigurationError as error:
        _stop(error)


def _start(config: Mapping[str, Any]) -> MessplusPlugin:
    # Our matrices are small: on busy cores, threads of BLAS spend far more time than they save.
    threadpool_limits(limits=1, user_api="blas")
    settings = load_settings(config)
    model_list = config.get("model_list") or []
    zoos = build_zoos(settings, model_list)
    check_judges(settings, model_list)
    measured = measured_deployments(zoos, model_list)
    encoder = load_for_requests(settings.encoder)
    engines = {name: Engine(zoo, encoder, settings.seed) for name, zoo in zoos.items()}
    position = _run_in_thread(_open_database(settings, engines))
    database = create_engine(settings.database)
    prompt_tokens = PromptTokens(list(zoos), model_list)
    prompt_tokens.warm_up()
    plugin = MessplusPlugin(settings, encoder, engines, database, position, measured, prompt_tokens)
    plugin.start()
    plugin.attach()
    collector.spare()
    return plugin


async def _open_database(settings: MessplusSettings, engines: Mapping[str, Engine]) -> int:
    database = create_engine(settings.database)
    try:
        await migrate(database)
        await precedence.save(
            database, {name: zoo.labels.precedence for name, zoo in settings.zoos.items()}
        )
        return await restore(database, engines)
    finally:
        await database.dispose()


def _run_in_thread(work: Coroutine[Any, Any, T]) -> T:
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(asyncio.run, work).result()


def _proxy_configuration() -> Mapping[str, Any]:
    from litellm.proxy import proxy_server

    config: Mapping[str, Any] = proxy_server.proxy_config.get_config_state()
    return config


def _stop(error: ConfigurationError) -> NoReturn:
    """One message in place of the traceback, and no worker that would be started again."""
    print(f"\nmessplus: the configuration cannot be honoured.\n  {error}\n", file=sys.stderr)
    sys.stderr.flush()
    os._exit(1)
