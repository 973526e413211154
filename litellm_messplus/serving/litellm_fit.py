"""Compatibility check of the installed LiteLLM: every name of the seam, and what its router does.

A name that LiteLLM has moved or changed would fail at each request, while serving goes on and only
a counter shows it. So each one is tried at the start, as `litellm_seam.py` uses it, on a router of
made-up deployments: nothing is sent. No name shows whether the router still tries what a filter
returns, so that is tried too, by its effect. What does not hold stops the start with one line.
"""

import asyncio
import gc
import inspect
import re
import warnings
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from litellm_messplus.runtime.counters import logger
from litellm_messplus.runtime.errors import MessplusError, end_process
from litellm_messplus.runtime.loading import version
from litellm_messplus.runtime.tasks import apart

if TYPE_CHECKING:
    from subprocess import Popen

    from litellm_messplus.serving.plugin import MessplusPlugin

OLDEST = "1.108.4"
"""The oldest release that is taken: of the oldest line that LiteLLM supports."""
NEWEST = "1.110.2"
"""The newest release that the tests run on. A newer one is taken if the trials hold."""
ATTACKERS = "1.107.0"
"""The release that was not LiteLLM's own."""


class UnfitLitellmError(MessplusError):
    """The installed LiteLLM cannot be used; the message states why, and which releases can."""

    def __init__(self, installed: str, reason: str) -> None:
        super().__init__(
            f"litellm: given {installed}, {reason}; allowed: {OLDEST} to {NEWEST}, on which "
            f"litellm-messplus {version()} is tested: pip install 'litellm[proxy]=={NEWEST}'"
        )


def start() -> "MessplusPlugin":
    """Start the plugin for the running proxy; end the process with a line if that fails."""
    gc.freeze()  # runs during the start, over LiteLLM's objects, took a quarter of its time
    launched = _launched()
    try:
        untested = check_litellm()
        from litellm_messplus.serving import startup

        if untested:
            startup.show_log()
            logger.warning(untested)
        return startup.start(launched)
    except Exception as error:
        end_process(error)


def _launched() -> "Popen[bytes] | None":
    """Start the brain's process, so that it loads its modules while this process does; None if
    none is configured, or something is wrong, which the start finds next."""
    with suppress(Exception):
        from litellm_messplus.brain.keeper import launch
        from litellm_messplus.serving.litellm_seam import proxy_configuration

        if proxy_configuration()["messplus"].get("brain", "process") == "process":
            return launch()
    return None


def check_file(path: Path) -> None:
    """Raise ConfigurationError for what a start would refuse, as far as the file alone tells."""
    from litellm_messplus.settings.load import settings_alone
    from litellm_messplus.store.database import check_place

    if settings := settings_alone(path):
        check_place(settings.database)


def check_litellm() -> str | None:
    """Check the version, every name, and the router's choices; return a line to show if this
    release is newer than all that are tested. Raises UnfitLitellmError for what is first wrong."""
    installed = metadata.version("litellm")
    if release(installed) == release(ATTACKERS):
        reason = "which an attacker released (github.com/BerriAI/litellm/discussions/48117)"
        raise UnfitLitellmError(installed, reason)
    if release(installed) < release(OLDEST):
        raise UnfitLitellmError(installed, "which is too old")
    # The proxy imports its callbacks while its event loop runs, and some names are awaited.
    with no_callbacks():
        name, error = apart(_first_unfit())
    if error is not None:
        reason = f"in which {name} is another ({type(error).__name__}: {error})"
        raise UnfitLitellmError(installed, reason) from error
    if release(installed) <= release(NEWEST):
        return None
    return (
        f"LiteLLM {installed} is newer than {NEWEST}, the newest that is tested with "
        f"litellm-messplus {version()}: it is taken, for it passed the trials of the start"
    )


def release(installed: str) -> tuple[int, ...]:
    """Return the first three numbers of a version."""
    return tuple(map(int, re.findall(r"\d+", installed)[:3]))


@dataclass(frozen=True)
class MadeUp:
    """A router of two deployments with a known context window, of which the first fails. The user's
    own order is theirs, and LiteLLM filters by tags."""

    router: Any
    deployments: list[dict[str, Any]]

    @property
    def identities(self) -> list[str]:
        """LiteLLM's ids of the deployments."""
        return [each["model_info"]["id"] for each in self.deployments]

    @property
    def seam(self) -> ModuleType:
        """Our seam, which imports LiteLLM's proxy: nothing does before the first trial."""
        from litellm_messplus.serving import litellm_seam

        return litellm_seam


TAG = "messplus-trial"
WINDOW = 512


MESSAGES = [{"role": "user", "content": "hello"}]
FAILS, ANSWERS = "litellm.InternalServerError", "hello"
"""What LiteLLM takes as a mock of an answer: it is given without a call."""


@contextmanager
def made_up() -> Iterator[MadeUp]:
    """Make the router, and undo what LiteLLM registers of it for the whole process."""
    import litellm

    params = {"model": f"openai/{TAG}", "api_key": "none", "tags": [TAG]}
    deployments = [
        {
            "model_name": TAG,
            "litellm_params": {**params, "order": number, "mock_response": mock},
            "model_info": {"id": f"{TAG}-{number}", "max_input_tokens": WINDOW},
        }
        for number, mock in enumerate((FAILS, ANSWERS))
    ]
    known = set(litellm.model_cost)
    router = litellm.Router(
        model_list=deployments,
        enable_tag_filtering=True,
        disable_cooldowns=True,
        num_retries=1,
        retry_after=0,
    )
    try:
        yield MadeUp(router, deployments)
    finally:
        (router.retire if hasattr(router, "retire") else router.discard)()
        for name in set(litellm.model_cost) - known:
            del litellm.model_cost[name]


