"""Compatibility check of the installed LiteLLM: its version, and every name of the seam.

A name that LiteLLM has moved or changed would fail at each request, while serving goes on and only
a counter shows it. So each one is tried at the start, as `litellm_seam.py` uses it, on a router of
made-up deployments: nothing is sent. An incompatible name stops the start with one line.
"""

import asyncio
import gc
import inspect
import warnings
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import metadata
from types import ModuleType
from typing import TYPE_CHECKING, Any

from litellm_messplus.runtime.errors import MessplusError, end_process
from litellm_messplus.runtime.loading import version

if TYPE_CHECKING:
    from subprocess import Popen

    from litellm_messplus.serving.plugin import MessplusPlugin

OLDEST = "1.106.0"
"""The first release of the oldest line that LiteLLM supports."""
NEWEST = "1.109.1"
"""The newest release that the tests run on."""


class UnfitLitellmError(MessplusError):
    """The installed LiteLLM cannot be used; the message states why, and which releases can."""

    def __init__(self, installed: str, reason: str) -> None:
        super().__init__(
            f"litellm: given {installed}, {reason}; allowed: {OLDEST} to {NEWEST}, on which "
            f"litellm-messplus {version()} is tested: pip install 'litellm[proxy]=={NEWEST}'"
        )


def start() -> "MessplusPlugin":
    """Start the plugin for the running proxy; end the process if LiteLLM is incompatible."""
    gc.freeze()  # runs during the start, over LiteLLM's objects, took a quarter of its time
    learner = _launched()
    try:
        check_litellm()
    except UnfitLitellmError as error:
        end_process(f"this LiteLLM cannot be used.\n  {error}")
    from litellm_messplus.serving import startup

    return startup.start(learner)


def _launched() -> "Popen[bytes] | None":
    """Start the learner's process, so that it loads its modules while this process does; None if
    none is configured, or something is wrong, which the start finds next."""
    with suppress(Exception):
        from litellm_messplus.learning.keeper import launch
        from litellm_messplus.serving.litellm_seam import proxy_configuration

        if proxy_configuration()["messplus"].get("learner", "process") == "process":
            return launch()
    return None


def check_litellm() -> None:
    """Check the version, then every name. Raises UnfitLitellmError for the first that is wrong."""
    installed = metadata.version("litellm")
    if line(installed) < line(OLDEST):
        raise UnfitLitellmError(installed, "which LiteLLM does not support any more")
    # The proxy imports its callbacks while its event loop runs, and some names are awaited.
    with ThreadPoolExecutor(max_workers=1) as pool:
        name, error = pool.submit(asyncio.run, _first_unfit()).result()
    if error is not None:
        reason = f"in which {name} is another ({type(error).__name__}: {error})"
        raise UnfitLitellmError(installed, reason) from error


def line(release: str) -> tuple[int, ...]:
    """Return the line of a release: the first two numbers of its version."""
    return tuple(int(number) for number in release.split(".")[:2])


@dataclass(frozen=True)
class MadeUp:
    """A router of two replicas with a known context window, which filters by tags."""

    router: Any
    deployments: list[dict[str, Any]]

    @property
    def seam(self) -> ModuleType:
        """Our seam, which imports LiteLLM's proxy: nothing does before the first trial."""
        from litellm_messplus.serving import litellm_seam

        return litellm_seam


TAG = "messplus-trial"
WINDOW = 512


@contextmanager
def made_up() -> Iterator[MadeUp]:
    """Make the router, and undo what LiteLLM registers of it for the whole process."""
    import litellm

    deployments = [
        {
            "model_name": TAG,
            "litellm_params": {"model": f"openai/{TAG}", "api_key": "none", "tags": [TAG]},
            "model_info": {"id": f"{TAG}-{number}", "max_input_tokens": WINDOW},
        }
        for number in range(2)
    ]
    known = set(litellm.model_cost)
    router = litellm.Router(model_list=deployments, enable_tag_filtering=True)
    try:
        yield MadeUp(router, deployments)
    finally:
        (router.retire if hasattr(router, "retire") else router.discard)()
        for name in set(litellm.model_cost) - known:
            del litellm.model_cost[name]


async def _first_unfit() -> tuple[str, Exception | None]:
    """Return the last name that was tried, and what it raised; None if all fit."""
    tried = "litellm.Router"
    try:
        with made_up() as made:
            for name, trial in TRIALS.items():
                tried = name
                found = trial(made)
                if inspect.isawaitable(found):
                    await found
    except Exception as error:
        return tried, error
    return tried, None


Trial = Callable[[MadeUp], Awaitable[None] | None]


def _imports(made: MadeUp) -> None:
    with warnings.catch_warnings(action="ignore"):  # LiteLLM's own warnings
        from litellm.proxy import proxy_server  # noqa: F401

        from litellm_messplus.serving import litellm_seam  # noqa: F401


