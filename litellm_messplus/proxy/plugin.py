"""What LiteLLM calls: the hooks, each of which lets the request through whatever happens here."""

from collections.abc import Sequence
from typing import Any

from litellm.integrations.custom_logger import CustomLogger
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.counters import Counters
from litellm_messplus.encoders.service import FeatureService
from litellm_messplus.engine import Engine
from litellm_messplus.journal import Journal
from litellm_messplus.labels.judge.grader import Outlets
from litellm_messplus.prediction.encoder import Encoder
from litellm_messplus.proxy import answers, outcomes
from litellm_messplus.proxy.deployment_index import DeploymentIndex
from litellm_messplus.proxy.energy_service import EnergyService
from litellm_messplus.proxy.energy_sources import MeasuredDeployment
from litellm_messplus.proxy.explorer import Explorer
from litellm_messplus.proxy.feedback import FeedbackDesk
from litellm_messplus.proxy.judges import Judges
from litellm_messplus.proxy.label_sources import build_label_desk
from litellm_messplus.proxy.labelling import LabelWriter, answered
from litellm_messplus.proxy.metering import Meter
from litellm_messplus.proxy.next_turn_feedback import NextTurnFeedback
from litellm_messplus.proxy.open_requests import OpenRequest, OpenRequests
from litellm_messplus.proxy.other_workers import OtherWorkers
from litellm_messplus.proxy.prompt_tokens import PromptTokens
from litellm_messplus.proxy.response_bias import ResponseBias
from litellm_messplus.proxy.router import MissedDeadlineError, RequestRouter
from litellm_messplus.proxy.routes import FEEDBACK_PATH, build_routes
from litellm_messplus.proxy.watch import StatusWatch
from litellm_messplus.records import CallRecord
from litellm_messplus.settings.schema import MessplusSettings


