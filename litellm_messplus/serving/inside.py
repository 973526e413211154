"""`brain: inside`: the brain in the process of the only worker."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime
from functools import partial

from litellm_messplus.brain.brain import Brain, new_brain
from litellm_messplus.brain.contract import Road
from litellm_messplus.brain.opening import Opened, open_database
from litellm_messplus.runtime.counters import Counters, logger
from litellm_messplus.runtime.errors import DatabaseAwayError
from litellm_messplus.runtime.tasks import Periodic, apart
from litellm_messplus.serving.composition import Parts
from litellm_messplus.serving.deployments.metering import PromptTokens
from litellm_messplus.serving.plugin import MessplusPlugin
from litellm_messplus.serving.worker_hands import WorkerHands
from litellm_messplus.settings.schema import MessplusSettings
from litellm_messplus.settings.zoo import Zoo, Zoos
from litellm_messplus.store.database import check_place

RETRY_SECONDS = 5.0
"""Seconds between two tries to open a database that is away."""
WORKER = "inside"
"""The id of the only worker."""


class BrainInside:
    """The way to a brain in this process."""

    def __init__(self, brain: Brain, hands: WorkerHands) -> None:
        self.brain, self.worker = brain, WORKER
        self.road: Road = brain.road
        self.zoos: Mapping[str, Zoo] = Zoos(brain.engines)
        self.holds, self.safe = brain.holds.holds, dict[str, str]()
        self.routes_all = brain.routes_all
        self.counters = brain.counters
        brain.workers.join(WORKER, hands, datetime.now(UTC))

    def start(self, tasks: Periodic) -> None:
        """Begin in the running event loop."""
        self.brain.start()

    async def close(self) -> None:
        """Write everything."""
        await self.brain.close()


def started(
    settings: MessplusSettings,
    zoos: Mapping[str, Zoo],
    hands: WorkerHands,
    prompt_tokens: PromptTokens,
) -> tuple[MessplusPlugin, int | None]:
    """Build and start the plugin; return it with the end of the log, None while the database is
    away. Raises ConfigurationError."""
    check_place(settings.database)
    brain = new_brain(settings, zoos)
    plugin = MessplusPlugin(Parts(settings, BrainInside(brain, hands), prompt_tokens))
    opening = partial(open_database, settings, brain.engines, brain.modes)
    try:
        opened = apart(opening())
    except DatabaseAwayError as error:
        logger.warning("starting without the database, which is tried again: %s", error)
        join_later(plugin, brain, opening)
        return plugin, None
    brain.begin(opened)
    plugin.start()
    return plugin, opened.position


OpenDatabase = Callable[[], Coroutine[None, None, Opened]]
"""The function that opens the database and restores the engines, in any event loop."""


def join_later(plugin: MessplusPlugin, brain: Brain, opening: OpenDatabase) -> None:
    """Begin when the database is reachable; until then, no zoo is routed."""

    async def joined() -> None:
        brain.begin(await _opened(brain.counters, opening))
        plugin.start()

    plugin.route_later(joined, "the database is there")


async def _opened(counters: Counters, opening: OpenDatabase) -> Opened:
    """Open the database, and retry until it works; in a thread with a loop of its own, since a
    long log takes long to fold."""
    while True:
        await asyncio.sleep(RETRY_SECONDS)
        with counters.tolerated("database_awaited", "the database is not there yet"):
            return await asyncio.to_thread(lambda: asyncio.run(opening()))
