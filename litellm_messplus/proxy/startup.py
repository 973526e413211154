"""Starting inside the proxy: the configuration, the database, the engines, then the plugin.

LiteLLM imports its callbacks from a plain function while its event loop already runs, so what
must be awaited before the first request (migrations, restoring the state) runs in a thread with a
loop of its own.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NoReturn, TypeVar

from threadpoolctl import threadpool_limits

from litellm_messplus.encoders.serving import load_for_requests
from litellm_messplus.engine import Engine
from litellm_messplus.errors import ConfigurationError, DatabaseAwayError
from litellm_messplus.proxy import collector
from litellm_messplus.proxy.banner import banner, show_log
from litellm_messplus.proxy.checking import honoured
from litellm_messplus.proxy.joining import join_later
from litellm_messplus.proxy.opening import open_database
from litellm_messplus.proxy.plugin import MessplusPlugin
from litellm_messplus.proxy.prompt_tokens import PromptTokens
from litellm_messplus.settings.schema import MessplusSettings
from litellm_messplus.store.database import create_engine

logger = logging.getLogger("litellm_messplus")

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
    show_log()
    found = honoured(config)
    settings, zoos, measured = found.settings, found.zoos, found.measured
    encoder = load_for_requests(settings.encoder)
    engines = {name: Engine(zoo, encoder, settings.seed) for name, zoo in zoos.items()}
    position = _restored(settings, engines)
    database = create_engine(settings.database)
    prompt_tokens = PromptTokens(list(zoos), config.get("model_list") or [])
    prompt_tokens.warm_up()
    plugin = MessplusPlugin(
        settings, encoder, engines, database, position or 0, measured, prompt_tokens
    )
    if position is None:
        join_later(plugin, partial(open_database, settings, engines))
    else:
        plugin.start()
    plugin.attach()
    collector.spare()
    logger.info(
        banner(
            zoos,
            encoder=encoder.name,
            database=settings.database,
            position=position,
            measured=len(measured),
        )
    )
    return plugin


def _restored(settings: MessplusSettings, engines: dict[str, Engine]) -> int | None:
    """The position up to which the log is folded in; None where the database is away, which may
    come back."""
    try:
        return _run_in_thread(open_database(settings, engines))
    except DatabaseAwayError as error:
        if not settings.start_without_database:
            raise
        logger.warning("starting without the database, which is tried again: %s", error)
        return None


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
