"""A brain behind its socket and workers that are connected to it, in one process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from litellm_messplus.brain.brain import Brain, new_brain
from litellm_messplus.brain.listener import Listener
from litellm_messplus.brain.opening import open_database
from litellm_messplus.brain.place import BrainSettings, brain_settings
from litellm_messplus.serving.composition import BrainApart, Parts
from litellm_messplus.serving.deployments.index import configured_zoos
from litellm_messplus.serving.plugin import MessplusPlugin
from litellm_messplus.serving.worker_hands import WorkerHands
from litellm_messplus.settings.load import load_settings
from tests.support import in_process
from tests.support.journey import Journey
from tests.support.patience import PATIENT


@dataclass
class Apart:
    """A database in ``folder``, and what is started on it."""

    folder: Path
    zoo: dict[str, Any] = field(default_factory=dict)
    deployments: Any = field(default_factory=lambda: in_process.DEPLOYMENTS)

    def __post_init__(self) -> None:
        config = {
            "model_list": list(self.deployments),
            "messplus": {
                "database": in_process.url(self.folder),
                "zoos": {"zoo": {"alpha": 0.8, **self.zoo}},
                "deadline_seconds": PATIENT,
                "flush_seconds": 0.05,
            },
        }
        settings = load_settings(config)
        self.given: BrainSettings = brain_settings(settings, configured_zoos(settings, config))

    @asynccontextmanager
    async def brain(self) -> AsyncIterator[Brain]:
        """A brain that listens. It is left as by a kill where `crash` was called."""
        given = self.given
        brain = new_brain(given.settings, given.zoos)
        brain.begin(await open_database(given.settings, brain.engines, brain.modes))
        brain.start()
        listener = Listener(brain, given.address, given.token, given.fingerprint)
        await listener.start()
        try:
            yield brain
        finally:
            await listener.close()
            await brain.close()

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[Journey]:
        """A worker, connected if a brain listens."""
        way = BrainApart(self.given, WorkerHands(self.given.zoos), None)
        plugin = MessplusPlugin(Parts(self.given.settings, way))
        plugin.start()
        try:
            yield Journey(plugin, self.deployments)
        finally:
            await plugin.close()
