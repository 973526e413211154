"""All undocumented names of LiteLLM that the plugin uses: to review at each LiteLLM upgrade.

The other modules use only what LiteLLM documents: `CustomLogger` and its hooks, and functions and
errors of the package itself. A number is that of an issue or a pull request of BerriAI/litellm.
`litellm_fit.py` tries every name at the start, with the arguments that are used here.

The proxy itself is imported inside functions: `messplus check` reads a configuration without it.
"""

import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import litellm
import tiktoken
from fastapi import FastAPI, Request
from litellm.constants import REDACTED_BY_LITELLM
from litellm.litellm_core_utils.core_helpers import get_metadata_variable_name_from_kwargs
from litellm.router_strategy.tag_based_routing import get_deployments_for_tag
from litellm.secret_managers.main import get_secret
from litellm.types.router import RouterErrors
from litellm.types.utils import CustomPricingLiteLLMParams, all_litellm_params

from litellm_messplus.runtime.tasks import apart
from litellm_messplus.settings.load import with_variables

NO_DEPLOYMENT_WORDS = (*(each.value for each in RouterErrors), "Model rate limit exceeded.")
"""The words of LiteLLM's errors when no deployment of a group may take a request."""
OWN_PARAMETERS = frozenset(all_litellm_params)
"""Arguments of a call that are LiteLLM's own, and go to no endpoint."""
OWN_RATES = frozenset(CustomPricingLiteLLMParams.model_fields)
"""The keys that set a price of its own for a deployment in LiteLLM."""


# The running proxy.


def proxy_app() -> FastAPI:
    """Return the proxy's FastAPI application."""
    from litellm.proxy import proxy_server

    app: FastAPI = proxy_server.app
    return app


def llm_router() -> Any:
    """Return the proxy's router as it is now."""
    from litellm.proxy import proxy_server

    # Read each time: LiteLLM makes a new router when its configuration changes.
    return proxy_server.llm_router


def running_router() -> Any:
    """Return the proxy's router as it is now; None if no proxy runs in this process."""
    return getattr(sys.modules.get("litellm.proxy.proxy_server"), "llm_router", None)


def proxy_configuration(path: str | None = None) -> Mapping[str, Any]:
    """Return the configuration that the proxy was started with, including our section; with a
    ``path``, what a start would read from that file and those that it includes."""
    from litellm.proxy import proxy_server

    reader = proxy_server.proxy_config
    if path is not None:
        reader = proxy_server.ProxyConfig()
        apart(reader.get_config(path))
    config = reader.get_config_state()
    if os.environ.get("LITELLM_CONFIG_BUCKET_NAME"):
        return dict(config)
    written = apart(reader._get_config_from_file(path))
    return with_variables(config, written, get_secret)


# Reads of the proxy's router: official entry points since LiteLLM 1.109, attributes before.


def registry_of(router: Any) -> Any:
    """Return the official interface to the deployments; None before LiteLLM 1.109."""
    return router.registry() if hasattr(router, "registry") else None


def _settings(router: Any) -> Any:
    """Return the object that holds a router's settings."""
    return router.settings() if hasattr(router, "settings") else router


def deployments_of(router: Any) -> Sequence[Mapping[str, Any]]:
    """Return all deployments of the proxy's router; an edited one is a new object."""
    registry = registry_of(router)
    return (router.model_list if registry is None else registry.all()) or ()


def routing_groups_of(router: Any) -> dict[str, tuple[str, ...]]:
    """Return the model names of each routing group of the proxy's router."""
    registry = registry_of(router)
    groups = router.routing_groups if registry is None else registry.routing_groups()
    return {name: tuple(group.models) for name, group in (groups or {}).items()}


def aliased(group: str | None) -> str | None:
    """Return the group that a name leads to, which may be an alias."""
    router = running_router()
    registry = registry_of(router)
    aliases = registry.aliases() if registry else getattr(router, "model_group_alias", None)
    found = (aliases or {}).get(group, group)
    return found["model"] if isinstance(found, Mapping) else found


