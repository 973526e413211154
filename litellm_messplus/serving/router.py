"""Routing of a request: LiteLLM's healthy deployments in, those to try next out; logged and
explored.

A request that is served as before goes on at once, and is decided in a task that it does not await.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from litellm_messplus.brain.contract import Road
from litellm_messplus.brain.messages import Admission, Asked, judged_request
from litellm_messplus.brain.wire import BrainAwayError, BrainFailedError
from litellm_messplus.records import new_id
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
from litellm_messplus.serving.scores import AnswerScores
from litellm_messplus.serving.second import first_of
from litellm_messplus.serving.surfaces.answers import deployment_of_response
from litellm_messplus.serving.surfaces.request import (
    IncomingRequest,
    continued_response,
    read_request,
)
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.switching.modes import Arm, is_of_litellm

MOST_WAITING = 256
"""Requests that are decided in shadow at once, in one worker; any more are logged undecided."""
CLOSE_SECONDS = 5.0
"""Seconds that a stop waits for them."""


@dataclass(eq=False, repr=False)
class RequestRouter:
    """The router of requests, without a state of its own beyond the requests that are open."""

    zoos: Mapping[str, Zoo]
    live: LiveZoos
    road: Road
    safe: Mapping[str, str]
    routes_all: Callable[[str], bool]
    reader: RequestReader
    gates: Gates
    prompt_tokens: PromptTokens
    failing: Failing
    open_requests: OpenRequests
    explorer: Explorer
    scores: AnswerScores
    counters: Counters

    def __post_init__(self) -> None:
        self._shadows = Tasks(MOST_WAITING)
        self._deciding: dict[tuple[str, int], asyncio.Event] = {}

    async def route(
        self,
        name: str,
        deployments: Sequence[Deployment],
        messages: Sequence[Mapping[str, Any]] | None,
        kwargs: Mapping[str, Any] | None,
    ) -> Sequence[Deployment]:
        """Return the deployments of the zoo of that name that are to be tried next.

        Called by LiteLLM for every attempt: the first decides, a retry goes on to what has not
        failed. If there are none, LiteLLM refuses the request, which is logged all the same, and so
        is one whose decision took too long and is therefore not followed.
        """
        self.live.notice(name, deployments)
        zoo, deployments = self.zoos[name], self.failing.without(deployments)
        target = deployment.exploration_target.get()
        if target is not None:
            return deployment.only(deployments, target, deployment.exploration_barred.get())
        if self.live.passes(zoo, deployments):
            return deployments
        request = read_request(messages, kwargs)
        if request is None or (request.continues and not self.reader.holds(name)):
            return _continued(deployments, kwargs)
        opened = self.open_requests.get(request.metadata, request.litellm_call_id)
        if opened is None:
            try:
                opened = await self._begin(zoo, deployments, request)
            except (BrainAwayError, TimeoutError) as error:
                is_away = not isinstance(error, BrainFailedError)
                counter = "brain_away" if is_away else "routing_failures"
                self.counters.failure(counter, "a request is served without a decision")
                order = target_order(request.kwargs)
                safe = self.safe.get(name) or zoo.settings.before or zoo.largest
                return served_before(deployments, safe, frozenset(), frozenset(), order)
        else:
            opened.attempted(request.kwargs, request.attempts)
            if opened.before is None:
                admission = await self.gates.admit(
                    zoo, request, opened.needs, deployments, opened.failed
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
        pin, ranking = opened.order.pin, opened.order.ranking
        if pin is not None:
            deployments = deployment.held(deployments, pin, failed)
        return deployment.to_try(deployments, ranking, failed, opened.barred, order)

    async def close(self) -> None:
        """Wait for the decisions in shadow, for at most ``CLOSE_SECONDS``."""
        await self._shadows.close(CLOSE_SECONDS)

    async def _begin(
        self, zoo: Zoo, deployments: Sequence[Deployment], request: IncomingRequest
    ) -> OpenRequest:
        """Open a request: at once if it is served as before, else when it is decided."""
        # A second attempt that comes while the first still waits gets the same decision.
        key = (request.litellm_call_id, id(request.metadata))
        while key in self._deciding:
            await self._deciding[key].wait()
            opened = self.open_requests.get(request.metadata, request.litellm_call_id)
            if opened is not None:
                return opened
        decided = self._deciding[key] = asyncio.Event()
        try:
            return await self._ask(zoo, deployments, request)
        finally:
            del self._deciding[key]
            decided.set()

    async def _ask(
        self, zoo: Zoo, deployments: Sequence[Deployment], request: IncomingRequest
    ) -> OpenRequest:
        """Ask the brain: in one step where all requests are routed, else what serves it first."""
        began = time.perf_counter()
        asked = self.reader.read(new_id(), zoo.name, request, deployments)
        if self.routes_all(zoo.name) and not asked.is_switched_off:
            needs, admission = await self._admit(zoo, deployments, request)
            found = await self.road.route(asked, admission, time.perf_counter() - began)
        else:
            before = await self.road.begin(asked)
            if before is not None:
                return await self._serve_before(before, zoo, asked, deployments, request)
            needs, admission = await self._admit(zoo, deployments, request)
            spent = time.perf_counter() - began
            found = await self.road.decide(asked.request_id, admission, spent)
        if isinstance(found, str):
            return await self._serve_before(found, zoo, asked, deployments, request)
        opened = OpenRequest(found, needs, admission.barred, **handing(request))
        if found.is_read:
            opened.first = first_of(zoo.name, request)
        self._open(opened, request)
        self._follow(opened, asked, request)
        return opened

    async def _admit(
        self, zoo: Zoo, deployments: Sequence[Deployment], request: IncomingRequest
    ) -> tuple[Needs | None, Admission]:
        """Check what the candidates make of a request."""
        needs = self.gates.needs(request) if zoo.settings.gates else None
        admission = await self.gates.admit(zoo, request, needs, deployments)
        tokens = self.prompt_tokens.count(zoo.name, request.conversation)
        return needs, replace(admission, prompt_tokens=tokens) if tokens else admission

    def _open(self, opened: OpenRequest, request: IncomingRequest) -> None:
        self.open_requests.add(opened, request.metadata, request.kwargs.get(LOGGING))

    def _follow(self, opened: OpenRequest, asked: Asked, request: IncomingRequest) -> None:
        """Keep a decided request for its score, and begin the calls to the candidates that no user
        sees."""
        if self.scores.is_on(asked.zoo):
            opened.scored = judged_request(opened.record, asked)
        self.explorer.start(opened, opened.order.explored, request)

    async def _serve_before(
        self,
        before: str,
        zoo: Zoo,
        asked: Asked,
        deployments: Sequence[Deployment],
        request: IncomingRequest,
    ) -> OpenRequest:
        """Open a request that is served as before, and have it decided in a task if that is due. It
        is logged once: with the choice, or without if its call ends before the decision, or none is
        due."""
        order = await self.road.pass_by(asked.request_id, known_before(before, deployments))
        opened = OpenRequest(order, before=before, **handing(request))
        self._open(opened, request)
        if order.is_due:
            # LiteLLM goes on to change these arguments, for its own call.
            kept = replace(request, kwargs=dict(request.kwargs))
            shadow = self._shadow(zoo, asked, deployments, kept, opened)
            if self._shadows.start(shadow, "shadow") is None:
                self.counters.add("asides_dropped")
                self.road.give_up(asked.request_id)
        return opened

    async def _shadow(
        self,
        zoo: Zoo,
        asked: Asked,
        deployments: Sequence[Deployment],
        request: IncomingRequest,
        opened: OpenRequest,
    ) -> None:
        """Have a request decided that is served as before, and call the sampled model."""
        began = time.perf_counter()
        try:
            needs, admission = await self._admit(zoo, deployments, request)
            spent = time.perf_counter() - began
            order = await self.road.shadow(asked.request_id, admission, spent)
            if order is None:
                self.counters.add("asides_late")
                return
            opened.order, opened.needs, opened.barred = order, needs, admission.barred
            self._follow(opened, asked, request)
        except Exception:
            self.counters.failure("aside_failures", "a request was not decided in shadow")
            self.road.give_up(asked.request_id)


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
