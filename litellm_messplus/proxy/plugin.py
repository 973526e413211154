"""What LiteLLM calls: the hooks, each of which lets the request through whatever happens here."""

from collections.abc import Mapping, Sequence
from typing import Any

from litellm.integrations.custom_logger import CustomLogger
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.engine import Engine
from litellm_messplus.prediction.encoder import Encoder
from litellm_messplus.proxy import litellm_seam, served_call
from litellm_messplus.proxy.composition import Parts
from litellm_messplus.proxy.deployments.deployment import ranked
from litellm_messplus.proxy.deployments.energy_sources import MeasuredDeployment
from litellm_messplus.proxy.deployments.metering import PromptTokens
from litellm_messplus.proxy.http import response_headers
from litellm_messplus.proxy.labelling import judged_call
from litellm_messplus.proxy.open_requests import UNKNOWN, Author, OpenRequest
from litellm_messplus.proxy.router import MissedDeadlineError
from litellm_messplus.proxy.surfaces import answers
from litellm_messplus.proxy.surfaces.answers import plain_response_id
from litellm_messplus.records import CallRecord
from litellm_messplus.settings.schema import MessplusSettings


class MessplusPlugin(CustomLogger):  # type: ignore[misc]
    """The plugin of one worker process. Hooks are found by LiteLLM on the class, parameters by
    their names."""

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
        self.parts = Parts(
            settings,
            encoder,
            engines,
            database,
            position,
            measured,
            prompt_tokens or PromptTokens(list(engines), []),
        )
        self.counters = self.parts.counters

    def start(self) -> None:
        """Begin writing the log, in the running event loop, and warm the encoder up."""
        self.parts.start()

    def attach(self) -> None:
        """Join the running proxy: its routes and its shutdown."""
        litellm_seam.proxy_app().include_router(self.parts.routes())
        litellm_seam.before_shutdown(self.close)

    async def close(self) -> None:
        """Let exploration calls and log events finish, then write everything."""
        await self.parts.close()

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
            self.parts.index.see(healthy_deployments, engine.zoo.settings)
            return list(
                await self.parts.router.route(engine, healthy_deployments, messages, request_kwargs)
            )
        except MissedDeadlineError as missed:
            self.counters.failure("deadlines_missed", f"a decision took {missed}")
            if missed.barred:
                return ranked(healthy_deployments, (), (), missed.barred)
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
            if answers.is_repeated(data, response):
                return await self._headers_of_repetition(opened, response)
            told = answers.response_id(response)
            if told:
                opened.response_id = plain_response_id(told)
            model = self._served(opened, litellm_call_info or {})
            return response_headers(opened.record, model, None)
        except Exception:
            self.counters.failure("header_failures", "an answer went without our headers")
            return None

    async def async_log_success_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Record that the served call has ended, after retries and fallbacks; streams at their
        end."""
        try:
            opened = self._opened(kwargs.get("litellm_params") or {}, kwargs)
            if opened is None:
                return
            payload = kwargs["standard_logging_object"]
            call = served_call.succeeded(
                opened,
                payload,
                response_obj,
                await self._author(opened, payload, response_obj),
                self.parts.meter,
            )
            if not call.is_cache_hit:
                self.parts.gates.succeeded(call.deployment_id, opened.needs)
            # The headers of a stream went out before anybody knew its id.
            opened.response_id = opened.response_id or call.response_id
            self.parts.authors.wrote(opened.record.zoo, call)
            self._ended(opened, call, response_obj)
        except Exception:
            self.counters.failure("outcome_failures", "a served call was not recorded")

    async def async_log_failure_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Learn from an attempt that has failed; a retry or a fallback may follow."""
        try:
            opened = self._opened(kwargs.get("litellm_params") or {}, kwargs)
            if opened is not None:
                payload = kwargs.get("standard_logging_object") or {}
                error = kwargs.get("exception")
                self.parts.gates.failed(payload.get("model_id"), error, opened.needs)
        except Exception:
            self.counters.failure("gate_failures", "a refusal was not learned from")

    async def async_post_call_failure_hook(
        self,
        request_data: dict[str, Any],
        original_exception: Exception,
        user_api_key_dict: Any,
        traceback_str: str | None = None,
    ) -> None:
        """Record that the user got an error: every retry and fallback has failed."""
        try:
            opened = self._opened(request_data)
            if opened is not None:
                self._ended(opened, served_call.failed(opened, original_exception), None)
        except Exception:
            self.counters.failure("outcome_failures", "a failed request was not recorded")

    def _ended(self, opened: OpenRequest, call: CallRecord, response: Any) -> None:
        """Log the served call, then show it to those who judge answers."""
        self.parts.journal.write(call)
        self.parts.energy.ended(opened.record.zoo, call)
        asked, opened.asked = opened.asked, None  # an open request is kept long after
        if asked is not None:
            self.parts.desk.ended(judged_call(asked, opened.record, call, response))

    def _opened(
        self, data: dict[str, Any], call: dict[str, Any] | None = None
    ) -> OpenRequest | None:
        call_id = (call or data).get("litellm_call_id")
        for name in ("litellm_metadata", "metadata"):
            opened = self.parts.open_requests.get(data.get(name), call_id)
            if opened is not None:
                return opened
        return None

    def _served(self, opened: OpenRequest, call_info: dict[str, Any]) -> str | None:
        """Return the candidate; a fallback outside the zoo goes by LiteLLM's id of the deployment.
        None on an error, which no model served."""
        info = call_info.get("model_info") or {}
        served = call_info.get("model_id") or info.get("id")
        if served is None:
            return None
        return self.parts.index.candidates_of[opened.record.zoo].get(served, str(served))

    async def _headers_of_repetition(self, opened: OpenRequest, response: Any) -> dict[str, str]:
        """Build the headers of an answer of LiteLLM's cache, which names who wrote it, where that
        is known by now."""
        try:
            opened.response_id = await answers.repeated_id(response)
            opened.author = await self.parts.authors.of(opened.record.zoo, opened.response_id)
        except Exception:
            self.counters.failure("header_failures", "an answer went without its author")
        name = None if opened.author is None else opened.author.name
        return response_headers(opened.record, name, name)

    async def _author(
        self, opened: OpenRequest, payload: Mapping[str, Any], response: Any
    ) -> Author:
        """Find who wrote the answer: who served it, unless LiteLLM's cache repeats an earlier
        one."""
        if not payload.get("cache_hit"):
            return served_call.author_of_hit(
                payload, self.parts.index.candidates_of[opened.record.zoo]
            )
        if opened.author is not None:
            return opened.author
        try:
            repeated = opened.response_id or await answers.repeated_id(response)
            found = await self.parts.authors.of(opened.record.zoo, repeated)
        except Exception:
            self.counters.failure("cached_answers_unknown", "the log did not say who wrote one")
            return UNKNOWN
        if found is None:
            self.counters.add("cached_answers_unknown")
            return UNKNOWN
        return found
