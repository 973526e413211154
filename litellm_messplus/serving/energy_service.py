"""Energy in service: every ended call goes to the follower of its deployment's sensors, measured
joules go to the log, and prices are corrected by them."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import fmean

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.deciding.decider import Engine
from litellm_messplus.energy.follow import WINDOW_SECONDS, Call, EnergyFollower, MeasuredCall
from litellm_messplus.energy.measure import Idle
from litellm_messplus.energy.meter import Meter
from litellm_messplus.energy.zeus import ReopeningMeter, open_meter
from litellm_messplus.journal import Journal
from litellm_messplus.records import CallRecord, EnergyRecord, request_of
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.tasks import Tasks
from litellm_messplus.serving.deployments.index import DeploymentIndex
from litellm_messplus.serving.deployments.prices import EnergySource, MeasuredDeployment
from litellm_messplus.store.answered import EndedCall, ended_calls

# Calls that other workers on the same database have served, read from the log.


class OtherWorkers:
    """The calls of other workers: those in the log that were not passed to `exclude` before.
    ``position`` is the position in the log to begin at."""

    def __init__(self, database: AsyncEngine, position: int) -> None:
        self._database = database
        self._position = position
        self._own: set[str] = set()

    def begin_at(self, position: int) -> None:
        """Begin after that position in the log, and skip all calls up to it."""
        self._position = position

    def exclude(self, call_id: str) -> None:
        """Exclude a call that this worker made."""
        self._own.add(call_id)

    async def ended_calls(self) -> list[EndedCall]:
        """Read the calls since the last reading. Raises SQLAlchemyError if the database does not
        answer."""
        logged = await ended_calls(self._database, self._position)
        if logged:
            self._position = logged[-1].position
        others = [each.call for each in logged if each.call_id not in self._own]
        self._own.difference_update(each.call_id for each in logged)
        return others


OTHERS = ""
"""The call id for followed calls whose energy is not logged here: those of other workers, which log
it themselves, and those of other zoos' requests, whose costs are in another unit."""


@dataclass(eq=False, repr=False)
class EnergyService:
    """The energy in service, one per worker, with one follower for each source.

    ``measured`` are the deployments of the configuration, whose sensors are read from the start;
    those that are added later are followed from their first call on. If several share sensors,
    the first one's profile states the idle power.
    """

    measured: Sequence[MeasuredDeployment]
    index: DeploymentIndex
    engines: Mapping[str, Engine]
    journal: Journal
    others: OtherWorkers
    counters: Counters

    def __post_init__(self) -> None:
        self._followers: dict[EnergySource, EnergyFollower] = {}
        self._tasks = Tasks()

    def start(self) -> None:
        """Begin reading the sensors, in the running event loop."""
        for deployment in self.measured:
            self._follower(deployment)

    async def close(self) -> None:
        """Stop reading. Calls whose windows are not settled yet keep their estimates."""
        await self._tasks.close()

    def ended(self, zoo: str, call: CallRecord) -> None:
        """Measure an ended call of that zoo, answered or failed."""
        if call.deployment_id not in self.index.measured or call.is_cache_hit:
            return
        found = EndedCall.of(call)
        if found is None:
            self.counters.add("energy_calls_not_measured")
            return
        self.others.exclude(call.call_id)
        if call.candidate is None:
            self._tell(OTHERS, found)
            return
        self._tell(call.call_id, found)
        self._correct(zoo, call.candidate)

    async def hear_of_others(self) -> None:
        """Pass other workers' calls in the log to the followers: the sensors measure their energy
        too."""
        with self.counters.tolerated("energy_others_unknown", "other workers' calls are not known"):
            for call in await self.others.ended_calls():
                self._tell(OTHERS, call)

    def price_factor(self, deployment_id: str) -> float:
        """Return the factor of a deployment's price: 1 unless the price is of measured energy."""
        deployment = self.index.measured.get(deployment_id)
        follower = self._followers.get(deployment.source) if deployment else None
        if follower is None or self._per_joule(deployment_id) is None:
            return 1.0
        return follower.correction(deployment_id)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(WINDOW_SECONDS)
            await self.hear_of_others()

    def _tell(self, call_id: str, call: EndedCall) -> None:
        deployment = self.index.measured.get(call.deployment_id)
        if deployment is not None:
            joules = deployment.profile.joules(call.prompt_tokens, call.completion_tokens)
            followed = Call(call_id, call.deployment_id, call.started, call.ended, joules)
            self._follower(deployment).ended(followed)

    def _correct(self, zoo: str, candidate: str) -> None:
        """Update the engine's price factor of a candidate: the mean over its deployments."""
        replicas = self.index.replicas.get((zoo, candidate))
        if not replicas:  # LiteLLM has none of them any more
            return
        factor = fmean(map(self.price_factor, replicas))
        self.engines[zoo].price_factors[candidate] = factor

    def _take(self, call: MeasuredCall) -> None:
        """Log the joules of a call, and its cost in the zoo's unit if its price is of energy."""
        if call.call_id == OTHERS:
            return
        per_joule = self._per_joule(call.deployment_id)
        self.journal.write(
            EnergyRecord(
                call_id=call.call_id,
                request_id=request_of(call.call_id),
                measured_at=datetime.now(UTC),
                joules=call.joules,
                cost=None if per_joule is None else per_joule * call.joules,
            )
        )

    def _per_joule(self, deployment_id: str) -> float | None:
        price = self.index.prices.get(deployment_id)
        return None if price is None else price.per_joule

    def _follower(self, deployment: MeasuredDeployment) -> EnergyFollower:
        found = self._followers.get(deployment.source)
        if found is not None:
            return found
        profile = deployment.profile
        follower = EnergyFollower(
            _meter(deployment.source),
            Idle(profile.idle_watts, profile.idle_noise_watts),
            measured=self._take,
            counters=self.counters,
        )
        if not self._followers:
            self._tasks.start(self._run(), "energy-others")
        self._followers[deployment.source] = follower
        self._tasks.start(follower.run(), "energy")
        return follower


def _meter(source: EnergySource) -> Meter:
    return ReopeningMeter(
        f"zeusd at {source.zeusd}",
        lambda: open_meter(zeusd=source.zeusd, gpus=source.gpus, with_cpu=source.with_cpu),
    )