def _reads(made: MadeUp) -> None:
    identities = [each["model_info"]["id"] for each in made.seam.deployments_of(made.router)]
    _expect(identities, [each["model_info"]["id"] for each in made.deployments])
    _expect(made.seam.routing_groups_of(made.router), {})
    _expect(made.seam.checks_before_calls(made.router), False)
    _expect(made.seam.may_filter_by_tags(made.router, made.deployments, {}), True)


def _window(made: MadeUp) -> None:
    first, *_ = made.seam.deployments_of(made.router)
    _expect(made.seam.router_model_info(made.router, first)["max_input_tokens"], WINDOW)


async def _tags(made: MadeUp) -> None:
    everyone = made.seam.deployments_of(made.router)
    kept = await made.seam.kept_by_tags(made.router, everyone, {"metadata": {"tags": [TAG]}})
    _expect(len(kept), len(made.deployments))


def _tokens(made: MadeUp) -> None:
    _expect(made.seam.counts_tokens(made.router), True)


def _answers(made: MadeUp) -> None:
    from litellm import ModelResponse

    _expect(isinstance(ModelResponse()._hidden_params, dict), True)
    _expect(made.seam.caching_details({}), {})
    _expect(made.seam.internal_call_metadata({}, TAG).get("user_api_key"), None)
    _expect(isinstance(made.seam.OWN_PARAMETERS and made.seam.OWN_RATES, frozenset), True)


def _guardrails(made: MadeUp) -> None:
    from litellm.integrations.custom_guardrail import CustomGuardrail

    for place, sees in (("pre_call", False), ("post_call", True)):
        _expect(made.seam.sees_answers(CustomGuardrail(guardrail_name=TAG, event_hook=place)), sees)
    _expect(made.seam.timeout_of({"timeout": 3}), 3.0)


def _response_ids(made: MadeUp) -> None:
    from litellm.proxy.hooks.responses_id_security import ResponsesIDSecurity

    plain, *_ = ResponsesIDSecurity()._decrypt_response_id("resp_none")
    _expect(plain, "resp_none")
    _expect(made.seam.deployment_of_response_id("resp_none"), None)


def _cache(made: MadeUp) -> None:
    import litellm

    read = litellm.Cache.async_get_cache
    inspect.signature(read).bind(litellm.cache, cache_key=TAG, cache={"use-cache": True})


def _logging_worker(made: MadeUp) -> None:
    from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER

    inspect.signature(GLOBAL_LOGGING_WORKER.flush).bind()


def _proxy(made: MadeUp) -> None:
    from litellm.proxy import proxy_server

    (
        made.seam.proxy_app(),
        made.seam.llm_router(),
        made.seam.proxy_configuration(),
        made.seam.are_logs_read(),
    )
    _expect(inspect.iscoroutinefunction(proxy_server.proxy_shutdown_event), True)


def _authentication(made: MadeUp) -> None:
    from litellm.proxy._types import LitellmUserRoles, UserAPIKeyAuth
    from litellm.proxy.auth.user_api_key_auth import user_api_key_auth

    inspect.signature(user_api_key_auth).bind(request=None, **made.seam.key_headers({}))
    caller = UserAPIKeyAuth(api_key=TAG, user_role=LitellmUserRoles.PROXY_ADMIN)
    _expect(caller.user_role == LitellmUserRoles.PROXY_ADMIN and bool(caller.api_key), True)


def _hooks(made: MadeUp) -> None:
    """Compare the arguments that LiteLLM passes to each hook with those that ours takes."""
    from litellm.integrations.custom_logger import CustomLogger

    from litellm_messplus.serving.plugin import MessplusPlugin

    for name in vars(MessplusPlugin):
        if hook := getattr(CustomLogger, name, None) if name.startswith("async_") else None:
            ours = inspect.signature(getattr(MessplusPlugin, name)).parameters
            for argument in inspect.signature(hook).parameters:
                _expect(f"{name}({argument})" if argument in ours else name, f"{name}({argument})")


def _expect(found: object, wanted: object) -> None:
    if found != wanted:
        raise ValueError(f"{found!r} in place of {wanted!r}")


TRIALS: dict[str, Trial] = {
    "a name of the seam": _imports,
    "Router.registry() or Router.settings()": _reads,
    "Router.registry().router_model_info": _window,
    "get_deployments_for_tag": _tags,
    "Router._count_pre_call_check_tokens": _tokens,
    "ModelResponse._hidden_params or a name next to it": _answers,
    "CustomGuardrail.event_hook": _guardrails,
    "ResponsesIDSecurity or ResponsesAPIRequestUtils": _response_ids,
    "Cache.async_get_cache": _cache,
    "GLOBAL_LOGGING_WORKER.flush": _logging_worker,
    "litellm.proxy.proxy_server": _proxy,
    "user_api_key_auth": _authentication,
    "a hook of CustomLogger": _hooks,
}
"""The trials by the LiteLLM name that they check, in the order in which they run."""
