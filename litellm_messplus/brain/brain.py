"""The brain of a database: its parts, started and stopped in an order that loses nothing."""

from collections.abc import Mapping
from dataclasses import asdict

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.brain.arms import Arms, SamplePurses
from litellm_messplus.brain.authors import Authors
from litellm_messplus.brain.buying import Buyers
from litellm_messplus.brain.decided import Recorder, RequestDecider
from litellm_messplus.brain.feedback import FeedbackDesk, NextTurnFeedback, RequestFinder
from litellm_messplus.brain.holds import Holds
from litellm_messplus.brain.influence import KeyInfluence, TokenBuckets
from litellm_messplus.brain.judges import Judges
from litellm_messplus.brain.labelling import LabelWriter, build_label_desk
from litellm_messplus.brain.line_log import LineLog
from litellm_messplus.brain.live_catalog import LiveCatalog
from litellm_messplus.brain.messages import ZooNow
from litellm_messplus.brain.metrics import Distributions
from litellm_messplus.brain.modes import LiveModes, ModeChanges, WayBack
from litellm_messplus.brain.monitoring import LostRequests, Retention, StatusWatch
from litellm_messplus.brain.opening import Opened
from litellm_messplus.brain.pending import PendingRequests
from litellm_messplus.brain.road import RequestRoad
from litellm_messplus.brain.web import Web
from litellm_messplus.brain.workers import Readiness, Workers
from litellm_messplus.brain.zoos import ZooDesk
from litellm_messplus.core.encoder import Encoder
from litellm_messplus.core.engine import Engine
from litellm_messplus.encoders.lookup import load_encoder
from litellm_messplus.encoders.service import FeatureService
from litellm_messplus.journal import Journal
from litellm_messplus.labels.judge.asking import JudgeSinks
from litellm_messplus.learning.learner import Learner
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.tasks import Closings, Periodic
from litellm_messplus.settings.schema import MessplusSettings
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.store.database import create_engine

READING_CONNECTIONS = 2
"""Database connections for status, alerts and metrics, separate from those of log and feedback."""


