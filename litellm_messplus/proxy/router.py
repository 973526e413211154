"""Routing one request: LiteLLM's healthy deployments in, a ranking out; logged and explored."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from weakref import WeakValueDictionary

from litellm_messplus.deciding.decider import Choice, Engine, logged_limits
from litellm_messplus.journal import Journal
from litellm_messplus.labels.source import LabelDesk
from litellm_messplus.prediction.surface import VERSION
from litellm_messplus.proxy.asides import Asides, DecidedAside, beside, served_before
from litellm_messplus.proxy.buying import Buyer
from litellm_messplus.proxy.deployments import deployment
from litellm_messplus.proxy.deployments.deployment import Deployment, deployment_id
from litellm_messplus.proxy.deployments.gates import Gates
from litellm_messplus.proxy.deployments.live_zoos import LiveZoos
from litellm_messplus.proxy.explorer import Explorer
from litellm_messplus.proxy.feedback import NextTurnFeedback
from litellm_messplus.proxy.holding.holds import Holds, Pin, Standing
from litellm_messplus.proxy.labelling import judged_request
from litellm_messplus.proxy.litellm_seam import target_order
from litellm_messplus.proxy.modes import LiveModes
from litellm_messplus.proxy.open_requests import OpenRequest, OpenRequests
from litellm_messplus.proxy.reading import ReadRequest, RequestReader
from litellm_messplus.proxy.surfaces.answers import deployment_of_response
from litellm_messplus.proxy.surfaces.identity import asker_of, names_of
from litellm_messplus.proxy.surfaces.request import (
    IncomingRequest,
    continued_response,
    read_request,
)
from litellm_messplus.records import RequestRecord, new_id
from litellm_messplus.routing.decision import Reason, Situation
from litellm_messplus.routing.held import Gated, baseline
from litellm_messplus.runtime import Counters
from litellm_messplus.settings.schema import MessplusSettings
from litellm_messplus.state.limits import unfollowed
from litellm_messplus.switching.modes import LITELLM, Arm
from litellm_messplus.switching.trial import Trial
from litellm_messplus.switching.way_back import Mark, is_huge


@dataclass(frozen=True, slots=True)
class DecidedRequest:
    """A request that was decided. ``dropped`` says why the decision is not followed: no deployment
    is healthy, so that LiteLLM calls none, or it came too late; None where it is followed.
    ``bought`` is the probability with which labels of its answers are bought. ``standing`` is
    where it stands in a conversation, and ``pin`` who holds it."""

    read: ReadRequest
    choice: Choice
    seconds: float
    dropped: Reason | None
    bought: float | None
    standing: Standing | None = None
    pin: Pin | None = None

    @property
    def reason(self) -> Reason:
        """The reason that the log has."""
        return self.dropped or self.choice.decision.reason

    @property
    def ranking(self) -> tuple[str, ...]:
        """The candidates in the order in which they are to be tried: where the decision came too
        late, who holds the request, or nobody, so that LiteLLM chooses. A retry of a request that
        LiteLLM refuses may find a deployment after all."""
        if self.dropped is not Reason.DEADLINE_MISSED:
            return self.choice.decision.ranking
        return () if self.pin is None else (self.pin.candidate,)


class RequestRouter:
    """The router of requests, without a state of its own beyond the requests that are open."""

    def __init__(
        self,
        settings: MessplusSettings,
        live: LiveZoos,
        reader: RequestReader,
        journal: Journal,
        open_requests: OpenRequests,
        explorer: Explorer,
        desk: LabelDesk,
        feedback: NextTurnFeedback,
        gates: Gates,
        counters: Counters,
        buyers: Mapping[str, Buyer],
        holds: Holds,
        asides: Asides,
        modes: LiveModes,
    ) -> None:
        self._asides, self._modes = asides, modes
        self._gates = gates
        self._holds = holds
        self._buyers = buyers
        self._settings = settings
        self._live = live
        self._reader = reader
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
        Where there are none, LiteLLM refuses the request: it is logged all the same, and so is one
        whose decision took too long, which is not followed then.
        """
        self._live.notice(engine, deployments)
        target = deployment.exploration_target.get()
        if target is not None:
            return deployment.only(deployments, target, deployment.exploration_barred.get())
        if self._live.passes(engine, deployments):
            return deployments
        request = read_request(messages, kwargs)
        if request is None or (request.continues and not self._holds.holds(engine.zoo.name)):
            return _continued(deployments, kwargs)
        opened = self._open.get(request.metadata, request.litellm_call_id)
        if opened is None:
            opened = self._begin_aside(engine, deployments, request)
        else:
            opened.tried.update(_failed(request))
        if opened is not None and opened.record.trial.arm is Arm.BEFORE:
            return served_before(deployments, opened, target_order(request.kwargs))
        if opened is None:
            opened = await self._decide_once(engine, deployments, request)
        else:
            admission = await self._gates.admit(
                engine.zoo, request, opened.needs, deployments, opened.tried
            )
            opened.barred = admission.barred
        order, barred, pin = target_order(request.kwargs), opened.barred, opened.pin
        if order is not None:
            return deployment.best_of_order(deployments, opened.ranking, order, barred)
        if not (opened.ranking or opened.tried or barred):  # too late: LiteLLM's own choice
            return deployments
        left = deployments if pin is None else pin.among(deployments)
        ranked = deployment.ranked(left, opened.ranking, opened.tried, barred)
        return ranked if pin is None else pin.first(ranked, opened.tried)

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
        """Read, decide, record, announce."""
        started = time.perf_counter()
        read = await self._reader.read(engine.zoo, request, new_id(), deployments)
        standing = self._holds.standing(
            request, read.question, engine.zoo.name, deployments, read.admission.barred
        )
        if standing is not None:
            read = replace(read, question=standing.question)
        held = None if standing is None else standing.choose(engine)
        choice, bought = self._choose(engine, read) if held is None else (held, None)
        seconds = time.perf_counter() - started
        is_late = self._is_late(engine, read, seconds)
        dropped = self._dropped(engine, read, deployments, is_late=is_late)
        pin = None if standing is None else standing.pin if is_late else standing.followed(choice)
        decided = DecidedRequest(read, choice, seconds, dropped, bought, standing, pin)
        return self._announce(decided, self._record(engine, decided))

    def _begin_aside(
        self, engine: Engine, deployments: Sequence[Deployment], request: IncomingRequest
    ) -> OpenRequest | None:
        """Open a request that is served as before; None where it is routed."""
        if not self._modes.now[engine.zoo.name].draws:
            return None
        return self._asides.begin(engine, deployments, request, self._decide_aside)

    async def _decide_aside(
        self,
        engine: Engine,
        deployments: Sequence[Deployment],
        request: IncomingRequest,
        request_id: str,
    ) -> DecidedAside:
        """Decide a request that is served as before: nobody waits for it, and no deadline is
        missed."""
        started = time.perf_counter()
        read = await self._reader.read(engine.zoo, request, request_id, deployments)
        read = replace(read, question=replace(read.question, level=beside(read.question.level)))
        choice, bought = self._choose(engine, read)
        seconds = time.perf_counter() - started
        dropped = self._dropped(engine, read, deployments, is_late=False)
        decided = DecidedRequest(read, choice, seconds, dropped, bought)
        return DecidedAside(self._record(engine, decided), read, choice)

    def _choose(self, engine: Engine, read: ReadRequest) -> tuple[Choice, float | None]:
        """Decide, and draw whether labels of the answers are bought: with which probability."""
        buyer = self._buyers.get(engine.zoo.name)
        if buyer is None:
            return engine.decide(read.question), None
        bought: float | None = None

        def labelled(situation: Situation) -> bool | None:
            nonlocal bought
            bought, is_labelled = buyer.purchase(engine, read.question, read.request, situation)
            return is_labelled

        choice = engine.decide(read.question, labelled)
        if bought is not None:
            decision = buyer.beside(choice.decision, choice.situation)
            choice = replace(choice, decision=decision)
        return choice, bought

    def _is_late(self, engine: Engine, read: ReadRequest, seconds: float) -> bool:
        """Tell whether a decision took longer than the operator allows, and count it."""
        # The wait for a slow encoder is over: dropping the decision would save none of it.
        waited = 0.0 if engine.encoder.is_fast else read.encode_seconds
        is_late = seconds - waited > self._settings.deadline_seconds
        self._mark(engine.zoo.name, read, is_missed=is_late)
        if is_late:
            self._counters.failure("deadlines_missed", f"a decision took {seconds * 1000:.1f} ms")
        return is_late

    def _dropped(
        self, engine: Engine, read: ReadRequest, deployments: Sequence[Deployment], *, is_late: bool
    ) -> Reason | None:
        """Say why a decision is not followed, None where it is. Of one that is not, nothing is
        expected, and nothing is paid for its labels."""
        if deployments and not is_late:
            return None
        engine.expect_nothing(read.question.request_id)
        buyer = self._buyers.get(engine.zoo.name)
        if buyer is not None:
            buyer.give_back(read.question.request_id, read.request.key_hash)
        return Reason.DEADLINE_MISSED if deployments else Reason.NONE_HEALTHY

    def _mark(self, zoo: str, read: ReadRequest, *, is_missed: bool) -> None:
        """Remember for the way back whether a deadline was missed, unless the prompt's own size
        explains it."""
        conversation = read.request.conversation
        if not is_huge(len(conversation.turns), len(conversation.text)):
            self._modes.marks[zoo].append(Mark(read.request.key_hash, is_missed))

    def _record(self, engine: Engine, decided: DecidedRequest) -> RequestRecord:
        """Build the record of a decision for the log."""
        read, situation, decision = decided.read, decided.choice.situation, decided.choice.decision
        request, question, standing = read.request, read.question, decided.standing
        record = RequestRecord(
            request_id=question.request_id,
            created_at=datetime.now(UTC),
            zoo=engine.zoo.name,
            service_level=question.level.name,
            expected_t=situation.t,
            alpha=question.level.alpha,
            policy=engine.zoo.settings.policy,
            asker=asker_of(request),
            encoder=engine.encoder.name,
            features=read.features,
            prompt_characters=question.prompt_characters,
            estimated_cost={e.candidate: e.cost for e in situation.everyone},
            estimated_satisfaction={e.candidate: e.satisfaction for e in situation.everyone},
            queue=situation.queue,
            chosen=decision.chosen,
            largest=baseline(situation) if question.is_gated else engine.zoo.largest,
            is_exploration=decision.is_exploration,
            exploration_probability=decision.exploration_probability,
            reason=decided.reason,
            decision_seconds=decided.seconds,
            aim=situation.alpha,
            expected_satisfaction=decision.expected_satisfaction,
            price=decision.price,
            propensity=decision.propensity,
            exploration_calls=len(decision.explored),
            encode_seconds=None if read.encoding is None else read.encode_seconds,
            encode_joules=None if read.encoding is None else read.encoding.joules,
            # The journal would drop it too, by a copy of a record of fifty fields.
            prompt=request.conversation.text if self._settings.store_text else None,
            surface=question.prompt.surface,
            surface_version=VERSION,
            is_within_reach=decision.is_within_reach,
            label_probability=decided.bought,
            gated=Gated(question.candidates, read.admission.why) if question.is_gated else None,
            trial=Trial(conversation_draw=self._draw(engine.zoo.name, request)),
            names=names_of(request.metadata, are_kept=self._settings.store_identities),
            place=None if standing is None else standing.logged(decided.reason),
            limits=logged_limits(decided.choice),
            counted=None if standing is None else standing.counted,
        )
        return record if decided.dropped is None else _unclaimed(record, decided.pin)

    def _draw(self, zoo: str, request: IncomingRequest) -> float | None:
        return self._asides.draw(zoo, request) if self._modes.now[zoo].draws else None

    def _announce(self, decided: DecidedRequest, record: RequestRecord) -> OpenRequest:
        """Tell everyone who has to do with the request from now on."""
        read, request = decided.read, decided.read.request
        if read.encoding is None:
            self._counters.add("features_late")
        opened = OpenRequest(
            record,
            decided.ranking,
            needs=read.needs,
            barred=read.admission.barred,
            place=None if decided.standing is None else decided.standing.place,
            pin=decided.pin,
        )
        if self._desk.is_watched(record.zoo):
            opened.asked = judged_request(record, request)
        self._open.add(opened, request.metadata)
        self._feedback.take(request)
        self._journal.write(record)
        explored = decided.choice.decision.explored if decided.dropped is None else ()
        self._explorer.start(opened, explored, request)
        return opened


