"""The brain: a request in, an order out, each of them logged. It knows no LiteLLM."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial

from fastapi import APIRouter
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.brain.arms import (
    Arms,
    SamplePurses,
    granted_level,
    service_level,
    shadow_level,
)
from litellm_messplus.brain.authors import Authors
from litellm_messplus.brain.buying import Buyers
from litellm_messplus.brain.decided import (
    Intake,
    Recorder,
    RequestDecider,
    in_shadow,
)
from litellm_messplus.brain.feedback import (
    Caller,
    FeedbackDesk,
    NextTurnFeedback,
    RequestFinder,
)
from litellm_messplus.brain.holds import CandidateOf, Holds
from litellm_messplus.brain.influence import KeyInfluence, TokenBuckets
from litellm_messplus.brain.judges import CallsOf, Judges
from litellm_messplus.brain.labelling import (
    LabelWriter,
    build_label_desk,
    judged_call,
)
from litellm_messplus.brain.line_log import LineLog
from litellm_messplus.brain.live_catalog import LiveCatalog
from litellm_messplus.brain.messages import (
    Admission,
    Asked,
    Author,
    Ended,
    Order,
    Pin,
    judged_request,
)
from litellm_messplus.brain.metrics import Distributions
from litellm_messplus.brain.modes import LiveModes, ModeChanges, WayBack
from litellm_messplus.brain.monitoring import LostRequests, Retention, StatusWatch
from litellm_messplus.brain.pending import REMEMBERED, Pending, PendingRequests
from litellm_messplus.brain.routes import Access, build_routes
from litellm_messplus.brain.shared_counters import SharedCounters, readiness
from litellm_messplus.brain.zoos import ZooDesk, build_zoo_routes
from litellm_messplus.core.answer import AnswerSurface
from litellm_messplus.core.decision import Reason
from litellm_messplus.core.encoder import Encoder
from litellm_messplus.core.engine import Engine, Reading
from litellm_messplus.encoders.service import FeatureService
from litellm_messplus.journal import Journal
from litellm_messplus.labels.judge.asking import JudgeSinks
from litellm_messplus.learning.keeper import Keeper
from litellm_messplus.learning.learner import Learner
from litellm_messplus.learning.outlet import outlet_of
from litellm_messplus.learning.spool import Spool
from litellm_messplus.records import RequestRecord, new_id
from litellm_messplus.rows import without_words
from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.stand_ins import replace
from litellm_messplus.runtime.tasks import Closings, Periodic
from litellm_messplus.settings.schema import MessplusSettings
from litellm_messplus.store.database import create_engine
from litellm_messplus.switching.modes import Arm

READING_CONNECTIONS = 2
"""Database connections for status, alerts and metrics, separate from those of log and feedback."""


@dataclass(frozen=True, slots=True)
class Hands:
    """What the brain asks of the worker's hands."""

    candidate_of: CandidateOf
    calls_of: CallsOf
    decoded: Callable[[str], str]
    """Decodes the id of an answer that a client received to the one in the log."""


