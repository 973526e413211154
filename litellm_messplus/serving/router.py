"""Routing of a request: LiteLLM's healthy deployments in, those to try next out; logged and
explored.

A request that is served as before goes on at once, and is decided in a task that it does not await.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from litellm_messplus.core.decision import Reason
from litellm_messplus.deciding.decider import Engine
from litellm_messplus.journal import Journal
from litellm_messplus.labels.source import LabelDesk
from litellm_messplus.records import RequestRecord, new_id
from litellm_messplus.rows import without_words
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.stand_ins import replace
from litellm_messplus.runtime.tasks import Tasks
from litellm_messplus.serving.before import Arms, known_before, served_before, shadow_level
from litellm_messplus.serving.decided import RequestDecider, in_shadow
from litellm_messplus.serving.deployments import deployment
from litellm_messplus.serving.deployments.deployment import Deployment, Failing
from litellm_messplus.serving.deployments.gates import Gates
from litellm_messplus.serving.deployments.live_zoos import LiveZoos
from litellm_messplus.serving.feedback import NextTurnFeedback
from litellm_messplus.serving.labelling import judged_request
from litellm_messplus.serving.litellm_seam import LOGGING, PROXIED, target_order
from litellm_messplus.serving.open_requests import OpenRequest, OpenRequests
from litellm_messplus.serving.reading import Intake
from litellm_messplus.serving.repeating import Explorer
from litellm_messplus.serving.second import first_of
from litellm_messplus.serving.surfaces.answers import deployment_of_response
from litellm_messplus.serving.surfaces.levels import granted_level, service_level
from litellm_messplus.serving.surfaces.request import (
    IncomingRequest,
    continued_response,
    read_request,
)
from litellm_messplus.switching.modes import Arm, is_of_litellm

MOST_WAITING = 256
"""Requests that are decided in shadow at once, in one worker; any more are logged undecided."""
CLOSE_SECONDS = 5.0
"""Seconds that a stop waits for them."""


@dataclass(frozen=True, slots=True)
class Listeners:
    """The parts that are notified of a request: the log, the sources of labels, and the calls
    unseen by the user."""

    journal: Journal
    desk: LabelDesk
    explorer: Explorer
    feedback: NextTurnFeedback

    def arrived(self, request: IncomingRequest) -> None:
        """Take the feedback on an earlier request from this one's metadata."""
        self.feedback.take(request)

    def decided(
        self,
        opened: OpenRequest,
        record: RequestRecord,
        request: IncomingRequest,
        called: Sequence[str],
    ) -> None:
        """Log a decision, keep the request for the sources of labels and the score of its zoo, and
        begin the calls to the candidates that no user sees."""
        if self.desk.is_watched(record.zoo):
            opened.judged = judged_request(record, request)
        self.journal.write(record)
        self.explorer.start(opened, called, request)


