"""Routing of a request: LiteLLM's healthy deployments in, those to try next out; logged and
explored.

A request that is served as before goes on at once, and is decided in a task that it does not await.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from litellm_messplus.brain.brain import Brain
from litellm_messplus.brain.decided import Intake
from litellm_messplus.brain.messages import Admission, Order
from litellm_messplus.core.engine import Engine
from litellm_messplus.records import new_id
from litellm_messplus.rows import without_words
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.stand_ins import replace
from litellm_messplus.runtime.tasks import Tasks
from litellm_messplus.serving.deployments import deployment
from litellm_messplus.serving.deployments.deployment import (
    Deployment,
    Failing,
    known_before,
    served_before,
)
from litellm_messplus.serving.deployments.gates import Gates, Needs
from litellm_messplus.serving.deployments.live_zoos import LiveZoos
from litellm_messplus.serving.deployments.metering import PromptTokens
from litellm_messplus.serving.litellm_seam import LOGGING, PROXIED, target_order
from litellm_messplus.serving.open_requests import OpenRequest, OpenRequests
from litellm_messplus.serving.reading import RequestReader
from litellm_messplus.serving.repeating import Explorer
from litellm_messplus.serving.second import first_of
from litellm_messplus.serving.surfaces.answers import deployment_of_response
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


@dataclass(eq=False, repr=False)
class RequestRouter:
    """The router of requests, without a state of its own beyond the requests that are open."""

    live: LiveZoos
    brain: Brain
    reader: RequestReader
    gates: Gates
    prompt_tokens: PromptTokens
    failing: Failing
    open_requests: OpenRequests
    explorer: Explorer
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
        if request is None or (request.continues and not self.brain.holds.holds(engine.zoo.name)):
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
            deployments = deployment.held(deployments, opened.pin, failed)
        return deployment.to_try(deployments, opened.ranking, failed, opened.barred, order)

    async def close(self) -> None:
        """Wait for the decisions in shadow, for at most ``CLOSE_SECONDS``."""
        await self._shadows.close(CLOSE_SECONDS)

    async def _begin(
        self, engine: Engine, deployments: Sequence[Deployment], request: IncomingRequest
    ) -> OpenRequest:
        """Open a request: at once if it is served as before, else when it is decided."""
        zoo, began = engine.zoo, time.perf_counter()
        asked = self.reader.read(new_id(), zoo.name, request, deployments)
        intake = self.brain.begin(asked)
        if intake.before is not None:
            return self._serve_before(intake, deployments, request)
        if engine.encoder.is_fast and not zoo.settings.gates:  # no await
            return await self._serve(intake, deployments, request, began)
        # A second attempt that comes while the first still waits gets the same decision.
        key = (request.litellm_call_id, id(request.metadata))
        while key in self._deciding:
            await self._deciding[key].wait()
            opened = self.open_requests.get(request.metadata, request.litellm_call_id)
            if opened is not None:
                return opened
        decided = self._deciding[key] = asyncio.Event()
        try:
            return await self._serve(intake, deployments, request, began)
        finally:
            del self._deciding[key]
            decided.set()

    async def _serve(
        self,
        intake: Intake,
        deployments: Sequence[Deployment],
        request: IncomingRequest,
        began: float,
    ) -> OpenRequest:
        """Have a request decided that waits for it, and begin its unseen calls."""
        needs, admission = await self._admit(intake, deployments, request)
        order = await self.brain.decide(intake, admission, began)
        opened = OpenRequest(
            order.record,
            order.ranking,
            needs=needs,
            barred=admission.barred,
            place=order.place,
            pin=order.pin,
            **handing(request),
        )
        if order.awaited is not None:
            opened.first = first_of(order.awaited, request)
        self._open(opened, request)
        self._follow(opened, order, request)
        return opened

    async def _admit(
        self, intake: Intake, deployments: Sequence[Deployment], request: IncomingRequest
    ) -> tuple[Needs | None, Admission]:
        """Check what the candidates make of a request."""
        zoo = intake.zoo
        needs = self.gates.needs(request) if zoo.settings.gates else None
        admission = await self.gates.admit(zoo, request, needs, deployments)
        tokens = self.prompt_tokens.count(zoo.name, request.conversation)
        return needs, replace(admission, prompt_tokens=tokens) if tokens else admission

    def _open(self, opened: OpenRequest, request: IncomingRequest) -> None:
        self.open_requests.add(opened, request.metadata, request.kwargs.get(LOGGING))
        self.brain.next_turn.take(request.client_metadata, request.key_hash)

    def _follow(self, opened: OpenRequest, order: Order, request: IncomingRequest) -> None:
        """Keep a decided request for the sources of labels, and begin the calls to the candidates
        that no user sees."""
        opened.judged = order.judged
        self.explorer.start(opened, order.explored, request)

    def _serve_before(
        self, intake: Intake, deployments: Sequence[Deployment], request: IncomingRequest
    ) -> OpenRequest:
        """Open a request that is served as before, and have it decided in a task if that is due. It
        is logged once: with the choice, or without if its call ends before the decision, or none is
        due."""
        before = str(intake.before)
        order, due = self.brain.pass_by(intake, known_before(before, deployments))
        opened = OpenRequest(order.record, (), before=before, **handing(request))
        opened.unlogged = partial(self._give_up, opened)
        self._open(opened, request)
        if due is None:
            opened.ensure_logged()
            return opened
        # LiteLLM goes on to change these arguments, for its own call.
        kept = replace(request, kwargs=dict(request.kwargs))
        if self._shadows.start(self._shadow(due, deployments, kept, opened), "shadow") is None:
            self.counters.add("asides_dropped")
            opened.ensure_logged()
        return opened

    async def _shadow(
        self,
        intake: Intake,
        deployments: Sequence[Deployment],
        request: IncomingRequest,
        opened: OpenRequest,
    ) -> None:
        """Have a request decided that is served as before, and call the sampled model."""
        began = time.perf_counter()
        try:
            needs, admission = await self._admit(intake, deployments, request)
            order = await self.brain.shadow(
                intake,
                opened.record.chosen,
                admission,
                began,
                lambda: opened.unlogged is not None,
            )
            if order is None:
                self.counters.add("asides_late")
                return
            opened.needs, opened.barred = needs, admission.barred
            opened.record, opened.unlogged = without_words(order.record), None
            self._follow(opened, order, request)
        except Exception:
            self.counters.failure("aside_failures", "a request was not decided in shadow")
            opened.ensure_logged()

    def _give_up(self, opened: OpenRequest) -> None:
        """Log a request without a choice."""
        opened.unlogged = None
        self.brain.journal.write(opened.record)


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