@contextmanager
def no_callbacks() -> Iterator[None]:
    """Clear LiteLLM's lists of callbacks, so that no logger hears of the trial, and fill them again
    with what was there."""
    import litellm

    lists = {name: each for name, each in vars(litellm).items() if CALLBACKS.fullmatch(name)}
    kept = {name: list(found) for name, found in lists.items()}
    for found in lists.values():
        found.clear()
    try:
        yield
    finally:
        for name, found in lists.items():
            found[:] = kept[name]
            setattr(litellm, name, found)


CALLBACKS = re.compile(r"callbacks|(_async_)?(input|success|failure)_callback|service_callback")
"""The names of LiteLLM's lists of callbacks."""


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
    _expect(identities, made.identities)
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


async def _room(made: MadeUp) -> None:
    from litellm_messplus.serving import litellm_limits

    for strategy in litellm_limits.LIMITING:
        picks = inspect.signature(strategy.async_get_available_deployments)
        picks.bind(strategy, TAG, made.deployments)
    _expect(await litellm_limits.with_room(TAG, made.deployments), made.deployments)


def _unread(made: MadeUp) -> None:
    from litellm.litellm_core_utils.litellm_logging import Logging

    call = Logging(TAG, MESSAGES, False, "acompletion", datetime.now(UTC), TAG, TAG)
    _expect(made.seam.is_unread(call), True)
    call.pre_call(MESSAGES, None)
    _expect(made.seam.is_unread(call), False)


def _tokens(made: MadeUp) -> None:
    # Not called: it would load a tokenizer of 37 MB, which most proxies never need.
    counting = inspect.signature(made.router._count_pre_call_check_tokens)
    counting.bind(messages=[], input=None, request_kwargs={})


@contextmanager
def filtering(narrow: Callable[[Mapping[str, Any]], str]) -> Iterator["asyncio.Queue[str]"]:
    """Have LiteLLM call a filter as ours, which returns only the deployment that ``narrow`` names,
    by the arguments of an attempt. Yields the log events that it gets."""
    import litellm
    from litellm.integrations.custom_logger import CustomLogger

    events: asyncio.Queue[str] = asyncio.Queue()

    class Narrowing(CustomLogger):  # type: ignore[misc]
        async def async_filter_deployments(
            self,
            model: str,
            healthy_deployments: list[Any],
            messages: list[Any] | None,
            request_kwargs: dict[str, Any] | None = None,
            parent_otel_span: Any = None,
        ) -> list[Any]:
            named = narrow(request_kwargs or {})
            return [each for each in healthy_deployments if each["model_info"]["id"] == named]

        async def async_log_success_event(self, *arguments: Any, **named: Any) -> None:
            events.put_nowait("success")

        async def async_log_failure_event(self, *arguments: Any, **named: Any) -> None:
            events.put_nowait("failure")

    litellm.callbacks.append(Narrowing())
    try:
        yield events
    finally:
        litellm.callbacks.pop()


PICKS = 20
EVENT_SECONDS = 10.0
"""Seconds that a log event may take to come, on the busiest machine."""


async def _picks(made: MadeUp) -> None:
    """Let the router choose behind the filter, in no order that a router would take by itself."""
    router = made.router
    pick = router.select if hasattr(router, "select") else router.async_get_available_deployment
    for number in range(PICKS):
        wanted = made.identities[number.bit_count() % 2]
        kwargs = {"metadata": {"tags": [TAG]}}
        with filtering(lambda _, wanted=wanted: wanted):  # type: ignore[misc]
            found = await pick(model=TAG, messages=MESSAGES, request_kwargs=kwargs)
        _expect(found["model_info"]["id"], wanted)


async def _second_attempt(made: MadeUp) -> None:
    """Let the first deployment fail: its id must come with the second attempt, and the filter's
    choice be tried then too. Both are logged, in this loop and not later."""
    first, second = made.identities

    def narrow(kwargs: Mapping[str, Any]) -> str:
        failed = kwargs["metadata"].get("model_info") or {}
        return second if failed.get("id") == first else first

    with filtering(narrow) as events:
        answer = await made.router.acompletion(
            model=TAG,
            messages=MESSAGES,
            metadata={"tags": [TAG]},
            cache={"no-cache": True, "no-store": True},
        )
        async with asyncio.timeout(EVENT_SECONDS):
            logged = {await events.get(), await events.get()}
            await made.seam.flush_log_events()
    _expect(made.seam.hidden_params(answer)["model_id"], second)
    _expect(logged, {"failure", "success"})


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


def _proxy(made: MadeUp) -> None:
    from litellm.proxy import proxy_server

    read = proxy_server.proxy_config
    (made.seam.proxy_app(), made.seam.llm_router(), read.get_config_state(), read.get_config)
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
    "async_get_available_deployments of a strategy": _room,
    "Logging.pre_call": _unread,
    "Router._count_pre_call_check_tokens": _tokens,
    "ModelResponse._hidden_params or a name next to it": _answers,
    "CustomGuardrail.event_hook": _guardrails,
    "ResponsesIDSecurity or ResponsesAPIRequestUtils": _response_ids,
    "Cache.async_get_cache": _cache,
    "litellm.proxy.proxy_server": _proxy,
    "user_api_key_auth": _authentication,
    "a hook of CustomLogger": _hooks,
    "the router's choice behind a filter": _picks,
    "the router's second attempt behind a filter": _second_attempt,
}
"""The trials by the LiteLLM name that they check, in the order in which they run."""