class Brain:
    """The one brain of a database: it decides requests, logs them, learns from them and shows them.

    Until `begin`, the modes of the file apply.
    """

    def __init__(
        self,
        settings: MessplusSettings,
        encoder: Encoder,
        engines: dict[str, Engine],
        database: AsyncEngine,
    ) -> None:
        self.engines = engines
        self.database = database
        self.counters = counters = Counters()
        closings = self._closings = Closings(counters)
        keep = closings.keep  # closed in the reverse order of what follows
        closings.then(database.dispose, "the database")
        self.tasks = Periodic(counters)
        self.is_started = False
        distributions = Distributions()
        self.workers = Workers(counters, self._encoder_did, distributions.counts)
        self.learner = Learner(database, engines, counters)
        self.journal = journal = keep(
            Journal(
                self.learner,
                counters,
                store_text=settings.store_text,
                saw=distributions.saw,
                flush_seconds=settings.flush_seconds,
            )
        )
        self.catalog = LiveCatalog(engines, database, counters, journal.follow)
        influence = KeyInfluence(settings, database, counters)
        writer = keep(LabelWriter(journal, influence, counters))
        sinks = JudgeSinks(writer.report, journal.write, counters)
        largest = {name: engine.zoo.largest for name, engine in engines.items()}
        self.judges = Judges(settings, largest, sinks, database, self.workers)
        self.buyers = Buyers(settings, self.judges.of_zoo, database, counters)
        writer.also(self.buyers.found)
        desk = keep(build_label_desk(settings, writer.report, counters, self.judges.of_zoo))
        self.holds = Holds(engines, self.catalog.candidate, counters)
        self.line_log = LineLog(database, self.holds, engines, counters)
        self.modes = LiveModes(settings.zoos)
        self.changes = ModeChanges(database, self.modes)
        self.way_back = WayBack(database, engines, self.modes, self.changes, counters)
        self.samples = SamplePurses(settings.zoos, database)
        self.features = keep(FeatureService(encoder, self._encoder_failed))
        pending = PendingRequests(journal.write)
        self.feedback = FeedbackDesk(
            database,
            journal,
            RequestFinder(database, pending.opened, journal.arrivals, counters, self._decoded),
            settings.response_biases,
            influence,
            TokenBuckets(),
            counters,
            self.holds.session_digest,
        )
        reading = create_engine(database.url, connections=READING_CONNECTIONS)
        closings.then(reading.dispose, "the database's connections for reading")
        self.watch = keep(
            StatusWatch(reading, engines, counters, self.workers, lambda: self.readiness)
        )
        self.web = keep(
            Web(
                database,
                self.feedback,
                ZooDesk(database, engines, self.modes, self.changes),
                self.watch,
                counters,
            )
        )
        self.road = RequestRoad(
            engines=engines,
            arms=Arms(self.modes, self.samples, counters, seed=settings.seed),
            decider=RequestDecider(
                settings, self.features, self.holds, self.buyers.of_zoo, counters
            ),
            recorder=Recorder(settings),
            journal=journal,
            pending=pending,
            holds=self.holds,
            desk=desk,
            authors=Authors(database),
            next_turn=keep(NextTurnFeedback(self.feedback, counters)),
            catalog=self.catalog,
            workers=self.workers,
            web=self.web,
            counters=counters,
        )
        self._lost = LostRequests(database, journal, self.workers)
        self._retention = Retention(database, settings.retention, counters)
        keep(self.tasks)

    @property
    def readiness(self) -> Readiness:
        """Whether requests are routed now, by the last try to write the log."""
        if not self.is_started:
            return Readiness.ABSENT
        return Readiness.DEGRADED if self.journal.is_failing else Readiness.ROUTING

    @property
    def zoos(self) -> Mapping[str, ZooNow]:
        """The zoos as they are now, for the workers."""
        return {
            name: ZooNow(
                engine.zoo.prices,
                engine.zoo.absent,
                engine.zoo.anchor,
                self.holds.holds(name),
                self.routes_all(name),
                self.modes.now[name].before or engine.zoo.largest,
            )
            for name, engine in self.engines.items()
        }

    def routes_all(self, zoo: str) -> bool:
        """Tell whether all requests of a zoo are routed, but for those whose client switches that
        off."""
        return not self.modes.now[zoo].draws

    def begin(self, opened: Opened) -> None:
        """Go on from where the database was opened, with the engines and modes restored from it."""
        self.learner.begin_at(opened.position)
        self.line_log.begin(opened.conversation_key)

    def start(self) -> None:
        """Begin encoding and writing the log in the running event loop."""
        self.is_started = True
        self.features.start()
        self.journal.start()
        for looking in (
            self.line_log,
            self.catalog,
            self.watch,
            self.judges,
            self.buyers,
            self._lost,
            self._retention,
            self.changes,
            self.samples,
            self.way_back,
        ):
            looking.start(self.tasks)

    async def close(self) -> None:
        """Let labels and verdicts be written, then everything else."""
        await self._closings.close()

    def leave(self, worker: str) -> None:
        """Note that a worker is gone."""
        self.workers.leave(worker)
        self.catalog.leave(worker)

    async def _decoded(self, given: str) -> str:
        return await self.workers.any().decoded(given)

    def _encoder_did(self) -> dict[str, float]:
        return {name: float(value) for name, value in asdict(self.features.statistics()).items()}

    def _encoder_failed(self, error: Exception) -> None:
        self.counters.failure("encoder_failures", f"prompts were not encoded: {error!r}")


def new_brain(settings: MessplusSettings, zoos: Mapping[str, Zoo]) -> Brain:
    """Return a brain of these zoos, with nothing read from its database. Raises
    ConfigurationError."""
    encoder = load_encoder(settings.encoder)
    engines = {name: Engine(zoo, encoder, settings.seed) for name, zoo in zoos.items()}
    return Brain(settings, encoder, engines, create_engine(settings.database))
