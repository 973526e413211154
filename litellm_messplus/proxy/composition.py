"""The parts of the plugin: put together, started, and stopped in an order that loses nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from fastapi import APIRouter
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.encoders.service import FeatureService
from litellm_messplus.engine import Engine
from litellm_messplus.journal import Journal
from litellm_messplus.labels.judge.grader import Outlets
from litellm_messplus.prediction.encoder import Encoder
from litellm_messplus.proxy.deployments.energy_sources import MeasuredDeployment
from litellm_messplus.proxy.deployments.index import DeploymentIndex
from litellm_messplus.proxy.deployments.metering import Meter, PromptTokens
from litellm_messplus.proxy.energy_service import EnergyService
from litellm_messplus.proxy.explorer import Explorer
from litellm_messplus.proxy.feedback import FeedbackDesk, NextTurnFeedback, RequestFinder
from litellm_messplus.proxy.http import build_routes
from litellm_messplus.proxy.influence import KeyInfluence, ResponseBias, TokenBuckets
from litellm_messplus.proxy.judges import Judges
from litellm_messplus.proxy.labelling import LabelWriter, build_label_desk
from litellm_messplus.proxy.monitoring import StatusWatch
from litellm_messplus.proxy.open_requests import Authors, OpenRequests
from litellm_messplus.proxy.page import Page
from litellm_messplus.proxy.retention import Retention
from litellm_messplus.proxy.router import RequestRouter
from litellm_messplus.proxy.served_call import OtherWorkers
from litellm_messplus.proxy.shared_counters import SharedCounters
from litellm_messplus.runtime import Background, Counters
from litellm_messplus.settings.schema import MessplusSettings
from litellm_messplus.store.database import create_engine

READING_CONNECTIONS = 2
"""To the database, for status, alerts and metrics, beside those of the log and of feedback."""


class Parts:
    """One a worker process. Those without an underscore are what the hooks of LiteLLM use."""

    def __init__(
        self,
        settings: MessplusSettings,
        encoder: Encoder,
        engines: Mapping[str, Engine],
        database: AsyncEngine,
        position: int,
        measured: Sequence[MeasuredDeployment],
        prompt_tokens: PromptTokens,
    ) -> None:
        self.counters = counters = Counters()
        self.open_requests = OpenRequests()
        self.authors = Authors(database)
        self.index = DeploymentIndex()
        self.journal = Journal(
            database,
            engines,
            counters,
            flush_seconds=settings.flush_seconds,
            snapshot_every=settings.snapshot_every,
            position=position,
        )
        self._other_workers = OtherWorkers(database, position)
        self.energy = EnergyService(
            measured, self.index, engines, self.journal, self._other_workers, counters
        )
        self.meter = Meter(
            {name: engine.zoo for name, engine in engines.items()},
            self.index.prices,
            counters,
            self.energy.price_factor,
        )
        report = LabelWriter(self.journal).report
        outlets = Outlets(report, self.journal.write, counters)
        self._judges = Judges(settings, outlets, database)
        self.desk = build_label_desk(settings, report, counters, self._judges.of_zoo)
        self._explorer = Explorer(
            self.meter,
            self.energy,
            self.journal,
            self.desk,
            counters,
            concurrent=settings.concurrent_explorations,
            charge_caller=settings.charge_explorations,
            store_text=settings.store_text,
        )
        self._features = FeatureService(
            encoder,
            batch=settings.encoder_batch,
            wait_seconds=settings.encoder_wait_seconds,
            cache_entries=settings.encoder_cache,
            failed=self._encoder_failed,
        )
        self._response_bias = ResponseBias(settings, database, counters)
        self._feedback_desk = FeedbackDesk(
            database,
            self.journal,
            RequestFinder(database, self.open_requests, self.journal.arrivals, counters),
            self._response_bias,
            KeyInfluence(settings, database),
            TokenBuckets(settings.feedback_per_minute),
            counters,
        )
        self._next_turn_feedback = NextTurnFeedback(self._feedback_desk, counters)
        self.router = RequestRouter(
            settings,
            self._features,
            self.journal,
            self.open_requests,
            self._explorer,
            self.desk,
            self._next_turn_feedback,
            prompt_tokens,
            counters,
        )
        reading = create_engine(
            database.url.render_as_string(hide_password=False), connections=READING_CONNECTIONS
        )
        self._shared_counters = SharedCounters(database, counters, self._encoder_did)
        self.watch = StatusWatch(reading, engines, counters, self._shared_counters)
        self._page = Page(database, self.watch, counters)
        self._retention = Retention(settings, counters)
        self.joining = Background()
        self._database = database

    def routes(self) -> APIRouter:
        """The endpoints under `/messplus`."""
        routes = build_routes(self._feedback_desk, self.counters, self.watch)
        routes.include_router(self._page.routes())
        return routes

    def begin_at(self, position: int) -> None:
        """The engines have been restored up to there, since all this was made."""
        self.journal.begin_at(position)
        self._other_workers.begin_at(position)

    def start(self) -> None:
        """Begin writing the log, in the running event loop, and warm the encoder up."""
        self._features.start()
        self.journal.start()
        self._shared_counters.start()
        self.watch.start()
        self._judges.start()
        self._response_bias.start()
        self.energy.start()
        self._retention.start()

    async def close(self) -> None:
        """Let exploration calls and log events finish, then write everything."""
        try:
            await self.joining.close()
            await self._retention.close()
            await self.watch.close()
            await self._page.close()
            await self._judges.close()
            await self._response_bias.close()
            await self._features.close()
            await self._explorer.close()
            await _flush_log_events()
            await self.desk.close()
            await self._next_turn_feedback.close()
            await self.energy.close()
        except Exception:
            self.counters.failure("shutdown_failures", "calls under way were not waited for")
        await self.journal.close()
        await self._shared_counters.close()
        await self._database.dispose()

    def _encoder_did(self) -> dict[str, float]:
        did = asdict(self._features.statistics())
        return {name: float(value) for name, value in did.items() if value is not None}

    def _encoder_failed(self, error: Exception) -> None:
        self.counters.failure("encoder_failures", f"prompts were not encoded: {error!r}")


async def _flush_log_events() -> None:
    """LiteLLM 1.106 drops the log events that are queued at its end."""
    from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER

    await GLOBAL_LOGGING_WORKER.flush()