class Brain:
    """The decisions of one process, and what follows from each.

    ``engines`` have been restored up to ``position``. ``modes`` have been read from the database;
    until then the modes of the file apply. With a ``keeper`` the learner is a process of its own,
    else it is in this one.
    """

    def __init__(
        self,
        settings: MessplusSettings,
        encoder: Encoder,
        engines: Mapping[str, Engine],
        database: AsyncEngine,
        hands: Hands,
        position: int = 0,
        *,
        modes: LiveModes | None = None,
        keeper: Keeper | None = None,
    ) -> None:
        self.engines = engines
        self.database = database
        self.counters = counters = Counters()
        closings = self._closings = Closings(counters)
        keep = closings.keep  # closed in the reverse order of what follows
        closings.then(database.dispose, "the database")
        distributions = Distributions()
        self._shared_counters = keep(
            SharedCounters(database, counters, self._encoder_did, distributions.counts)
        )
        self._keeper = None if keeper is None else keep(keeper)
        self.sink = self._build_sink(position)
        self.journal = keep(
            Journal(
                self.sink,
                counters,
                store_text=settings.store_text,
                saw=distributions.saw,
                flush_seconds=settings.flush_seconds,
            )
        )
        self.catalog = LiveCatalog(engines, database, counters, self.journal.follow)
        influence = KeyInfluence(settings, database, counters)
        writer = keep(LabelWriter(self.journal, influence, counters))
        sinks = JudgeSinks(writer.report, self.journal.write, counters)
        largest = {name: engine.zoo.largest for name, engine in engines.items()}
        self._judges = Judges(settings, largest, sinks, database, hands.calls_of)
        judges = self._judges.of_zoo
        self._buyers = Buyers(settings, judges, database, counters)
        writer.also(self._buyers.found)
        self.desk = keep(build_label_desk(settings, writer.report, counters, judges))
        self.holds = Holds(engines, hands.candidate_of, counters)
        self.line_log = LineLog(database, self.holds, engines, counters)
        self.modes = modes or LiveModes(settings.zoos)
        self._changes = ModeChanges(database, self.modes)
        self._zoos = ZooDesk(database, engines, self.modes, self._changes)
        self._way_back = WayBack(database, engines, self.modes, self._changes, counters)
        self._samples = SamplePurses(settings.zoos, database)
        self._arms = Arms(self.modes, self._samples, counters, seed=settings.seed)
        self._features = keep(FeatureService(encoder, self._encoder_failed))
        self._decider = RequestDecider(
            settings, self._features, self.holds, self._buyers.of_zoo, counters
        )
        self._recorder = Recorder(settings)
        self._begun: Bounded[str, Intake] = Bounded(REMEMBERED)
        self._pending = PendingRequests()
        self._authors = Authors(database)
        arrivals = self.journal.arrivals
        self.feedback = FeedbackDesk(
            database,
            self.journal,
            RequestFinder(database, self._opened, arrivals, counters, hands.decoded),
            settings.response_biases,
            influence,
            TokenBuckets(),
            counters,
            self.holds.session_digest,
        )
        self.next_turn = keep(NextTurnFeedback(self.feedback, counters))
        reading = create_engine(database.url, connections=READING_CONNECTIONS)
        closings.then(reading.dispose, "the database's connections for reading")
        ready = partial(readiness, self.journal, self._shared_counters, self._state_seconds)
        shared = self._shared_counters
        watched = (reading, engines, counters, shared, ready, self._state_seconds)
        self.watch = keep(StatusWatch(*watched))
        self._lost = LostRequests(database, self.journal)
        self._retention = Retention(database, settings.retention, counters)

    def _build_sink(self, position: int) -> Learner | Spool:
        """Build what takes the records: the learner itself, or the way to its process."""
        given = (self.database, self.engines, self.counters)
        if self._keeper is None:
            return Learner(*given, followed=self._followed, position=position)
        return Spool(*given, new_id(), outlet_of(self.database), followed=self._followed)

    def routes(self, access: Access) -> APIRouter:
        """Return the endpoints under `/messplus`, without the page."""
        routes = build_routes(self.feedback, self.counters, self.watch, access)
        routes.include_router(build_zoo_routes(self._zoos, self.counters, access.administrator))
        return routes

    def begin_at(self, position: int) -> None:
        """Set the position in the log to begin at, up to which the engines have been restored since
        this was built."""
        if isinstance(self.sink, Learner):
            self.sink.begin_at(position)

    def start(self, tasks: Periodic) -> None:
        """Begin encoding and writing the log in the running event loop."""
        self._features.start()
        self.journal.start()
        if self._keeper is not None:
            self._keeper.start(tasks, self._state_seconds)
        self.line_log.start(tasks)
        for looking in (
            self._shared_counters,
            self.watch,
            self._judges,
            self._buyers,
            self._lost,
            self._retention,
            self._changes,
            self._samples,
            self._way_back,
        ):
            looking.start(tasks)

    async def close(self) -> None:
        """Let labels and verdicts be written, then everything else."""
        await self._closings.close()

    def _state_seconds(self) -> float:
        return self.sink.state_seconds

    def _followed(self, position: int) -> None:
        self.line_log.followed(position)

    def _encoder_did(self) -> dict[str, float]:
        return {name: float(value) for name, value in asdict(self._features.statistics()).items()}

    def _encoder_failed(self, error: Exception) -> None:
        self.counters.failure("encoder_failures", f"prompts were not encoded: {error!r}")

    # The road of a request: each step names it by its id.

    def begin(self, asked: Asked) -> str | None:
        """Draw the arm of a request, and find the promise that it counts towards. Return what
        serves it as before the router; None if it is to be decided.

        Raises RefusedError for a level that the zoo does not have."""
        engine = self.engines[asked.zoo]
        own = service_level(engine.zoo, asked.level, self.counters)
        trial, before = self._arms.arm(engine.zoo, asked)
        if before is None:
            level = granted_level(engine.zoo, own, asked.level, self.counters)
        else:
            level = shadow_level(own)
        self._begun[asked.request_id] = Intake(engine, asked, level, trial)
        self.next_turn.take(asked.metadata, asked.key_hash)
        return before

    async def decide(self, request_id: str, admission: Admission, began: float) -> Order:
        """Decide and log a request that waits for it, of which the hands ``began`` to read at that
        time of the performance counter."""
        intake = self._begun.pop(request_id)
        decided = await self._decider.decide(intake, admission, began)
        if decided.features is None:
            self.counters.add("features_late")
        record = self._recorder.decided(decided)
        self.journal.write(record)
        pending = Pending(without_words(record), intake.engine)
        if decided.standing is not None:
            pending.place = decided.standing.place
        if decided.reads:
            pending.decided = decided.question, decided.choice
        return self._order(pending, intake, decided.explored, decided.ranking, decided.pin)

    def pass_by(self, request_id: str, serves: str) -> Order:
        """Note a request that is served as before. It is logged without a decision, at once or, if
        it is to be decided in shadow too, when its call ends before."""
        intake = self._begun.pop(request_id)
        is_off = intake.trial.arm is Arm.OFF
        is_due = not is_off and self._arms.is_due(intake.zoo, request_id)
        if is_due:
            trial = self._arms.drawn(intake.zoo, intake.asked, intake.trial)
            intake = replace(intake, trial=trial)
        reason = Reason.OFF if is_off else Reason.UNDECIDED
        record = self._recorder.undecided(intake, serves, reason)
        self._pending.add(Pending(without_words(record), intake.engine, intake))
        if not is_due:
            self.give_up(request_id)
        return Order(record, is_due=is_due)

    def give_up(self, request_id: str) -> None:
        """Log a request without a decision, if it has none."""
        pending = self._pending.get(request_id)
        if pending is not None:
            self._ensure_logged(pending)

    async def shadow(self, request_id: str, admission: Admission, began: float) -> Order | None:
        """Decide and log a request that is served as before; None if its call has ended meanwhile,
        since it is logged without a decision then."""
        pending = self._pending.get(request_id)
        intake = None if pending is None else pending.undecided
        if pending is None or intake is None:
            return None
        try:
            decided = await self._decider.decide(intake, admission, began)
            if pending.undecided is None:
                intake.engine.forget(request_id)
                return None
            record, serves = self._recorder.decided(decided), pending.record.chosen
            called = self._arms.sampled(decided, record, serves)
            record = in_shadow(record, decided, serves, called)
            self.journal.write(record)
            pending.record, pending.undecided = without_words(record), None
            return self._order(pending, intake, called)
        except Exception:
            intake.engine.forget(request_id)
            raise

    def called(self, request_id: str, deployment: str | None, response_id: str | None) -> None:
        """Note which deployment answers, and the id of the answer, before it is logged: the next
        request of the conversation may come first, and feedback too."""
        pending = self._pending.get(request_id)
        if pending is None:
            return
        pending.response_id = response_id or pending.response_id
        if pending.place is not None and deployment is not None:
            self.holds.called(pending.place, pending.record.zoo, deployment)

    async def read(self, request_id: str, looks: AnswerSurface) -> Reading | None:
        """Read the answer of the chosen candidate, and decide whether another one is called; None
        if it was read before."""
        pending = self._pending.get(request_id)
        if pending is None or pending.decided is None:
            return None
        decided, pending.decided = pending.decided, None
        return pending.engine.reads(*decided, looks)

    def ended(self, ended: Ended) -> None:
        """Log an ended call, and show it to its conversation and to the sources of labels."""
        call, pending = ended.call, self._pending.get(ended.call.request_id)
        if pending is None:
            self.journal.write(call)
            return
        self._ensure_logged(pending)
        self.journal.write(call)
        self._authors.wrote(pending.record.zoo, call)
        if ended.continued is not None and pending.place is not None:
            self.holds.ended(pending.place, pending.record.zoo, call, ended.continued)
        judged = pending.judged_as(call) if ended.is_shown else None
        if judged is not None:
            self.desk.ended(judged_call(judged, pending.record, call, ended.answer))
        self._pending.ended(call)

    def left_out(self, request_id: str) -> None:
        """Note that an unseen call of a request is not made."""
        pending = self._pending.get(request_id)
        if pending is not None:
            pending.calls -= 1

    async def author_of(self, zoo: str, response_id: str | None) -> Author | None:
        """Find the author of the zoo's answer with that id, which LiteLLM's cache repeats; None if
        no call has it.

        Raises TimeoutError or SQLAlchemyError if the log cannot be read."""
        return await self._authors.of(zoo, response_id)

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
        self._pending.add(pending)
        return Order(
            pending.record,
            ranking,
            explored,
            pin,
            is_placed=pending.place is not None,
            is_judged=pending.judged is not None,
            is_read=pending.decided is not None,
        )

    def _ensure_logged(self, pending: Pending) -> None:
        """Log a request that is served as before, if its decision in shadow is still awaited."""
        if pending.undecided is not None:
            pending.undecided = None
            self.journal.write(pending.record)

    def _opened(self, given: str, caller: Caller) -> RequestRecord | None:
        """Find the record of a caller's newest request that has an id, and see to it that it is
        logged."""
        pending = self._pending.of_caller(given, caller)
        if pending is None:
            return None
        self._ensure_logged(pending)
        return pending.record