@dataclass(eq=False, repr=False)
class RequestRouter:
    """The router of requests, without a state of its own beyond the requests that are open."""

    live: LiveZoos
    arms: Arms
    decider: RequestDecider
    gates: Gates
    failing: Failing
    open_requests: OpenRequests
    listeners: Listeners
    counters: Counters

    def __post_init__(self) -> None:
        self._shadows = Tasks(MOST_WAITING)
        self._deciding: dict[tuple[str, int], asyncio.Event] = {}

    async def route(
        self,
        engine: Engine,
        deployments: Sequence[Deployment],
        messages: Sequence[Mapping[str, Any]] | None,
        kwargs: Mapping[str, Any] | None,
    ) -> Sequence[Deployment]:
        """Return the deployments of the engine's zoo that are to be tried next.

        Called by LiteLLM for every attempt: the first decides, a retry goes on to what has not
        failed. If there are none, LiteLLM refuses the request, which is logged all the same, and so
        is one whose decision took too long and is therefore not followed.
        """
        self.live.notice(engine, deployments)
        deployments = self.failing.without(deployments)
        target = deployment.exploration_target.get()
        if target is not None:
            return deployment.only(deployments, target, deployment.exploration_barred.get())
        if self.live.passes(engine, deployments):
            return deployments
        request = read_request(messages, kwargs)
        if request is None or (request.continues and not self.decider.holds.holds(engine.zoo.name)):
            return _continued(deployments, kwargs)
        opened = self.open_requests.get(request.metadata, request.litellm_call_id)
        if opened is None:
            opened = await self._begin(engine, deployments, request)
        else:
            opened.attempted(request.kwargs, request.attempts)
            if opened.before is None:
                admission = await self.gates.admit(
                    engine.zoo, request, opened.needs, deployments, opened.failed
                )
                opened.barred = admission.barred
        if opened.before is not None and not is_of_litellm(opened.before):
            opened.barred = await self.gates.removed(request, deployments)
        if request.continues and opened.record.trial.arm is Arm.OFF:
            deployments = _continued(deployments, request.kwargs)
        left = opened.offer(self._to_try(opened, deployments, target_order(request.kwargs)))
        self.failing.tried(opened.offered)
        return left

    def _to_try(
        self, opened: OpenRequest, deployments: Sequence[Deployment], order: int | None
    ) -> Sequence[Deployment]:
        """Return the deployments for the next attempt of a request."""
        failed = opened.failed
        if opened.before is not None:
            return served_before(deployments, opened.before, failed, opened.barred, order)
        if opened.pin is not None:
            deployments = opened.pin.holds(deployments, failed)
        return deployment.to_try(deployments, opened.ranking, failed, opened.barred, order)

    async def close(self) -> None:
        """Wait for the decisions in shadow, for at most ``CLOSE_SECONDS``."""
        await self._shadows.close(CLOSE_SECONDS)

    async def _begin(
        self, engine: Engine, deployments: Sequence[Deployment], request: IncomingRequest
    ) -> OpenRequest:
        """Open a request: at once if it is served as before, else when it is decided."""
        zoo = engine.zoo
        own = service_level(zoo, request.metadata, self.counters)
        trial, before = self.arms.arm(zoo, request)
        level = granted_level(zoo, own, request, self.counters) if before is None else own
        intake = Intake(engine, deployments, request, new_id(), level, trial)
        if before is not None:
            return self._serve_before(intake, before)
        if engine.encoder.is_fast and not zoo.settings.gates:  # no await
            return await self._serve(intake)
        # A second attempt that comes while the first still waits gets the same decision.
        key = (request.litellm_call_id, id(request.metadata))
        while key in self._deciding:
            await self._deciding[key].wait()
            opened = self.open_requests.get(request.metadata, request.litellm_call_id)
            if opened is not None:
                return opened
        decided = self._deciding[key] = asyncio.Event()
        try:
            return await self._serve(intake)
        finally:
            del self._deciding[key]
            decided.set()

    async def _serve(self, intake: Intake) -> OpenRequest:
        """Decide a request that waits for it, and notify the listeners."""
        decided = await self.decider.decide(intake)
        read, record = decided.read, self.decider.recorder.decided(decided)
        if read.features is None:
            self.counters.add("features_late")
        opened = OpenRequest(
            record,
            decided.ranking,
            needs=read.needs,
            barred=read.admission.barred,
            place=None if decided.standing is None else decided.standing.place,
            pin=decided.pin,
            **handing(intake.request),
        )
        if decided.choice.decision.reads:
            opened.first = first_of(decided)
        self.open_requests.add(opened, intake.request.metadata, intake.request.kwargs.get(LOGGING))
        self.listeners.arrived(intake.request)
        explored = decided.choice.decision.explored if decided.dropped is None else ()
        self.listeners.decided(opened, record, intake.request, explored)
        return opened

    def _serve_before(self, intake: Intake, before: str) -> OpenRequest:
        """Open a request that is served as before, and decide it in a task if that is due. It is
        logged once: with the choice, or without if its call ends before the decision, or none is
        due."""
        request, is_off = intake.request, intake.trial.arm is Arm.OFF
        is_due = not is_off and self.arms.is_due(intake.zoo, intake.request_id)
        intake = replace(intake, level=shadow_level(intake.level))
        if is_due:
            intake = replace(intake, trial=self.arms.drawn(intake.zoo, request, intake.trial))
        serves, reason = known_before(before, intake.deployments), Reason.UNDECIDED
        record = self.decider.recorder.undecided(intake, serves, Reason.OFF if is_off else reason)
        opened = OpenRequest(record, (), before=before, **handing(request))
        opened.unlogged = partial(self._give_up, opened)
        self.open_requests.add(opened, request.metadata, request.kwargs.get(LOGGING))
        self.listeners.arrived(request)
        if not is_due:
            opened.ensure_logged()
            return opened
        # LiteLLM goes on to change these arguments, for its own call.
        kept = replace(intake, request=replace(request, kwargs=dict(request.kwargs)))
        if self._shadows.start(self._shadow(kept, opened), "shadow") is None:
            self.counters.add("asides_dropped")
            opened.ensure_logged()
        return opened

    async def _shadow(self, intake: Intake, opened: OpenRequest) -> None:
        """Decide a request that is served as before, and call the sampled model."""
        serves = opened.record.chosen
        try:
            decided = await self.decider.decide(intake)
            if opened.unlogged is None:
                intake.engine.forget(intake.request_id)
                self.counters.add("asides_late")
                return
            record = self.decider.recorder.decided(decided)
            called = self.arms.sampled(decided, record, serves)
            record = in_shadow(record, decided, serves, called)
            opened.needs, opened.barred = decided.read.needs, decided.read.admission.barred
            opened.record, opened.unlogged = without_words(record), None
            self.listeners.decided(opened, record, intake.request, called)
        except Exception:
            intake.engine.forget(intake.request_id)
            self.counters.failure("aside_failures", "a request was not decided in shadow")
            opened.ensure_logged()

    def _give_up(self, opened: OpenRequest) -> None:
        """Log a request without a choice."""
        opened.unlogged = None
        self.listeners.journal.write(opened.record)


def handing(request: IncomingRequest) -> dict[str, Any]:
    """Tell who waits for an answer, and how long."""
    given = request.kwargs
    return {"has_client": PROXIED in given, "timeout": given.get("timeout")}


def _continued(
    deployments: Sequence[Deployment], kwargs: Mapping[str, Any] | None
) -> Sequence[Deployment]:
    """Pass through what is not routed: if no conversations are held, a response that continues
    another goes to the deployment that answered that one."""
    earlier = None if kwargs is None else continued_response(kwargs)
    return deployment.pinned(deployments, earlier and deployment_of_response(earlier))
