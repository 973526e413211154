"""The hooks that LiteLLM calls; each lets the request through whatever fails here."""

from collections.abc import Awaitable, Callable
from typing import Any

from litellm import BadRequestError
from litellm.integrations.custom_logger import CustomLogger

from litellm_messplus.runtime.counters import logger
from litellm_messplus.runtime.errors import RefusedError
from litellm_messplus.serving import litellm_limits, litellm_seam
from litellm_messplus.serving.composition import Parts
from litellm_messplus.serving.visibility import show_attempt


class MessplusPlugin(CustomLogger):  # type: ignore[misc]
    """The plugin of one worker process. LiteLLM finds hooks on the class, and passes parameters by
    name."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.parts = parts
        self.zoos = parts.zoos
        self.counters = parts.counters

    def start(self) -> None:
        """Begin in the running event loop."""
        self.parts.start()

    def route_later(self, awaited: Callable[[], Awaitable[None]], come: str) -> None:
        """Leave every zoo to LiteLLM until what is ``awaited`` has ``come``, in words."""
        zoos, self.zoos = self.zoos, {}
        self.counters.add("database_awaited")

        async def join() -> None:
            await awaited()
            self.zoos = zoos
            logger.warning("%s: requests are routed from now on", come)

        self.parts.tasks.start(join(), "joining")

    def attach(self) -> None:
        """Add the routes to the running proxy, and the stop to its shutdown."""
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
        """Leave the deployments of a zoo that are to be tried next. On any failure LiteLLM chooses.

        Raises BadRequestError for a request that is refused because of what it asks for."""
        try:
            if model not in self.zoos:
                return healthy_deployments
            healthy = await litellm_limits.with_room(model, healthy_deployments, request_kwargs)
            left = list(await self.parts.router.route(model, healthy, messages, request_kwargs))
            show_attempt(self.parts.served.open_requests, left, request_kwargs, self.counters)
            return left
        except RefusedError as error:
            raise BadRequestError(str(error), model, "litellm_messplus") from error
        except Exception:
            self.counters.failure("routing_failures", "a request was not routed")
        return healthy_deployments

    async def async_post_call_success_hook(
        self, data: dict[str, Any], user_api_key_dict: Any, response: Any
    ) -> Any:
        """Return another model's answer in place of this one, if that is worth its call."""
        seconds = self.parts.seconds
        with self.counters.tolerated("readings_failed", "an answer was not read, and is kept"):
            return await seconds.in_place_of(data, response) if seconds.is_on else None
        return None

    def async_post_call_streaming_iterator_hook(
        self, user_api_key_dict: Any, response: Any, request_data: dict[str, Any]
    ) -> Any:
        """Follow a stream to its end, to know what the client got."""
        with self.counters.tolerated("outcome_failures", "a stream was not followed"):
            return self.parts.served.followed(request_data, response)
        return response

    async def async_post_call_response_headers_hook(
        self,
        data: dict[str, Any],
        user_api_key_dict: Any,
        response: Any,
        request_headers: dict[str, str] | None = None,
        litellm_call_info: dict[str, Any] | None = None,
    ) -> dict[str, str] | None:
        """Return the headers with the request's id and the model that served it, and note the
        answer for its conversation."""
        with self.counters.tolerated("header_failures", "an answer went without our headers"):
            return await self.parts.served.headers(data, response, litellm_call_info or {})
        return None

    async def async_log_success_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Add to the end of the served call what LiteLLM reports of it."""
        with self.counters.tolerated("outcome_failures", "a served call was not recorded"):
            await self.parts.served.reported(kwargs, response_obj)

    async def async_post_call_failure_hook(
        self,
        request_data: dict[str, Any],
        original_exception: Exception,
        user_api_key_dict: Any,
        traceback_str: str | None = None,
    ) -> None:
        """Record that the user got an error: every retry and fallback has failed."""
        with self.counters.tolerated("outcome_failures", "a failed request was not recorded"):
            key = getattr(user_api_key_dict, "api_key", None)
            self.parts.served.failed(request_data, key, original_exception)
