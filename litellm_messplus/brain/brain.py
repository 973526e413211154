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
from litellm_messplus.brain.buying import Buyers
from litellm_messplus.brain.decided import (
    DecidedRequest,
    Intake,
    Recorder,
    RequestDecider,
    in_shadow,
)
from litellm_messplus.brain.feedback import (
    FeedbackDesk,
    FindOpened,
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
    judged_request,
)
from litellm_messplus.brain.line_log import LineLog
from litellm_messplus.brain.live_catalog import LiveCatalog
from litellm_messplus.brain.messages import Admission, Asked, Awaited, Continued, Order
from litellm_messplus.brain.metrics import Distributions
from litellm_messplus.brain.modes import LiveModes, ModeChanges, WayBack
from litellm_messplus.brain.monitoring import LostRequests, Retention, StatusWatch
from litellm_messplus.brain.routes import Access, build_routes
from litellm_messplus.brain.shared_counters import SharedCounters, readiness
from litellm_messplus.brain.zoos import ZooDesk, build_zoo_routes
from litellm_messplus.core.decision import Reason
from litellm_messplus.core.encoder import Encoder
from litellm_messplus.core.engine import Engine
from litellm_messplus.core.line import Place
from litellm_messplus.encoders.service import FeatureService
from litellm_messplus.journal import Journal
from litellm_messplus.labels.judge.asking import JudgeSinks
from litellm_messplus.labels.source import Answer, JudgedRequest
from litellm_messplus.learning.keeper import Keeper
from litellm_messplus.learning.learner import Learner
from litellm_messplus.learning.outlet import outlet_of
from litellm_messplus.learning.spool import Spool
from litellm_messplus.records import CallRecord, RequestRecord, new_id
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
    opened: FindOpened
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
        arrivals = self.journal.arrivals
        self.feedback = FeedbackDesk(
            database,
            self.journal,
            RequestFinder(database, hands.opened, arrivals, counters, hands.decoded),
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

    # The road of a request.

    def begin(self, asked: Asked) -> Intake:
        """Draw the arm of a request, and find the promise that it counts towards.

        Raises RefusedError for a level that the zoo does not have."""
        engine = self.engines[asked.zoo]
        own = service_level(engine.zoo, asked.level, self.counters)
        trial, before = self._arms.arm(engine.zoo, asked)
        if before is None:
            level = granted_level(engine.zoo, own, asked.level, self.counters)
        else:
            level = shadow_level(own)
        return Intake(engine, asked, level, trial, before)

    async def decide(self, intake: Intake, admission: Admission, began: float) -> Order:
        """Decide and log a request that waits for it, of which the hands ``began`` to read at that
        time of the performance counter."""
        decided = await self._decider.decide(intake, admission, began)
        if decided.features is None:
            self.counters.add("features_late")
        record = self._recorder.decided(decided)
        self.journal.write(record)
        awaited = Awaited(intake.engine, decided.question, decided.choice)
        return Order(
            record,
            decided.ranking,
            decided.explored,
            place=None if decided.standing is None else decided.standing.place,
            pin=decided.pin,
            judged=self._judged(record, intake),
            awaited=awaited if decided.reads else None,
        )

    def pass_by(self, intake: Intake, serves: str) -> tuple[Order, Intake | None]:
        """Record a request that is served as before, without a decision; it is not logged yet.
        Return it as it is to be decided in shadow too, None if it is not."""
        is_off = intake.trial.arm is Arm.OFF
        is_due = not is_off and self._arms.is_due(intake.zoo, intake.request_id)
        if is_due:
            trial = self._arms.drawn(intake.zoo, intake.asked, intake.trial)
            intake = replace(intake, trial=trial)
        reason = Reason.OFF if is_off else Reason.UNDECIDED
        order = Order(self._recorder.undecided(intake, serves, reason))
        return order, intake if is_due else None

    async def shadow(
        self,
        intake: Intake,
        serves: str,
        admission: Admission,
        began: float,
        is_open: Callable[[], bool],
    ) -> Order | None:
        """Decide and log a request that is served as before; None, without a record, if it is not
        ``is_open`` any more when it is decided, since it is logged as undecided then."""
        try:
            decided = await self._decider.decide(intake, admission, began)
            if is_open():
                return self._in_shadow(decided, serves)
            intake.engine.forget(intake.request_id)
            return None
        except Exception:
            intake.engine.forget(intake.request_id)
            raise

    def _in_shadow(self, decided: DecidedRequest, serves: str) -> Order:
        record, intake = self._recorder.decided(decided), decided.intake
        called = self._arms.sampled(decided, record, serves)
        record = in_shadow(record, decided, serves, called)
        self.journal.write(record)
        return Order(record, (), called, judged=self._judged(record, intake))

    def called(self, place: Place, zoo: str, deployment: str) -> None:
        """Note which deployment answers, before it is logged: the next request may come first."""
        self.holds.called(place, zoo, deployment)

    def ended(self, call: CallRecord) -> None:
        """Log an ended call."""
        self.journal.write(call)

    def label(
        self, judged: JudgedRequest, record: RequestRecord, call: CallRecord, answer: Answer | None
    ) -> None:
        """Show an ended call to the sources of labels; ``answer`` is None if it failed."""
        self.desk.ended(judged_call(judged, record, call, answer))

    def continued(self, place: Place, zoo: str, call: CallRecord, answer: Continued) -> None:
        """Note what a conversation goes on from."""
        self.holds.ended(place, zoo, call, answer)

    def _judged(self, record: RequestRecord, intake: Intake) -> JudgedRequest | None:
        is_watched = self.desk.is_watched(record.zoo)
        return judged_request(record, intake.asked) if is_watched else None
