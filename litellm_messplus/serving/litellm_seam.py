"""Every name of LiteLLM that it does not document, in one place: what to read at an upgrade.

The other modules use what LiteLLM's docs show: `CustomLogger` and its hooks, and functions and
errors of the package itself. A number is that of an issue or a pull request of BerriAI/litellm.
`litellm_fit.py` tries every name at the start, with the arguments that are used here.

The proxy itself is imported where it is used: `messplus check` reads a configuration without it.
"""

import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from inspect import signature
from typing import Any

import litellm

# The import points tiktoken at the files in LiteLLM's package. Without it, tiktoken downloads them.
import litellm.litellm_core_utils.default_encoding
import tiktoken
from fastapi import FastAPI, Request
from litellm.litellm_core_utils.core_helpers import get_metadata_variable_name_from_kwargs
from litellm.router_strategy.tag_based_routing import get_deployments_for_tag
from litellm.types.router import RouterRateLimitError
from litellm.types.utils import CustomPricingLiteLLMParams, all_litellm_params

NO_DEPLOYMENT_LEFT: type[Exception] = RouterRateLimitError
"""What LiteLLM's router raises where every deployment of a group is in cooldown."""
OWN_PARAMETERS = frozenset(all_litellm_params)
"""Arguments of a call that are LiteLLM's own, and go to no endpoint."""
OWN_RATES = frozenset(CustomPricingLiteLLMParams.model_fields)
"""The keys by which a deployment has a price of its own at LiteLLM."""


# The running proxy.


def proxy_app() -> FastAPI:
    """Return the proxy's FastAPI application."""
    from litellm.proxy import proxy_server

    app: FastAPI = proxy_server.app
    return app


def llm_router() -> Any:
    """Return the proxy's router as it is now."""
    from litellm.proxy import proxy_server

    # Asked for each time: LiteLLM makes a new router when its configuration changes.
    return proxy_server.llm_router


def running_router() -> Any:
    """Return the proxy's router as it is now; None where no proxy runs in this process."""
    return getattr(sys.modules.get("litellm.proxy.proxy_server"), "llm_router", None)


def proxy_configuration() -> Mapping[str, Any]:
    """Return the configuration that the proxy was started with, our section included."""
    from litellm.proxy import proxy_server

    config: Mapping[str, Any] = proxy_server.proxy_config.get_config_state()
    return config


# Reads of the proxy's router: official entry points since LiteLLM 1.109, attributes before.


def _registry(router: Any) -> Any:
    """Return the official reads of the deployments; None before LiteLLM 1.109."""
    return router.registry() if hasattr(router, "registry") else None


def _settings(router: Any) -> Any:
    """Return the owner of a router's settings."""
    return router.settings() if hasattr(router, "settings") else router


def deployments_of(router: Any) -> Sequence[Mapping[str, Any]]:
    """Return all deployments of the proxy's router; an edited one is another object."""
    registry = _registry(router)
    return (router.model_list if registry is None else registry.all()) or ()


def routing_groups_of(router: Any) -> dict[str, tuple[str, ...]]:
    """Return the model names of each routing group of the proxy's router."""
    registry = _registry(router)
    groups = router.routing_groups if registry is None else registry.routing_groups()
    return {name: tuple(group.models) for name, group in (groups or {}).items()}


