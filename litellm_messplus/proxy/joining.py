"""A start while the database is away: LiteLLM serves as without the plugin, until it is there."""

import asyncio
import logging
from collections.abc import Callable, Coroutine

from litellm_messplus.proxy.plugin import MessplusPlugin

logger = logging.getLogger("litellm_messplus")

RETRY_SECONDS = 5.0

OpenDatabase = Callable[[], Coroutine[None, None, int]]
"""Restores the engines, in any event loop; returns the position that they have reached."""


def join_later(plugin: MessplusPlugin, open_database: OpenDatabase) -> None:
    """Take every zoo away from the plugin until the database is there, then begin."""
    engines, plugin.engines = plugin.engines, {}
    plugin.counters.add("database_awaited")

    async def join() -> None:
        position = await _opened(plugin, open_database)
        plugin.parts.begin_at(position)
        plugin.start()
        plugin.engines = engines
        logger.warning("the database is there: requests are routed from now on")

    plugin.parts.joining.start(join(), "messplus-joining")


async def _opened(plugin: MessplusPlugin, open_database: OpenDatabase) -> int:
    """Tried until it works. In a thread with a loop of its own: a long log takes long to fold."""
    while True:
        await asyncio.sleep(RETRY_SECONDS)
        try:
            return await asyncio.to_thread(lambda: asyncio.run(open_database()))
        except Exception:
            plugin.counters.failure("database_awaited", "the database is not there yet")