class MessplusPlugin(CustomLogger):  # type: ignore[misc]
    """One a worker process. Hooks are found by LiteLLM on the class, parameters by their names."""

    def __init__(
        self,
        settings: MessplusSettings,
        encoder: Encoder,
        engines: dict[str, Engine],
        database: AsyncEngine,
        position: int,
        measured: Sequence[MeasuredDeployment] = (),
        prompt_tokens: PromptTokens | None = None,
    ) -> None:
        super().__init__()
        self.engines = engines
        self.counters = Counters()
        self._settings = settings
        self._database = database
        self._journal = Journal(
            database,
            engines,
            self.counters,
            flush_seconds=settings.flush_seconds,
            snapshot_every=settings.snapshot_every,
            position=position,
        )
        self._open = OpenRequests()
        self._index = DeploymentIndex()
        self._energy = EnergyService(
            measured,
            self._index,
            engines,
            self._journal,
            OtherWorkers(database, position),
            self.counters,
        )
        self._meter = Meter(
            {name: engine.zoo for name, engine in engines.items()},
            self._index.prices,
            self.counters,
            self._energy.price_factor,
        )
        report = LabelWriter(self._journal).report
        self._judges = Judges(
            settings, Outlets(report, self._journal.write, self.counters), database
        )
        self._desk = build_label_desk(settings, report, self.counters, self._judges.of_zoo)
        self._explorer = Explorer(
            self._meter,
            self._energy,
            self._journal,
            self._desk,
            self.counters,
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
        self._watch = StatusWatch(database, engines, self._features, self.counters)
        self._response_bias = ResponseBias(settings, database, self.counters)
        self._feedback_desk = FeedbackDesk(database, self._journal, self._open, self._response_bias)
        self._next_turn_feedback = NextTurnFeedback(self._feedback_desk, self.counters)
        self._router = RequestRouter(
            settings,
            self._features,
            self._journal,
            self._open,
            self._explorer,
            self._desk,
            self._next_turn_feedback,
            prompt_tokens or PromptTokens(list(engines), []),
            self.counters,
        )

    def start(self) -> None:
        """Begin writing the log, in the running event loop, and warm the encoder up."""
        self._features.start()
        self._journal.start()
        self._watch.start()
        self._judges.start()
        self._response_bias.start()
        self._energy.start()

    def attach(self) -> None:
        """Join the running proxy: its routes and its shutdown."""
        from litellm.proxy import proxy_server

        routes = build_routes(self._feedback_desk, self.counters, self._watch)
        proxy_server.app.include_router(routes)
        shut_down_proxy = proxy_server.proxy_shutdown_event

        async def shut_down(*arguments: Any, **keywords: Any) -> None:
            # The one place that LiteLLM passes on SIGTERM; looked up there at call time.
            await self.close()
            await shut_down_proxy(*arguments, **keywords)

        proxy_server.proxy_shutdown_event = shut_down

    async def close(self) -> None:
        """Let exploration calls and log events finish, then write everything."""
        try:
            await self._watch.close()
            await self._judges.close()
            await self._response_bias.close()
            await self._features.close()
            await self._explorer.close()
            await _flush_log_events()
            await self._desk.close()
            await self._next_turn_feedback.close()
            await self._energy.close()
        except Exception:
            self.counters.failure("shutdown_failures", "calls under way were not waited for")
        await self._journal.close()
        await self._database.dispose()

    async def async_filter_deployments(
        self,
        model: str,
        healthy_deployments: list[Any],
        messages: list[Any] | None,
        request_kwargs: dict[str, Any] | None = None,
        parent_otel_span: Any = None,
    ) -> list[Any]:
        """Rank the healthy deployments of a zoo. On any failure LiteLLM's own choice stands."""
        try:
            engine = self.engines.get(model)
            if engine is None:
                return healthy_deployments
            self._index.see(healthy_deployments, engine.zoo.settings)
            return list(
                await self._router.route(engine, healthy_deployments, messages, request_kwargs)
            )
        except MissedDeadlineError as missed:
            self.counters.failure("deadlines_missed", f"a decision took {missed}")
        except Exception:
            self.counters.failure("routing_failures", "a request was not routed")
        return healthy_deployments

    async def async_post_call_response_headers_hook(
        self,
        data: dict[str, Any],
        user_api_key_dict: Any,
        response: Any,
        request_headers: dict[str, str] | None = None,
        litellm_call_info: dict[str, Any] | None = None,
    ) -> dict[str, str] | None:
        """Tell the client what served, under which promise, and where feedback goes."""
        try:
            opened = self._opened(data)
            if opened is None:
                return None
            opened.response_id = answers.response_id(response) or opened.response_id
            return self._headers(opened, litellm_call_info or {})
        except Exception:
            self.counters.failure("header_failures", "an answer went without our headers")
            return None

    async def async_log_success_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """The served call has ended, after retries and fallbacks; streams at their end."""
        try:
            opened = self._opened(kwargs.get("litellm_params") or {}, kwargs)
            if opened is None:
                return
            call = outcomes.succeeded(
                opened,
                kwargs["standard_logging_object"],
                response_obj,
                self._index.candidates,
                self._meter,
                store_text=self._settings.store_text,
            )
            self._ended(opened, call, response_obj)
        except Exception:
            self.counters.failure("outcome_failures", "a served call was not recorded")

    async def async_post_call_failure_hook(
        self,
        request_data: dict[str, Any],
        original_exception: Exception,
        user_api_key_dict: Any,
        traceback_str: str | None = None,
    ) -> None:
        """The user got an error: every retry and fallback has failed."""
        try:
            opened = self._opened(request_data)
            if opened is not None:
                self._ended(opened, outcomes.failed(opened, original_exception), None)
        except Exception:
            self.counters.failure("outcome_failures", "a failed request was not recorded")

    def _ended(self, opened: OpenRequest, call: CallRecord, response: Any) -> None:
        """Log the served call, then show it to those who judge answers."""
        self._journal.write(call)
        self._energy.ended(opened.record.zoo, call)
        asked, opened.asked = opened.asked, None  # an open request is kept long after
        if asked is not None:
            self._desk.ended(answered(asked, opened.record, call, response))

    def _encoder_failed(self, error: Exception) -> None:
        self.counters.failure("encoder_failures", f"prompts were not encoded: {error!r}")

    def _opened(
        self, data: dict[str, Any], call: dict[str, Any] | None = None
    ) -> OpenRequest | None:
        call_id = (call or data).get("litellm_call_id")
        for name in ("litellm_metadata", "metadata"):
            opened = self._open.get(data.get(name), call_id)
            if opened is not None:
                return opened
        return None

    def _headers(self, opened: OpenRequest, call_info: dict[str, Any]) -> dict[str, str]:
        record = opened.record
        info = call_info.get("model_info") or {}
        served = call_info.get("model_id") or info.get("id")
        headers = {
            "x-messplus-request-id": record.request_id,
            "x-messplus-service-level": record.service_level,
            "x-messplus-exploration": str(record.is_exploration).lower(),
            "x-messplus-feedback": FEEDBACK_PATH,
        }
        if served is None:  # an error, which no model served
            return headers
        # A fallback outside the zoo goes by LiteLLM's id of the deployment.
        return {"x-messplus-model": self._index.candidates.get(served, str(served)), **headers}


async def _flush_log_events() -> None:
    """LiteLLM 1.106 drops the log events that are queued at its end."""
    from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER

    await GLOBAL_LOGGING_WORKER.flush()
