"""The parts of the plugin: built, started, and stopped in an order that loses nothing."""

from dataclasses import asdict
from functools import partial

from fastapi import APIRouter
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.brain.arms import Arms, SamplePurses
from litellm_messplus.brain.brain import Brain
from litellm_messplus.brain.buying import Buyers
from litellm_messplus.brain.decided import RequestDecider
from litellm_messplus.brain.holds import Holds
from litellm_messplus.brain.influence import KeyInfluence, TokenBuckets
from litellm_messplus.brain.labelling import LabelWriter, build_label_desk
from litellm_messplus.brain.line_log import LineLog
from litellm_messplus.brain.modes import LiveModes, ModeChanges, WayBack
from litellm_messplus.core.encoder import Encoder
from litellm_messplus.deciding.decider import Engine
from litellm_messplus.encoders.service import FeatureService
from litellm_messplus.journal import Journal
from litellm_messplus.labels.judge.asking import JudgeSinks
from litellm_messplus.learning.keeper import Keeper
from litellm_messplus.learning.learner import Learner
from litellm_messplus.learning.outlet import outlet_of
from litellm_messplus.learning.spool import Spool
from litellm_messplus.records import new_id
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.tasks import Closings, Periodic
from litellm_messplus.serving.deployments.deployment import Failing, shared_path
from litellm_messplus.serving.deployments.gates import Gates
from litellm_messplus.serving.deployments.index import DeploymentIndex
from litellm_messplus.serving.deployments.live_zoos import LiveZoos
from litellm_messplus.serving.deployments.metering import Meter, PromptTokens
from litellm_messplus.serving.ends import CallSink
from litellm_messplus.serving.feedback import FeedbackDesk, NextTurnFeedback, RequestFinder
from litellm_messplus.serving.http import build_routes
from litellm_messplus.serving.judges import Judges
from litellm_messplus.serving.litellm_seam import flush_log_events
from litellm_messplus.serving.metrics import Distributions
from litellm_messplus.serving.monitoring import Retention, StatusWatch
from litellm_messplus.serving.open_requests import Authors, OpenRequests
from litellm_messplus.serving.page import Page
from litellm_messplus.serving.reading import RequestReader
from litellm_messplus.serving.repeating import Explorer
from litellm_messplus.serving.router import RequestRouter
from litellm_messplus.serving.scores import AnswerScores
from litellm_messplus.serving.second import SecondAnswers
from litellm_messplus.serving.served import ServedCalls
from litellm_messplus.serving.shared_counters import SharedCounters, readiness
from litellm_messplus.serving.zoos import ZooDesk, build_zoo_routes
from litellm_messplus.settings.schema import MessplusSettings
from litellm_messplus.settings.zoo import Zoos
from litellm_messplus.store.database import create_engine

COUNTING_SHARE = 0.4
"""Share of the deadline that a request waits until the tokens of its long prompt are counted."""
READING_CONNECTIONS = 2
"""Database connections for status, alerts and metrics, separate from those of log and feedback."""