def router_model_info(router: Any, deployment: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the entry of a deployment that LiteLLM's checks before a call read, with its window.

    Raises a bare Exception for a model that LiteLLM does not know.
    """
    registry = _registry(router)
    read = router.get_router_model_info if registry is None else registry.router_model_info
    found: Mapping[str, Any] = read(
        deployment=deployment, received_model_name=str(deployment.get("model_name"))
    )
    return found


def checks_before_calls(router: Any) -> bool:
    """Return whether LiteLLM compares each prompt with the windows of the deployments."""
    return bool(_settings(router).enable_pre_call_checks)


def stores_models(config: Mapping[str, Any]) -> bool:
    """Return whether LiteLLM has models in its database too, as a configuration and the environment
    say."""
    stated = (config.get("general_settings") or {}).get("store_model_in_db")
    if stated is None:
        stated = os.environ.get("STORE_MODEL_IN_DB", "")
    return stated is True or str(stated).lower() == "true"


def before_shutdown(close: Callable[[], Awaitable[None]]) -> None:
    """Have the proxy wait for ``close`` when it stops."""
    from litellm.proxy import proxy_server

    shut_down_proxy = proxy_server.proxy_shutdown_event

    async def shut_down(*arguments: Any, **keywords: Any) -> None:
        await close()
        await shut_down_proxy(*arguments, **keywords)

    # The one place that LiteLLM passes on SIGTERM; it looks the name up there at call time.
    proxy_server.proxy_shutdown_event = shut_down


HOOKS = ("litellm.proxy.", "litellm.router", "litellm._service_logger")
"""The modules of callbacks that LiteLLM registers itself in every proxy: they keep no log."""


def are_logs_read() -> bool:
    """Return whether LiteLLM tells anybody of its log events but us: its database, or a callback
    that the operator named."""
    proxy_server = sys.modules.get("litellm.proxy.proxy_server")
    if getattr(proxy_server, "prisma_client", None) is not None:
        return True
    own = (*HOOKS, __name__.partition(".")[0] + ".")
    # A name that LiteLLM has not turned into a logger yet is of no module.
    return any(
        not str(getattr(each, "__module__", "")).startswith(own)
        for each in (*litellm.callbacks, *litellm.success_callback)
    )


async def flush_log_events() -> None:
    """Let the log events that are queued reach the callbacks."""
    from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER

    # At its end LiteLLM drops what its logging worker has not sent yet (of the same kind: #36548).
    await GLOBAL_LOGGING_WORKER.flush()


async def authenticate(request: Request) -> tuple[str | None, bool]:
    """Return the hash of the key of a request, and whether it is an administrator's.

    Raises what LiteLLM answers a key that it refuses with.
    """
    from litellm.proxy._types import LitellmUserRoles
    from litellm.proxy.auth.user_api_key_auth import user_api_key_auth

    key = await user_api_key_auth(request=request, **key_headers(request.headers))
    return key.api_key, key.user_role == LitellmUserRoles.PROXY_ADMIN


def key_headers(headers: Mapping[str, str]) -> dict[str, str | None]:
    """Return the headers that may hold a key, as LiteLLM's authentication takes them."""
    # It is called as a function and not as a dependency of FastAPI: all headers have to be handed
    # over, or their defaults are FastAPI's own markers.
    return {
        "api_key": headers.get("authorization", ""),
        "azure_api_key_header": headers.get("api-key", ""),
        "anthropic_api_key_header": headers.get("x-api-key"),
        "google_ai_studio_api_key_header": None,
        "azure_apim_header": None,
        "custom_litellm_key_header": headers.get("x-litellm-api-key"),
    }


# What LiteLLM keeps beside a request.


def call_type(kwargs: Mapping[str, Any]) -> str | None:
    """Return which API a call came by, from the arguments of a hook."""
    found: str | None = getattr(kwargs.get("litellm_logging_obj"), "call_type", None)
    return found


def target_order(kwargs: Mapping[str, Any]) -> int | None:
    """Return the `order` that a fallback asks for; None where it is no such fallback."""
    # The router tries the deployments of one `order` after another by asking the filter again.
    return kwargs.get("_target_order")


def internal_call_metadata(metadata: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the metadata of an internal call of that name: whose key is charged, if any is."""
    from litellm.litellm_core_utils.internal_call_metadata import (
        sanitized_forwardable_call_metadata,
    )

    return dict(sanitized_forwardable_call_metadata(metadata, name))


# What LiteLLM's router does with the deployments that a filter returns.


TAG_FILTERING = "enable_tag_filtering"
"""LiteLLM's switch, in a request and in `model_info`."""
TAGS_TAKE_GROUP = "request_deployments" in signature(get_deployments_for_tag).parameters
"""Whether the filter takes all deployments of the group beside the healthy ones."""


def may_filter_by_tags(
    router: Any, deployments: Sequence[Mapping[str, Any]], kwargs: Mapping[str, Any]
) -> bool:
    """Return whether LiteLLM's filter by tags may look at a request: switched on for all, for the
    request, or by one of the deployments."""
    if router is None:
        return False
    if _settings(router).enable_tag_filtering is True or kwargs.get(TAG_FILTERING) is True:
        return True
    return any(TAG_FILTERING in (each.get("model_info") or ()) for each in deployments)


async def kept_by_tags(
    router: Any, deployments: Sequence[Mapping[str, Any]], kwargs: Mapping[str, Any]
) -> Sequence[Mapping[str, Any]]:
    """Return the deployments of a group that LiteLLM's own filter by tags keeps.

    Raises ValueError where it refuses the request.
    """
    name = get_metadata_variable_name_from_kwargs(kwargs)
    metadata = kwargs.get(name)
    if isinstance(metadata, dict):  # it writes what it found there
        kwargs = {**kwargs, name: dict(metadata)}
    group = str(deployments[0].get("model_name"))
    # Since 1.108.4 the filter takes all of the group too, to tell a tag that no deployment has from
    # one whose deployments are unhealthy.
    own = [each for each in deployments_of(router) if each.get("model_name") == group]
    everyone = {"request_deployments": own} if TAGS_TAKE_GROUP else {}
    kept: Sequence[Mapping[str, Any]] = await get_deployments_for_tag(
        _context(router), group, deployments, kwargs, name, **everyone
    )
    return kept


def _context(router: Any) -> Any:
    """Return the view of the router that LiteLLM's strategies get; before 1.109 the router."""
    if _registry(router) is None:
        return router
    from litellm.router_api import RoutingContext

    return RoutingContext(router)


def counted_tokens(router: Any, messages: object, kwargs: Mapping[str, Any]) -> int:
    """Return the tokens of a prompt as LiteLLM counts them for its own check of the context."""
    counted = router._count_pre_call_check_tokens(
        messages=messages, input=kwargs.get("input"), request_kwargs=kwargs
    )
    return int(counted)


def failed_deployment(error: object) -> str | None:
    """Return LiteLLM's id of the deployment that failed; None where it does not say."""
    found = getattr(error, "failed_deployment_id", None)
    return None if found is None else str(found)


# What LiteLLM keeps beside an answer, and writes into its id.


def hidden_params(response: object) -> Mapping[str, Any]:
    """Return what LiteLLM keeps beside an answer, empty where it keeps nothing."""
    # Anthropic messages are plain dictionaries, and have it under a key.
    if isinstance(response, Mapping):
        return response.get("_hidden_params") or {}
    return getattr(response, "_hidden_params", None) or {}


def caching_details(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the logging object of a hook says of the response cache."""
    return getattr(data.get("litellm_logging_obj"), "caching_details", None) or {}


async def cached_answer(key: str) -> object:
    """Return the entry of the response cache; None where there is none, or no cache."""
    if litellm.cache is None:
        return None
    return await litellm.cache.async_get_cache(cache_key=key, cache={"use-cache": True})


def decrypted_response_id(given: str) -> str:
    """Return the id of a response as LiteLLM's log event has it."""
    # On the responses API, LiteLLM encrypts the id that a client gets, each time anew (#15757): 425
    # characters and more, and nothing that an answer could be found by.
    if given.startswith("resp_"):
        with suppress(Exception):  # another LiteLLM may do without
            from litellm.proxy.hooks.responses_id_security import ResponsesIDSecurity

            plain, *_ = ResponsesIDSecurity()._decrypt_response_id(given)
            return str(plain)
    return given


def deployment_of_response_id(decrypted: str) -> str | None:
    """Return the deployment that LiteLLM wrote into the id; None for an id of somebody else."""
    from litellm.responses.utils import ResponsesAPIRequestUtils

    found = ResponsesAPIRequestUtils.get_model_id_from_response_id(decrypted)
    return None if found is None else str(found)


# What LiteLLM's package brings along.


def bundled_encoding(name: str) -> tiktoken.Encoding:
    """Return a tokenizer of OpenAI's from the files in LiteLLM's package."""
    return tiktoken.get_encoding(name)
