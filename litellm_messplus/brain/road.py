"""The road of a request through the brain: what each message of a worker does."""

import time
from dataclasses import dataclass

from litellm_messplus.brain.arms import Arms, granted_level, service_level, shadow_level
from litellm_messplus.brain.authors import Authors
from litellm_messplus.brain.decided import Intake, Recorder, RequestDecider, in_shadow
from litellm_messplus.brain.feedback import NextTurnFeedback
from litellm_messplus.brain.holds import Holds
from litellm_messplus.brain.labelling import judged_call
from litellm_messplus.brain.live_catalog import LiveCatalog
from litellm_messplus.brain.messages import (
    Admission,
    Asked,
    Asking,
    Author,
    Ended,
    Order,
    Pin,
    Shown,
    judged_request,
)
from litellm_messplus.brain.monitoring import lost_call
from litellm_messplus.brain.pending import REMEMBERED, Pending, PendingRequests
from litellm_messplus.brain.web import Web
from litellm_messplus.brain.workers import Workers
from litellm_messplus.core.answer import AnswerReading, AnswerSurface
from litellm_messplus.core.decision import Reason
from litellm_messplus.core.engine import Engine
from litellm_messplus.costs.price import Price
from litellm_messplus.journal import Journal
from litellm_messplus.labels.source import LabelDesk
from litellm_messplus.rows import without_words
from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.stand_ins import replace
from litellm_messplus.switching.modes import Arm


