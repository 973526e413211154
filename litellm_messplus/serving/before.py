"""Requests that are served as before the router: how they are drawn, their decisions in shadow,
the budget of those, and the deployments that serve."""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.core.decision import Reason
from litellm_messplus.labels.buying import KeyShares
from litellm_messplus.records import RequestRecord
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.draws import uniform
from litellm_messplus.runtime.purse import Purse
from litellm_messplus.runtime.tasks import Periodic
from litellm_messplus.runtime.vocabulary import level_before
from litellm_messplus.serving.decided import DecidedRequest
from litellm_messplus.serving.deployments import deployment
from litellm_messplus.serving.deployments.deployment import Deployment, of_group
from litellm_messplus.serving.modes import LiveModes
from litellm_messplus.serving.surfaces.identity import conversation_of
from litellm_messplus.serving.surfaces.request import IncomingRequest
from litellm_messplus.settings.promise import ServiceLevel
from litellm_messplus.settings.schema import ZooSettings
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.store.judging import sampled_on
from litellm_messplus.store.worker_counters import running
from litellm_messplus.switching.modes import (
    DECIDED_PER_SECOND,
    LITELLM,
    ROUTED,
    Arm,
    Pace,
    Trial,
    group_of,
)

# The daily budget of the unseen calls of watched zoos.

READ_SECONDS = 5.0
"""Seconds between two readings of what all workers spent."""
LAG_SECONDS = 60.0
"""Seconds until the cost of a call that was paid for is in the log."""


class SamplePurses:
    """The budgets for samples of the zoos that have one, limited for each key; one per worker.
    A zoo without a budget pays for every call; one with a budget pays for none until the log has
    been read."""

    def __init__(self, zoos: Mapping[str, ZooSettings], database: AsyncEngine) -> None:
        budgets = {name: zoo.watch.budget_per_day for name, zoo in zoos.items()}
        self._budgets = {name: each for name, each in budgets.items() if each is not None}
        self._purses = {name: Purse(LAG_SECONDS) for name in self._budgets}
        self._keys = {name: KeyShares() for name in self._budgets}
        self._database = database

    def pay(self, zoo: str, request_id: str, key: str | None, cost: float) -> bool:
        """Reserve the cost of a call for a request of a key; return False if the zoo's budget does
        not allow it."""
        if zoo not in self._purses:
            return True
        purse, keys = self._purses[zoo], self._keys[zoo]
        keys.count(key, datetime.now(UTC).date())
        left = purse.left
        if cost > left or not keys.allows(key, cost, left, self._budgets[zoo]):
            return False
        keys.spend(key, cost)
        purse.reserve(request_id, cost)
        purse.settled(request_id)
        return True

    def start(self, periodic: Periodic) -> None:
        """Begin to read what was spent, if any zoo has a budget."""
        if self._purses:
            failed = "what samples cost was not read"
            periodic.every(READ_SECONDS, self.look, "sample_cost_failures", failed)

    async def look(self) -> None:
        """Read what all workers spent today. Raises SQLAlchemyError."""
        read_at, now = time.monotonic(), datetime.now(UTC)
        async with self._database.connect() as connection:
            spent = await sampled_on(connection, now.date())
            workers = await running(connection, now)
        for zoo, purse in self._purses.items():
            purse.learn(self._budgets[zoo] - spent.get(zoo, 0.0), read_at, workers)


# Which requests are served as before, and which of those are decided in shadow.


class Arms:
    """The draws of one worker: which requests are routed, which of the others are decided in
    shadow, and for which of those another model is called unseen, within a budget."""

    def __init__(
        self, modes: LiveModes, purses: SamplePurses, counters: Counters, *, seed: int
    ) -> None:
        self._modes = modes
        self._purses = purses
        self._counters = counters
        self._seed = seed
        self._paces: dict[str, Pace] = {}

    def arm(self, zoo: Zoo, request: IncomingRequest) -> tuple[Trial, str | None]:
        """Draw the arm of a request, and return it with what serves it, None if it is routed.

        Raises RefusedError for a switch that the client wrote wrongly."""
        mode = self._modes.now[zoo.name]
        if request.is_switched_off:
            return Trial(Arm.OFF), mode.before or zoo.largest
        if not mode.draws:
            return ROUTED, None
        draw = self._draw(zoo.name, request) if mode.splits else None
        arm = mode.arm(draw)
        before = None if arm is Arm.ROUTED else mode.before or LITELLM
        return Trial(arm, conversation_draw=draw), before

    def drawn(self, zoo: Zoo, request: IncomingRequest, trial: Trial) -> Trial:
        """Add the draw of the conversation, which every decided request has."""
        if trial.conversation_draw is not None:
            return trial
        return replace(trial, conversation_draw=self._draw(zoo.name, request))

    def is_due(self, zoo: Zoo, request_id: str) -> bool:
        """Tell whether a request is decided in shadow: every sampled one, and a limited number of
        the others per second."""
        if self._is_sampled(zoo, request_id):
            return True
        pace = self._paces.setdefault(zoo.name, Pace(DECIDED_PER_SECOND))
        return pace.take(time.monotonic())

    def sampled(
        self, decided: DecidedRequest, record: RequestRecord, serves: str
    ) -> tuple[str, ...]:
        """Choose the candidate to call unseen for a sampled request: the chosen one, or the next
        best if the chosen one serves anyway."""
        zoo = decided.read.intake.zoo
        others = [name for name in decided.choice.decision.ranking if name != serves]
        if not others or record.reason is Reason.NONE_HEALTHY:
            return ()
        if decided.read.question.is_alone or not self._is_sampled(zoo, record.request_id):
            return ()
        cost = record.estimated_cost[others[0]]
        if not self._purses.pay(zoo.name, record.request_id, record.asker.key_hash, cost):
            self._counters.add("samples_over_budget")
            return ()
        return (others[0],)

    def _draw(self, zoo: str, request: IncomingRequest) -> float:
        return uniform(self._seed, f"{zoo}/arm", conversation_of(request))

    def _is_sampled(self, zoo: Zoo, request_id: str) -> bool:
        sample = zoo.settings.watch.sample
        return sample > 0.0 and uniform(self._seed, f"{zoo.name}/sample", request_id) < sample


def shadow_level(level: ServiceLevel) -> ServiceLevel:
    """Return the level under which requests of ``level`` that are served as before count."""
    return level.model_copy(update={"name": level_before(level.name)})


# The deployments that served before the router: all, those of a group, or those of a candidate.


def served_before(
    deployments: Sequence[Deployment],
    before: str,
    failed: Collection[str],
    barred: Collection[str],
    order: int | None,
) -> Sequence[Deployment]:
    """Return the deployments that served before: all of them, as LiteLLM's order, weights and
    strategy decide, those of a group, or those of one candidate and the others as a last resort."""
    if before == LITELLM:
        return deployments
    group = group_of(before)
    if group is None:
        return deployment.to_try(deployments, (before,), failed, barred, order)
    own = of_group(deployments, group)
    is_there = any(order is None or deployment.user_order(each) == order for each in own)
    return own if is_there else deployments


def known_before(before: str, deployments: Sequence[Deployment]) -> str:
    """Return the candidate that will serve, if the group has only one; else ``before`` itself."""
    group = group_of(before)
    found = {deployment.candidate_of(each) for each in of_group(deployments, group or "")}
    return found.pop() if len(found) == 1 else before