def _unclaimed(record: RequestRecord, pin: Pin | None) -> RequestRecord:
    """Remove what a decision that is not followed would claim: nothing is expected, nobody else is
    called, and no labels are bought. One that came too late chose nobody either."""
    unclaimed = replace(
        record,
        is_exploration=False,
        exploration_calls=0,
        label_probability=None,
        expected_satisfaction=None,
        limits=None,
    )
    if record.reason is Reason.NONE_HEALTHY:
        return unclaimed
    return replace(
        unclaimed,
        chosen=LITELLM if pin is None else pin.candidate,
        exploration_probability=0.0,
        propensity=None,
        limits=unfollowed(record.limits),
    )


def _continued(
    deployments: Sequence[Deployment], kwargs: Mapping[str, Any] | None
) -> Sequence[Deployment]:
    """Pass through what is not routed: where no conversations are held, a response that continues
    another stays where that one was answered."""
    earlier = None if kwargs is None else continued_response(kwargs)
    return deployment.pinned(deployments, earlier and deployment_of_response(earlier))


def _failed(request: IncomingRequest) -> list[str]:
    """Return the deployment of the attempt before this one; LiteLLM leaves it in the metadata."""
    last = request.metadata.get("model_info")
    return [deployment_id({"model_info": last})] if isinstance(last, Mapping) else []