@dataclass(eq=False, repr=False, kw_only=True)
class RequestRoad:
    """The road through this brain; its messages are described in `contract.Road`."""

    engines: dict[str, Engine]
    arms: Arms
    decider: RequestDecider
    recorder: Recorder
    journal: Journal
    pending: PendingRequests
    holds: Holds
    desk: LabelDesk
    authors: Authors
    next_turn: NextTurnFeedback
    catalog: LiveCatalog
    workers: Workers
    web: Web
    counters: Counters

    def __post_init__(self) -> None:
        self._begun: Bounded[str, Intake] = Bounded(REMEMBERED)

    async def begin(self, asked: Asked) -> str | None:
        intake, before = self._taken_in(asked)
        self._begun[asked.request_id] = intake
        return before

    async def route(self, asked: Asked, admission: Admission, spent: float) -> Order | str:
        intake, before = self._taken_in(asked)
        if before is None:
            return await self._decided(intake, admission, spent)
        self._begun[asked.request_id] = intake
        return before

    async def decide(self, request_id: str, admission: Admission, spent: float) -> Order:
        return await self._decided(self._begun.pop(request_id), admission, spent)

    def _taken_in(self, asked: Asked) -> tuple[Intake, str | None]:
        """Take a request in, with what serves it as before the router, None if it is decided."""
        engine = self.engines[asked.zoo]
        own = service_level(engine.zoo, asked.level, self.counters)
        trial, before = self.arms.arm(engine.zoo, asked)
        if before is None:
            level = granted_level(engine.zoo, own, asked.level, self.counters)
        else:
            level = shadow_level(own)
        self.catalog.saw(asked.zoo, asked.replicas)
        self.next_turn.take(asked.metadata, asked.key_hash)
        return Intake(engine, asked, level, trial), before

    async def _decided(self, intake: Intake, admission: Admission, spent: float) -> Order:
        decided = await self.decider.decide(intake, admission, time.perf_counter() - spent)
        if decided.features is None:
            self.counters.add("features_late")
        record = self.recorder.decided(decided)
        self.journal.write(record)
        pending = Pending(without_words(record), intake.engine)
        if decided.standing is not None:
            pending.place = decided.standing.place
        if decided.reads:
            pending.decided = decided.question, decided.choice
        return self._order(pending, intake, decided.explored, decided.ranking, decided.pin)

    async def pass_by(self, request_id: str, serves: str) -> Order:
        intake = self._begun.pop(request_id)
        is_off = intake.trial.arm is Arm.OFF
        is_due = not is_off and self.arms.is_due(intake.zoo, request_id)
        if is_due:
            trial = self.arms.drawn(intake.zoo, intake.asked, intake.trial)
            intake = replace(intake, trial=trial)
        reason = Reason.OFF if is_off else Reason.UNDECIDED
        record = self.recorder.undecided(intake, serves, reason)
        self.pending.add(Pending(without_words(record), intake.engine, intake))
        if not is_due:
            self.give_up(request_id)
        return Order(record, is_due=is_due)

    def give_up(self, request_id: str) -> None:
        pending = self.pending.get(request_id)
        if pending is not None:
            self.pending.ensure_logged(pending)

    async def shadow(self, request_id: str, admission: Admission, spent: float) -> Order | None:
        began = time.perf_counter() - spent
        pending = self.pending.get(request_id)
        intake = None if pending is None else pending.undecided
        if pending is None or intake is None:
            return None
        try:
            decided = await self.decider.decide(intake, admission, began)
            if pending.undecided is None:
                intake.engine.forget(request_id)
                return None
            record, serves = self.recorder.decided(decided), pending.record.chosen
            called = self.arms.sampled(decided, record, serves)
            record = in_shadow(record, decided, serves, called)
            self.journal.write(record)
            pending.record, pending.undecided = without_words(record), None
            return self._order(pending, intake, called)
        except Exception:
            intake.engine.forget(request_id)
            raise

    def called(self, request_id: str, deployment: str | None, response_id: str | None) -> None:
        pending = self.pending.get(request_id)
        if pending is None:
            return
        pending.response_id = response_id or pending.response_id
        if pending.place is not None and deployment is not None:
            self.holds.called(pending.place, pending.record.zoo, deployment)

    def abandon(self, request_id: str) -> None:
        self._begun.pop(request_id, None)
        pending = self.pending.get(request_id)
        if pending is not None:
            self.ended(Ended(lost_call(request_id, pending.record.chosen)))

    async def read(self, request_id: str, looks: AnswerSurface) -> AnswerReading | None:
        pending = self.pending.get(request_id)
        if pending is None or pending.decided is None:
            return None
        decided, pending.decided = pending.decided, None
        return pending.engine.reads(*decided, looks)

    def ended(self, ended: Ended) -> None:
        call, pending = ended.call, self.pending.get(ended.call.request_id)
        if pending is None:  # another brain ordered it
            if ended.record is not None:
                self.journal.write(ended.record)
            self.journal.write(call)
            return
        self.pending.ensure_logged(pending)
        self.journal.write(call)
        self.authors.wrote(pending.record.zoo, call)
        if ended.continued is not None and pending.place is not None:
            self.holds.ended(pending.place, pending.record.zoo, call, ended.continued)
        judged = pending.judged_as(call) if ended.is_shown else None
        if judged is not None:
            self.desk.ended(judged_call(judged, pending.record, call, ended.answer))
        self.pending.ended(call)

    def left_out(self, request_id: str) -> None:
        pending = self.pending.get(request_id)
        if pending is not None:
            pending.calls -= 1

    async def author_of(self, zoo: str, response_id: str | None) -> Author | None:
        return await self.authors.of(zoo, response_id)

    def shown(
        self, worker: str, zoo: str, prices: dict[str, Price], replicas: dict[str, str]
    ) -> None:
        if zoo in self.engines:
            self.catalog.take(worker, zoo, prices, replicas)

    def counted(self, worker: str, counts: dict[str, float]) -> None:
        self.workers.counted(worker, counts)

    async def answer(self, worker: str, asking: Asking) -> Shown:
        return await self.web.answer(asking, self.workers.hands_of(worker).authenticate)

    def _order(
        self,
        pending: Pending,
        intake: Intake,
        explored: tuple[str, ...],
        ranking: tuple[str, ...] = (),
        pin: Pin | None = None,
    ) -> Order:
        """Remember a decided request, and say what is done with it."""
        pending.calls += len(explored)
        if self.desk.is_watched(pending.record.zoo):
            pending.judged = judged_request(pending.record, intake.asked)
        self.pending.add(pending)
        return Order(
            pending.record,
            ranking,
            explored,
            pin,
            is_placed=pending.place is not None,
            is_judged=pending.judged is not None,
            is_read=pending.decided is not None,
        )
