"""The zoos as LiteLLM's router shows them: models come, go and change their price while it
serves."""

import asyncio
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from litellm_messplus.brain.contract import Road
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.tasks import Tasks
from litellm_messplus.serving.deployments.deployment import (
    Deployment,
    Group,
    candidate_of,
    deployment_id,
    group,
    members,
)
from litellm_messplus.serving.deployments.index import DeploymentIndex
from litellm_messplus.serving.litellm_seam import deployments_of, routing_groups_of, running_router
from litellm_messplus.settings.zoo import Zoo

SWEEP_SECONDS = 2.0
"""Interval between two looks at LiteLLM's router; one that finds no change takes 20 us."""


@dataclass(eq=False, repr=False)
class LiveZoos:
    """One worker's watch over the models of all zoos."""

    zoos: Mapping[str, Zoo]
    index: DeploymentIndex
    road: Road
    worker: str
    counters: Counters
    _: KW_ONLY
    router: Callable[[], Any] = running_router

    def __post_init__(self) -> None:
        self._seen: list[Deployment] = []
        self._noticed: dict[str, Group] = {}
        self._groups: dict[str, tuple[str, ...]] = {}

    def start(self, tasks: Tasks) -> None:
        """Start watching, in the running event loop."""
        tasks.start(self._run(), "live-zoos")

    def notice(self, name: str, deployments: Sequence[Deployment]) -> None:
        """Look at the deployments of a request; if one is new or has changed, look at all."""
        shown = group(deployments)
        if self._noticed.get(name) is shown:
            return
        self._noticed[name] = shown
        if not self.index.see(name, deployments, self.zoos[name].settings):
            return
        self.look()

    def passes(self, zoo: Zoo, deployments: Sequence[Deployment]) -> bool:
        """Tell whether a request is left to LiteLLM, and count the reason."""
        if not deployments:
            return False
        shown = group(deployments)
        if shown.is_a_teams:
            self.counters.add("team_requests")
            return True
        if zoo.is_waiting:
            self.counters.add("zoos_waiting")
            return True
        if shown.candidates.isdisjoint(zoo.present):
            self.counters.add("candidates_unknown")
            return True
        return False

    def look(self) -> None:
        """Tell the brain the models and prices of all zoos, if the router shows other ones."""
        with self.counters.tolerated("live_zoo_failures", "the router's models are not known yet"):
            self._look()

    def _look(self) -> None:
        router = self.router()
        if router is None:
            return
        found, groups = deployments_of(router), routing_groups_of(router)
        is_as_before = len(found) == len(self._seen) and all(map(operator.is_, found, self._seen))
        if is_as_before and groups == self._groups:
            return
        self._seen, self._groups = list(found), groups
        self._noticed.clear()
        for name, zoo in self.zoos.items():
            own = members(name, self._seen, groups)
            self.index.see(name, own, zoo.settings)
            self.index.gone(name, {deployment_id(each) for each in own})
            prices = self.index.candidate_prices(name, own)
            replicas = {deployment_id(each): candidate_of(each) for each in own}
            self.road.shown(self.worker, name, prices, replicas)

    async def _run(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(SWEEP_SECONDS)
