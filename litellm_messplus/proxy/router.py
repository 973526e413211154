"""Routing one request: LiteLLM's healthy deployments in, a ranking out; logged and explored."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from weakref import WeakValueDictionary

from litellm_messplus.encoders.service import FeatureService
from litellm_messplus.engine import Engine
from litellm_messplus.journal import Journal
from litellm_messplus.labels.source import LabelDesk
from litellm_messplus.prediction.prompt import Prompt
from litellm_messplus.prediction.surface import VERSION, read_surface
from litellm_messplus.proxy.deployments import deployment
from litellm_messplus.proxy.deployments.deployment import Deployment, candidate_of, deployment_id
from litellm_messplus.proxy.deployments.metering import PromptTokens
from litellm_messplus.proxy.explorer import Explorer, exploration_barred, exploration_target
from litellm_messplus.proxy.feedback import NextTurnFeedback
from litellm_messplus.proxy.gates import OPEN, Admission, Gates, Needs
from litellm_messplus.proxy.labelling import judged_request
from litellm_messplus.proxy.litellm_seam import target_order
from litellm_messplus.proxy.open_requests import OpenRequest, OpenRequests
from litellm_messplus.proxy.surfaces.answers import deployment_of_response
from litellm_messplus.proxy.surfaces.surface import (
    IncomingRequest,
    continued_response,
    read_request,
)
from litellm_messplus.records import RequestRecord, is_forced, new_id
from litellm_messplus.routing.decision import Situation
from litellm_messplus.routing.gates import baseline
from litellm_messplus.runtime import Counters
from litellm_messplus.settings.schema import DEFAULT_LEVEL, MessplusSettings, ServiceLevel
from litellm_messplus.zoo import Zoo

# Which promise a request counts towards: its key's, else its team's, else the zoo's own.

NAME_KEY = "messplus_service_level"


def service_level(zoo: Zoo, metadata: Mapping[str, Any], counters: Counters) -> ServiceLevel:
    """Find the level that the key's or team's metadata names; an unknown name is counted and
    logged.

    Only what the operator wrote on the key or the team counts, never what the client sends.
    """
    name = _named(metadata.get("user_api_key_metadata")) or _named(
        metadata.get("user_api_key_team_metadata")
    )
    if name is None:
        return zoo.levels[DEFAULT_LEVEL]
    level = zoo.levels.get(name)
    if level is None:
        counters.failure(
            "unknown_service_levels",
            f"no service level {name!r} in zoo {zoo.name!r}: the default one is used",
        )
        return zoo.levels[DEFAULT_LEVEL]
    return level


def _named(metadata: object) -> str | None:
    found = metadata.get(NAME_KEY) if isinstance(metadata, Mapping) else None
    return None if found is None else str(found)


FEATURES_SHARE = 0.8
"""Of the deadline: how long features are waited for. The rest is for a busy event loop, and to
decide."""
WITHOUT_FEATURES = "no features in time"
NONE_HEALTHY = "no deployment is healthy"


class MissedDeadlineError(Exception):
    """The decision took longer than the operator allows; ``barred`` are the ids of the deployments
    that cannot take the request, as far as that is known."""

    def __init__(self, message: str, barred: frozenset[str]) -> None:
        super().__init__(message)
        self.barred = barred


class RequestRouter:
    """The router of requests, without a state of its own beyond the requests that are open."""

    def __init__(
        self,
        settings: MessplusSettings,
        features: FeatureService,
        journal: Journal,
        open_requests: OpenRequests,
        explorer: Explorer,
        desk: LabelDesk,
        feedback: NextTurnFeedback,
        prompt_tokens: PromptTokens,
        gates: Gates,
        counters: Counters,
    ) -> None:
        self._gates = gates
        self._prompt_tokens = prompt_tokens
        self._settings = settings
        self._features = features
        self._journal = journal
        self._open = open_requests
        self._explorer = explorer
        self._desk = desk
        self._feedback = feedback
        self._counters = counters
        self._deciding: WeakValueDictionary[tuple[str, int], asyncio.Lock] = WeakValueDictionary()

    async def route(
        self,
        engine: Engine,
        deployments: Sequence[Deployment],
        messages: Sequence[Mapping[str, Any]] | None,
        kwargs: Mapping[str, Any] | None,
    ) -> Sequence[Deployment]:
        """Order the deployments of the engine's zoo as they are to be tried.

        Called by LiteLLM for every attempt: the first decides, a retry only demotes what failed.
        Where there are none, LiteLLM refuses the request: it is logged all the same. Raises
        MissedDeadlineError when the decision took too long; then nothing was changed.
        """
        target = exploration_target.get()
        if target is not None:
            return deployment.only(deployments, target, exploration_barred.get())
        request = read_request(messages, kwargs)
        if request is None:
            return _continued(deployments, kwargs)
        opened = self._open.get(request.metadata, request.litellm_call_id)
        if opened is None:
            opened = await self._decide_once(engine, deployments, request)
        else:
            opened.tried.update(_failed(request))
            opened.barred = (await self._admission(request, opened.needs, deployments)).barred
        order, barred = target_order(request.kwargs), opened.barred
        if order is not None:
            return deployment.best_of_order(deployments, opened.ranking, order, barred)
        return deployment.ranked(deployments, opened.ranking, opened.tried, barred)

    async def _admission(
        self, request: IncomingRequest, needs: Needs | None, deployments: Sequence[Deployment]
    ) -> Admission:
        return OPEN if needs is None else await self._gates.admit(request, needs, deployments)

    async def _decide_once(
        self, engine: Engine, deployments: Sequence[Deployment], request: IncomingRequest
    ) -> OpenRequest:
        """Decide once: where a second attempt comes while the first still waits, it gets the same
        decision."""
        if engine.encoder.is_fast and not engine.zoo.settings.gates:  # nobody waits
            return await self._decide(engine, deployments, request)
        key = (request.litellm_call_id, id(request.metadata))
        async with self._deciding.setdefault(key, asyncio.Lock()):
            opened = self._open.get(request.metadata, request.litellm_call_id)
            return opened or await self._decide(engine, deployments, request)

    async def _decide(
        self, engine: Engine, deployments: Sequence[Deployment], request: IncomingRequest
    ) -> OpenRequest:
        started = time.perf_counter()
        level = service_level(engine.zoo, request.metadata, self._counters)
        conversation = request.conversation()
        text = conversation.text
        waiting = time.perf_counter()
        allowed = FEATURES_SHARE * self._settings.deadline_seconds - (waiting - started)
        encoding = await self._features.features(conversation, allowed)
        encode_seconds = time.perf_counter() - waiting
        features = None if encoding is None else encoding.features
        surface = read_surface(conversation)
        needs = self._gates.needs(request, conversation) if engine.zoo.settings.gates else None
        admission = await self._admission(request, needs, deployments)
        healthy = {candidate_of(deployment) for deployment in deployments}
        eligible = [name for name in engine.zoo.candidates if name in (admission.eligible or ())]
        candidates = eligible or [
            name for name in engine.zoo.candidates if name in healthy or not healthy
        ]
        situation = engine.situation(
            level,
            Prompt(features, surface),
            len(text),
            candidates,
            request.most_completion_tokens,
            self._prompt_tokens.count(engine.zoo.name, conversation),
            is_forced=is_forced(eligible),
        )
        request_id = new_id()
        decision = engine.decide(request_id, level, situation)
        seconds = time.perf_counter() - started
        waited = 0.0 if engine.encoder.is_fast else encode_seconds  # is over: dropping saves none
        if seconds - waited > self._settings.deadline_seconds:
            engine.forget(request_id)
            raise MissedDeadlineError(f"{seconds * 1000:.1f} ms", admission.barred)
        if features is None:
            self._counters.add("features_late")
            decision = replace(decision, reason=f"{WITHOUT_FEATURES}: {decision.reason}")
        record = RequestRecord(
            request_id=request_id,
            created_at=datetime.now(UTC),
            zoo=engine.zoo.name,
            service_level=level.name,
            expected_t=situation.t,
            alpha=level.alpha,
            policy=engine.zoo.settings.policy,
            litellm_call_id=request.litellm_call_id,
            key_hash=request.key_hash,
            team_id=request.team_id,
            call_type=request.call_type,
            is_stream=request.is_stream,
            encoder=engine.encoder.name,
            features=features,
            prompt_characters=len(text),
            queue=situation.queue,
            chosen=decision.chosen,
            largest=baseline(situation) if eligible else engine.zoo.largest,
            is_exploration=decision.is_exploration,
            exploration_probability=decision.exploration_probability,
            reason=admission.explained(decision.reason),
            decision_seconds=seconds,
            aim=situation.alpha,
            expected_satisfaction=decision.expected_satisfaction,
            price=decision.price,
            propensity=decision.propensity,
            exploration_calls=len(decision.explored),
            encode_seconds=None if encoding is None else encode_seconds,
            encode_joules=None if encoding is None else encoding.joules,
            prompt=text,
            surface=surface,
            surface_version=VERSION,
            eligible=tuple(eligible) or None,
            **_estimates(situation),
        )
        explored = decision.explored
        if not healthy:
            record, explored = _refused(record), ()
        # A retry may find a deployment after all.
        opened = OpenRequest(record, decision.ranking, needs=needs, barred=admission.barred)
        if self._desk.is_watched(record.zoo):
            opened.asked = judged_request(record, request, conversation)
        self._open.add(opened, request.metadata)
        self._feedback.take(request)
        self._journal.write(record)
        self._explorer.start(opened, explored, request)
        return opened


def _refused(record: RequestRecord) -> RequestRecord:
    """Mark a request that LiteLLM refuses: nothing is called, and nothing expected of it."""
    return replace(
        record,
        is_exploration=False,
        exploration_calls=0,
        expected_satisfaction=None,
        reason=f"{NONE_HEALTHY}: {record.reason}",
    )


def _continued(
    deployments: Sequence[Deployment], kwargs: Mapping[str, Any] | None
) -> Sequence[Deployment]:
    """Pass through what is not routed: a response that continues another stays where that one was
    answered."""
    earlier = None if kwargs is None else continued_response(kwargs)
    return deployment.pinned(deployments, earlier and deployment_of_response(earlier))


def _estimates(situation: Situation) -> dict[str, Any]:
    return {
        "estimated_cost": {e.candidate: e.cost for e in situation.estimates},
        "estimated_satisfaction": {e.candidate: e.satisfaction for e in situation.estimates},
    }


def _failed(request: IncomingRequest) -> list[str]:
    """Return the deployment of the attempt before this one; LiteLLM leaves it in the metadata."""
    last = request.metadata.get("model_info")
    return [deployment_id({"model_info": last})] if isinstance(last, Mapping) else []