def router_model_info(router: Any, deployment: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the entry, with the window, that LiteLLM's pre-call checks read of a deployment.

    Raises a bare Exception for a model that LiteLLM does not know.
    """
    registry = registry_of(router)
    read = router.get_router_model_info if registry is None else registry.router_model_info
    found: Mapping[str, Any] = read(
        deployment=deployment, received_model_name=str(deployment.get("model_name"))
    )
    return found


def checks_before_calls(router: Any) -> bool:
    """Tell whether LiteLLM compares each prompt with the windows of the deployments."""
    return bool(_settings(router).enable_pre_call_checks)


def stores_models(config: Mapping[str, Any]) -> bool:
    """Tell whether LiteLLM also has models in its database, by the configuration and the
    environment."""
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

    # The only code that LiteLLM runs on SIGTERM; it looks the name up there at call time.
    proxy_server.proxy_shutdown_event = shut_down


async def flush_log_events() -> None:
    """Let the queued log events reach the callbacks."""
    from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER

    # At its end LiteLLM drops what its logging worker has not sent yet (similar: #36548).
    await GLOBAL_LOGGING_WORKER.flush()


async def authenticate(request: Request) -> tuple[str | None, bool]:
    """Return the hash of the key of a request, and whether it is an administrator's.

    Raises LiteLLM's own error for a key that it refuses.
    """
    from litellm.proxy._types import LitellmUserRoles
    from litellm.proxy.auth.user_api_key_auth import user_api_key_auth

    key = await user_api_key_auth(request=request, **key_headers(request.headers))
    return key.api_key, key.user_role == LitellmUserRoles.PROXY_ADMIN


def key_headers(headers: Mapping[str, str]) -> dict[str, str | None]:
    """Return the headers that may hold a key, as LiteLLM's authentication takes them."""
    # It is called as a function and not as a FastAPI dependency: all headers have to be passed,
    # or their defaults are FastAPI's own markers.
    return {
        "api_key": headers.get("authorization", ""),
        "azure_api_key_header": headers.get("api-key", ""),
        "anthropic_api_key_header": headers.get("x-api-key"),
        "google_ai_studio_api_key_header": None,
        "azure_apim_header": None,
        "custom_litellm_key_header": headers.get("x-litellm-api-key"),
    }


def finds_no_deployment(error: BaseException) -> bool:
    """Tell whether LiteLLM itself refuses a request, as none of its deployments may take it: of
    cooldowns, limits, budgets or tags."""
    is_of_litellm = not getattr(error, "llm_provider", None)
    return is_of_litellm and any(words in str(error) for words in NO_DEPLOYMENT_WORDS)


# LiteLLM's data on a request, outside its documented arguments.

LOGGING = "litellm_logging_obj"
"""The argument that holds LiteLLM's own object of a request, one for all of its attempts."""


def is_unread(logging: object) -> bool:
    """Tell whether LiteLLM has called no endpoint for a request yet, by its object of it."""
    details = getattr(logging, "model_call_details", None)
    return details is not None and details.get("first_api_call_start_time") is None


def identity_of(info: Mapping[str, Any] | None) -> str | None:
    """Return LiteLLM's id of a deployment from its `model_info`: as configured, if the client's own
    key or endpoint made another of it for one request."""
    found = (info or {}).get("original_model_id") or (info or {}).get("id")
    return None if found is None else str(found)


def attempted(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the `model_info` of the last deployment of a request that LiteLLM chose, from the
    arguments of a hook; empty if they do not tell."""
    for metadata in (arguments.get("litellm_metadata"), arguments.get("metadata")):
        info = metadata.get("model_info") if isinstance(metadata, Mapping) else None
        if isinstance(info, Mapping) and info.get("id") is not None:
            return info
    return {}


def call_type(kwargs: Mapping[str, Any]) -> str | None:
    """Return the API through which a call came, from the arguments of a hook."""
    found: str | None = getattr(kwargs.get(LOGGING), "call_type", None)
    return found


def target_order(kwargs: Mapping[str, Any]) -> int | None:
    """Return the `order` that a fallback requests; None if it is no such fallback."""
    # The router tries the deployments of one `order` after another by calling the filter again.
    return kwargs.get("_target_order")


def failed_attempts(
    kwargs: Mapping[str, Any], metadata: Mapping[str, Any]
) -> tuple[frozenset[str], int]:
    """Return the ids of the deployments that have failed a request, as far as the arguments of its
    next attempt tell, and the number of attempts that have failed."""
    skipped = kwargs.get("_retry_skipped_deployment_ids") or ()
    excluded = kwargs.get("_excluded_deployment_ids") or ()
    newest = identity_of(attempted({"metadata": metadata}))
    failed = frozenset([*skipped, *excluded, *([newest] if newest else [])])
    return failed, metadata.get("request_retry_count") or 0


def request_headers(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the headers of a client's request, in lower case, from LiteLLM's metadata of it; empty
    if they are not there."""
    found = metadata.get("headers")
    return found if isinstance(found, Mapping) else {}


def recording_span(metadata: Mapping[str, Any]) -> Any:
    """Return LiteLLM's span of a request, from its metadata; None where none takes attributes."""
    # The filters' `parent_otel_span` is None since 1.110.
    span = metadata.get("litellm_parent_otel_span")
    return span if getattr(span, "is_recording", bool)() else None


def internal_call_metadata(metadata: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the metadata of an internal call of that name, with the key to charge, if any."""
    from litellm.litellm_core_utils.internal_call_metadata import (
        sanitized_forwardable_call_metadata,
    )

    return dict(sanitized_forwardable_call_metadata(metadata, name))


# Processing by LiteLLM's router of the deployments that a filter returns.


TAG_FILTERING = "enable_tag_filtering"
"""LiteLLM's switch, in a request and in `model_info`."""


def may_filter_by_tags(
    router: Any, deployments: Sequence[Mapping[str, Any]], kwargs: Mapping[str, Any]
) -> bool:
    """Tell whether LiteLLM's filter by tags may apply to a request: enabled for all, for the
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

    Raises ValueError if it refuses the request.
    """
    name = get_metadata_variable_name_from_kwargs(kwargs)
    metadata = kwargs.get(name)
    if isinstance(metadata, dict):  # the filter writes its result there
        kwargs = {**kwargs, name: dict(metadata)}
    group = str(deployments[0].get("model_name"))
    # The filter also takes the whole group, to distinguish a tag that no deployment has from one
    # whose deployments are unhealthy.
    own = [each for each in deployments_of(router) if each.get("model_name") == group]
    kept: Sequence[Mapping[str, Any]] = await get_deployments_for_tag(
        _context(router), group, deployments, kwargs, name, request_deployments=own
    )
    return kept


def _context(router: Any) -> Any:
    """Return the view of the router that LiteLLM's strategies get; the router before 1.109."""
    if registry_of(router) is None:
        return router
    from litellm.router_api import RoutingContext

    return RoutingContext(router)


def counted_tokens(router: Any, messages: object, kwargs: Mapping[str, Any]) -> int:
    """Return the number of tokens of a prompt, as LiteLLM's own context check counts them."""
    given = {"messages": messages, "input": kwargs.get("input"), "request_kwargs": kwargs}
    return int(router._count_pre_call_check_tokens(**given))


def served_deployment(
    data: Mapping[str, Any], call_info: Mapping[str, Any]
) -> tuple[str | None, str | None]:
    """Return LiteLLM's id of the deployment that answered, and its model, from the arguments of the
    headers hook; None if they do not tell."""
    own = data.get("deployment")
    model = getattr(getattr(own, "litellm_params", None), "model", None)
    details = getattr(data.get(LOGGING), "model_call_details", {})
    last = attempted(details.get("litellm_params") or {}) or attempted(data)
    if last.get("original_model_id") is not None:
        return identity_of(last), model
    found = call_info.get("model_id") or (call_info.get("model_info") or {}).get("id")
    # Neither is there for a whole answer that LiteLLM has translated.
    found = found or getattr(getattr(own, "model_info", None), "id", None)
    return None if found is None else str(found), model


REDACTED = [{"role": "user", "content": REDACTED_BY_LITELLM}]
"""The messages in LiteLLM's log event, where it hides all words."""


# Answers that may still be replaced after a call.

PROXIED = "proxy_server_request"
"""The argument of a call that the proxy makes for a client: its hooks see the answer."""
BEFORE_ANSWERS = frozenset({"pre_call", "during_call", "pre_mcp_call", "logging_only"})
"""The places of guardrails that see no answer, or none that a client waits for."""


def may_replace_answers() -> bool:
    """Tell whether an answer is seen by no one before the hook after a call: no response cache
    stores it, and no guardrail passes it, which would not see the one in its place."""
    from litellm.integrations.custom_guardrail import CustomGuardrail

    guards = (each for each in litellm.callbacks if isinstance(each, CustomGuardrail))
    return litellm.cache is None and not any(map(sees_answers, guards))


def sees_answers(guardrail: Any) -> bool:
    """Tell whether a guardrail of LiteLLM may see answers; one without a place runs everywhere."""
    places = guardrail.event_hook
    each = places if isinstance(places, list) else [places]
    return any(str(getattr(place, "value", place)) not in BEFORE_ANSWERS for place in each)


def timeout_of(kwargs: Mapping[str, Any]) -> float | None:
    """Return the seconds within which LiteLLM answers a request or fails: its own, else those of
    the router; None without a limit."""
    found = kwargs.get("timeout") or getattr(_settings(running_router()), "timeout", None)
    return float(found) if isinstance(found, int | float) else None


def patience_of(timeout: object) -> float:
    """Return the seconds after its last attempt in which a request can still end: its own timeout,
    else the router's or LiteLLM's, twice, since fallbacks to other groups may follow."""
    return 2.0 * (timeout_of({"timeout": timeout}) or float(litellm.request_timeout))


# LiteLLM's data attached to an answer, and encoded in its id.


def hidden_params(response: object) -> Mapping[str, Any]:
    """Return the hidden parameters that LiteLLM attaches to an answer, empty if there are none."""
    # Anthropic messages are plain dictionaries, which have them under a key.
    if isinstance(response, dict):
        return response.get("_hidden_params") or {}
    return getattr(response, "_hidden_params", None) or {}


def caching_details(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the details of the response cache from the logging object of a hook."""
    return getattr(data.get(LOGGING), "caching_details", None) or {}


async def cached_answer(key: str) -> object:
    """Return the entry of the response cache; None if there is none, or no cache."""
    if litellm.cache is None:
        return None
    return await litellm.cache.async_get_cache(cache_key=key, cache={"use-cache": True})


def decrypted_response_id(given: str) -> str:
    """Return the id of a response as in LiteLLM's log event."""
    # On the responses API, LiteLLM encrypts the id that a client gets, differently each time
    # (#15757): at least 425 characters, by which no answer could be found.
    if given.startswith("resp_"):
        with suppress(Exception):  # another version may lack it
            from litellm.proxy.hooks.responses_id_security import ResponsesIDSecurity

            plain, *_ = ResponsesIDSecurity()._decrypt_response_id(given)
            return str(plain)
    return given


def deployment_of_response_id(decrypted: str) -> str | None:
    """Return the deployment that LiteLLM encoded in the id; None for an id from elsewhere."""
    from litellm.responses.utils import ResponsesAPIRequestUtils

    found = ResponsesAPIRequestUtils.get_model_id_from_response_id(decrypted)
    return None if found is None else str(found)


# Files in LiteLLM's package.


def bundled_encoding(name: str) -> tiktoken.Encoding:
    """Return an OpenAI tokenizer from the files in LiteLLM's package."""
    # The import points tiktoken at these files; without it, tiktoken downloads them. It takes
    # 37 MB, which a zoo without a model of OpenAI need not have.
    import litellm.litellm_core_utils.default_encoding  # noqa: F401

    return tiktoken.get_encoding(name)