class Parts:
    """The parts of one worker process. LiteLLM's hooks use those without an underscore.

    ``engines`` have been restored up to ``position``; ``prompt_tokens`` counts for the candidates
    whose tokenizer is available. ``modes`` have been read from the database; until then the modes
    of the file apply. With a ``keeper`` the learner is a process of its own, else it is in this
    one.
    """

    def __init__(
        self,
        settings: MessplusSettings,
        encoder: Encoder,
        engines: dict[str, Engine],
        database: AsyncEngine,
        position: int = 0,
        *,
        prompt_tokens: PromptTokens | None = None,
        modes: LiveModes | None = None,
        keeper: Keeper | None = None,
    ) -> None:
        self.engines = engines
        self.counters = counters = Counters()
        closings = self._closings = Closings(counters)
        keep = closings.keep  # closed in the reverse order of what follows
        self._settings = settings
        self._distributions = Distributions()
        self._database = database
        closings.then(database.dispose, "the database")
        self._shared_counters = keep(
            SharedCounters(database, counters, self._encoder_did, self._distributions.counts)
        )
        index, open_requests = DeploymentIndex(), OpenRequests()
        self._keeper = None if keeper is None else keep(keeper)
        self.sink = self._build_sink(position)
        self.journal = keep(
            Journal(
                self.sink,
                counters,
                store_text=settings.store_text,
                saw=self._distributions.saw,
                flush_seconds=settings.flush_seconds,
            )
        )
        self.live = LiveZoos(engines, index, database, counters, self.journal.follow)
        self._influence = KeyInfluence(settings, database, counters)
        self._writer = keep(LabelWriter(self.journal, self._influence, counters))
        report = self._writer.report
        largest = {name: engine.zoo.largest for name, engine in engines.items()}
        sinks = JudgeSinks(report, self.journal.write, counters)
        self._judges = Judges(settings, largest, sinks, database)
        self._buyers = Buyers(settings, self._judges.of_zoo, database, counters)
        self._writer.also(self._buyers.found)
        self._desk = keep(build_label_desk(settings, report, counters, self._judges.of_zoo))
        self._scores = AnswerScores(settings.zoos, self._desk, counters)
        self.gates = Gates(counters, count_seconds=COUNTING_SHARE * settings.deadline_seconds)
        self._holds = Holds(engines, index.candidate, counters)
        self.line_log = LineLog(database, self._holds, engines, counters)
        self.modes = modes or LiveModes(settings.zoos)
        self._changes = ModeChanges(database, self.modes)
        self._zoos = ZooDesk(database, engines, self.modes, self._changes)
        self._way_back = WayBack(database, engines, self.modes, self._changes, counters)
        self._samples = SamplePurses(settings.zoos, database)
        self._features = FeatureService(encoder, self._encoder_failed)
        brain = Brain(
            settings,
            engines,
            Arms(self.modes, self._samples, counters, seed=settings.seed),
            RequestDecider(settings, self._features, self._holds, self._buyers.of_zoo, counters),
            self._holds,
            self.journal,
            self._desk,
            counters,
        )
        meter = Meter(Zoos(engines), index.prices, counters)
        sink = CallSink(meter, brain, self._scores, counters)
        failing, authors = Failing(shared_path(database.url)), Authors(database)
        self.served = keep(ServedCalls(open_requests, authors, index, sink, failing, counters))
        closings.then(flush_log_events, "LiteLLM's log events")
        self._explorer = keep(Explorer(sink, counters))
        self.seconds = SecondAnswers(settings.zoos, open_requests, index, sink, counters)
        keep(self._features)
        self._feedback_desk = self._build_feedback_desk(open_requests)
        next_turn = keep(NextTurnFeedback(self._feedback_desk, counters))
        self.router = keep(
            RequestRouter(
                self.live,
                brain,
                RequestReader(self._holds, settings.store_identities),
                self.gates,
                prompt_tokens or PromptTokens(list(engines), []),
                failing,
                open_requests,
                self._explorer,
                next_turn,
                counters,
            )
        )
        reading = create_engine(database.url, connections=READING_CONNECTIONS)
        closings.then(reading.dispose, "the database's connections for reading")
        ready = partial(readiness, self.journal, self._shared_counters, self._state_seconds)
        self.watch = keep(
            StatusWatch(
                *(reading, engines, counters, self._shared_counters, ready), self._state_seconds
            )
        )
        self._page = keep(Page(database, engines, self.modes, self.watch, counters))
        self._retention = Retention(database, settings.retention, counters)
        self.tasks = keep(Periodic(counters))

    def _build_sink(self, position: int) -> Learner | Spool:
        """Build what takes the records: the learner itself, or the way to its process."""
        database, engines, counters = self._database, self.engines, self.counters
        if self._keeper is None:
            return Learner(database, engines, counters, followed=self._followed, position=position)
        return Spool(
            *(database, engines, counters, new_id(), outlet_of(database)), followed=self._followed
        )

    def _build_feedback_desk(self, open_requests: OpenRequests) -> FeedbackDesk:
        arrivals = self.journal.arrivals
        return FeedbackDesk(
            self._database,
            self.journal,
            RequestFinder(self._database, open_requests, arrivals, self.counters),
            self._settings.response_biases,
            self._influence,
            TokenBuckets(),
            self.counters,
            self._holds.session_digest,
        )

    def routes(self) -> APIRouter:
        """Return the endpoints under `/messplus`."""
        routes = build_routes(self._feedback_desk, self.counters, self.watch)
        routes.include_router(self._page.routes())
        routes.include_router(build_zoo_routes(self._zoos, self.counters))
        return routes

    def begin_at(self, position: int) -> None:
        """Set the position in the log to begin at, up to which the engines have been restored since
        the parts were built."""
        if isinstance(self.sink, Learner):
            self.sink.begin_at(position)

    def start(self) -> None:
        """Begin encoding and writing the log in the running event loop."""
        for part in (self._features, self.journal):
            part.start()
        if self._keeper is not None:
            self._keeper.start(self.tasks, self._state_seconds)
        for follower in (self.line_log, self.live):
            follower.start(self.tasks)
        for looking in (
            self.served,
            self._shared_counters,
            self.watch,
            self._judges,
            self._buyers,
            self._retention,
            self._changes,
            self._samples,
            self._way_back,
        ):
            looking.start(self.tasks)

    async def close(self) -> None:
        """Let exploration calls and log events finish, then write everything."""
        await self._closings.close()

    def _state_seconds(self) -> float:
        return self.sink.state_seconds

    def _followed(self, position: int) -> None:
        self.line_log.followed(position)

    def _encoder_did(self) -> dict[str, float]:
        return {name: float(value) for name, value in asdict(self._features.statistics()).items()}

    def _encoder_failed(self, error: Exception) -> None:
        self.counters.failure("encoder_failures", f"prompts were not encoded: {error!r}")
