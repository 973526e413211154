"""Requests that are served as before: they go on at once, and the router decides aside.

The deployments go back to LiteLLM before anything is worked out. Of a sample, what the router would
have chosen is decided in a task, logged beside what served, and of some of that called unseen,
within a budget.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from litellm_messplus.deciding.decider import Choice, Engine
from litellm_messplus.draws import uniform
from litellm_messplus.journal import Journal
from litellm_messplus.labels.source import LabelDesk
from litellm_messplus.proxy.deployments import deployment
from litellm_messplus.proxy.deployments.deployment import Deployment, of_group
from litellm_messplus.proxy.explorer import Explorer
from litellm_messplus.proxy.labelling import judged_request
from litellm_messplus.proxy.modes import LiveModes
from litellm_messplus.proxy.open_requests import OpenRequest, OpenRequests
from litellm_messplus.proxy.reading import ReadRequest, service_level
from litellm_messplus.proxy.samples import SamplePurses
from litellm_messplus.proxy.surfaces.identity import asker_of, conversation_of, names_of
from litellm_messplus.proxy.surfaces.request import IncomingRequest
from litellm_messplus.records import RequestRecord, new_id
from litellm_messplus.routing.decision import Reason
from litellm_messplus.rows import without_words
from litellm_messplus.runtime import Counters
from litellm_messplus.settings.promise import ServiceLevel
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.switching.modes import (
    DECIDED_PER_SECOND,
    LITELLM,
    Arm,
    Pace,
    group_of,
)
from litellm_messplus.switching.trial import Trial
from litellm_messplus.vocabulary import level_before

MOST_WAITING = 256
"""Requests that are decided aside at once, in one worker; of more, nothing is worked out."""
CLOSE_SECONDS = 5.0
"""How long a stop waits for them."""


@dataclass(frozen=True, slots=True)
class DecidedAside:
    """A request as the router would have served it: the record of that, and what it rests on."""

    record: RequestRecord
    read: ReadRequest
    choice: Choice


Decide = Callable[[Engine, Sequence[Deployment], IncomingRequest, str], Awaitable[DecidedAside]]
"""Decides a request of that id without serving it."""


class Asides:
    """The requests of one worker that are served as before. A request is logged once: with the
    choice, or without, where its call ends before there is one, or nobody is to work it out."""

    def __init__(
        self,
        modes: LiveModes,
        open_requests: OpenRequests,
        journal: Journal,
        explorer: Explorer,
        desk: LabelDesk,
        purses: SamplePurses,
        counters: Counters,
        *,
        seed: int,
        store_identities: bool,
    ) -> None:
        self._store_identities = store_identities
        self._modes = modes
        self._open = open_requests
        self._journal = journal
        self._explorer = explorer
        self._desk = desk
        self._purses = purses
        self._counters = counters
        self._seed = seed
        self._paces: dict[str, Pace] = {}
        self._running: set[asyncio.Task[None]] = set()

    def draw(self, zoo: str, request: IncomingRequest) -> float | None:
        """Draw for the conversation of a request; None where all are routed anyway."""
        if not self._modes.now[zoo].draws:
            return None
        return uniform(self._seed, f"{zoo}/arm", conversation_of(request))

    def begin(
        self,
        engine: Engine,
        deployments: Sequence[Deployment],
        request: IncomingRequest,
        decide: Decide,
    ) -> OpenRequest | None:
        """Open a request that is served as before, and have it decided aside; None where it is
        routed."""
        zoo, request_id = engine.zoo, new_id()
        mode = self._modes.now[zoo.name]
        draw = self.draw(zoo.name, request) if mode.splits else None
        if mode.arm(draw) is Arm.ROUTED:
            return None
        is_due = self._is_due(zoo, request_id)
        if is_due and draw is None:
            draw = self.draw(zoo.name, request)
        before = mode.before or LITELLM
        record = self._undecided(
            engine, request, request_id, known_before(before, deployments), draw
        )
        opened = OpenRequest(record, (), before=before)
        opened.unlogged = partial(self._give_up, opened)
        self._open.add(opened, request.metadata)
        if is_due:
            self._start(engine, deployments, request, opened, decide)
        else:
            opened.ensure_logged()
        return opened

    def _start(
        self,
        engine: Engine,
        deployments: Sequence[Deployment],
        request: IncomingRequest,
        opened: OpenRequest,
        decide: Decide,
    ) -> None:
        """Have a request decided, in a task, unless too many are."""
        if len(self._running) >= MOST_WAITING:
            self._counters.add("asides_dropped")
            opened.ensure_logged()
            return
        # LiteLLM goes on to change its arguments, for the call that it makes of them.
        kept = replace(request, kwargs=dict(request.kwargs))
        task = asyncio.create_task(
            self._decide(engine, deployments, kept, opened, decide),
            name=f"messplus-aside-{opened.record.request_id}",
        )
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def _is_due(self, zoo: Zoo, request_id: str) -> bool:
        """Tell whether a request is decided aside: of the sample each one, of the others so many a
        second."""
        if self._is_sampled(zoo, request_id):
            return True
        pace = self._paces.setdefault(zoo.name, Pace(DECIDED_PER_SECOND))
        return pace.take(time.monotonic())

    def _is_sampled(self, zoo: Zoo, request_id: str) -> bool:
        """Draw whether another model is called unseen."""
        sample = zoo.settings.watch.sample
        return sample > 0.0 and uniform(self._seed, f"{zoo.name}/sample", request_id) < sample

    def _undecided(
        self,
        engine: Engine,
        request: IncomingRequest,
        request_id: str,
        serves: str,
        draw: float | None,
    ) -> RequestRecord:
        """Describe a request of which only what serves it is known, and who asks."""
        level = service_level(engine.zoo, request.metadata, self._counters)
        stream = level_before(level.name)
        return RequestRecord(
            request_id=request_id,
            created_at=datetime.now(UTC),
            zoo=engine.zoo.name,
            service_level=stream,
            expected_t=engine.state.requests[stream] + 1,
            alpha=level.alpha,
            policy=engine.zoo.settings.policy,
            asker=asker_of(request),
            encoder=engine.encoder.name,
            queue=engine.state.policy.queue(stream),
            chosen=serves,
            largest=engine.zoo.largest,
            reason=Reason.UNDECIDED,
            trial=Trial(Arm.BEFORE, conversation_draw=draw),
            names=names_of(request.metadata, are_kept=self._store_identities),
        )

    async def close(self) -> None:
        """Wait for what is being decided, but not for ever."""
        if self._running:
            _, pending = await asyncio.wait(self._running, timeout=CLOSE_SECONDS)
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)

    async def _decide(
        self,
        engine: Engine,
        deployments: Sequence[Deployment],
        request: IncomingRequest,
        opened: OpenRequest,
        decide: Decide,
    ) -> None:
        request_id = opened.record.request_id
        try:
            aside = await decide(engine, deployments, request, request_id)
            if opened.unlogged is None:
                engine.forget(request_id)
                self._counters.add("asides_late")
                return
            self._log(engine, request, opened, aside)
        except Exception:
            engine.forget(request_id)
            self._counters.failure("aside_failures", "a request was not decided aside")
            opened.ensure_logged()

    def _log(
        self, engine: Engine, request: IncomingRequest, opened: OpenRequest, aside: DecidedAside
    ) -> None:
        """Log what was decided aside, and call the sampled model."""
        called = self._sampled(engine, opened.record, aside)
        record = _decided(opened.record, aside, called, engine.zoo.settings.watch.sample)
        if self._desk.is_watched(record.zoo):
            opened.asked = judged_request(record, request)
        opened.needs, opened.barred = aside.read.needs, aside.read.admission.barred
        opened.record, opened.unlogged = without_words(record), None
        self._journal.write(record)
        self._explorer.start(opened, called, request)

    def _give_up(self, opened: OpenRequest) -> None:
        """Log a request without a choice."""
        opened.unlogged = None
        self._journal.write(opened.record)

    def _sampled(
        self, engine: Engine, opened: RequestRecord, aside: DecidedAside
    ) -> tuple[str, ...]:
        """Choose whom to call unseen: of a sampled request the choice, or, where that serves
        anyway, the next best."""
        zoo, ranking = engine.zoo, aside.choice.decision.ranking
        others = [name for name in ranking if name != opened.chosen]
        if not others or aside.record.reason is Reason.NONE_HEALTHY:
            return ()
        if aside.read.question.is_alone or not self._is_sampled(zoo, opened.request_id):
            return ()
        cost = aside.record.estimated_cost[others[0]]
        if not self._purses.pay(zoo.name, opened.asker.key_hash, cost):
            self._counters.add("samples_over_budget")
            return ()
        return (others[0],)


def beside(level: ServiceLevel) -> ServiceLevel:
    """Return the promise of a level as its requests that are served as before are counted."""
    return level.model_copy(update={"name": level_before(level.name)})


def _decided(
    opened: RequestRecord, aside: DecidedAside, called: Sequence[str], probability: float
) -> RequestRecord:
    decision, record = aside.choice.decision, aside.record
    costs = record.estimated_cost
    is_refused = record.reason is Reason.NONE_HEALTHY
    names = (decision.chosen, *decision.explored)
    return replace(
        record,
        chosen=opened.chosen,
        is_exploration=bool(called),
        exploration_calls=len(called),
        trial=replace(
            opened.trial,
            would_choose=None if is_refused else decision.chosen,
            would_cost=None if is_refused else sum(costs.get(name, 0.0) for name in names),
            sample_probability=probability if called else None,
        ),
    )


# What served before the router, as LiteLLM's deployments: all, a group of them, or a candidate.


def served_before(
    deployments: Sequence[Deployment], opened: OpenRequest, order: int | None
) -> Sequence[Deployment]:
    """Return the deployments as they were before: as they came, those of a group as they came, or
    those of one candidate first and the others as a last resort."""
    before = opened.before or LITELLM
    if before == LITELLM:
        return deployments
    group = group_of(before)
    if group is not None:
        return _members(deployments, group, order)
    if order is not None:
        return deployment.best_of_order(deployments, (before,), order)
    return deployment.ranked(deployments, (before,), opened.tried)


def _members(
    deployments: Sequence[Deployment], group: str, order: int | None
) -> Sequence[Deployment]:
    """Return the deployments of a group, untouched: the order, the weights and the strategy of
    LiteLLM decide. Where none is healthy, or of the order that it falls back to, all of them."""
    own = of_group(deployments, group)
    is_there = any(order is None or deployment.is_of_order(each, order) for each in own)
    return own if is_there else deployments


def known_before(before: str, deployments: Sequence[Deployment]) -> str:
    """Name the candidate that will serve, where a group has only one."""
    group = group_of(before)
    found = {deployment.candidate_of(each) for each in of_group(deployments, group or "")}
    return found.pop() if len(found) == 1 else before
