"""A journey of requests through the real plugin: a test asks, is answered or refused, and says what
it thinks of the answer; LiteLLM's part is done here."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import litellm
import pytest

from litellm_messplus.core.engine import Engine
from litellm_messplus.serving.plugin import MessplusPlugin
from litellm_messplus.store import log
from tests.support import in_process, litellm_router
from tests.support.in_process import METADATA, brain_of, call, deployment, log_event, running
from tests.support.patience import until_it_holds

Deployment = dict[str, Any]
Messages = list[dict[str, Any]]
SMALL, LARGE = "openai/small", "openai/large"
QUESTION = "What is 2 + 2?"
ANSWER = {"id": "chatcmpl-1", "choices": [{"message": {"content": "4"}}]}
BROKEN = RuntimeError("broken")
OWN_METADATA = ("acompletion", "atext_completion")
"""Call types whose `metadata` is LiteLLM's; that of the others is the client's."""


def user(content: Any) -> Messages:
    return [{"role": "user", "content": content}]


def arguments_of(
    *,
    call_type: str = "acompletion",
    call_id: str = "1",
    key: str = "key",
    tags: Sequence[str] = (),
    metadata: dict[str, Any] | None = None,
    **given: Any,
) -> dict[str, Any]:
    """The arguments of a request of that API; ``metadata`` says all of whose it is."""
    made = call(call_id, call_type, **given)
    del made["metadata"]
    whose = {"user_api_key_hash": key, "tags": list(tags)} if metadata is None else metadata
    return {**made, METADATA[call_type not in OWN_METADATA]: whose}


@dataclass
class RoutedRequest:
    """A request as LiteLLM holds it, and the deployments that the plugin gave back for it."""

    arguments: dict[str, Any]
    deployments: list[Deployment]

    @property
    def ids(self) -> list[str]:
        return [each["model_info"]["id"] for each in self.deployments]

    def failed_at(self, identity: str) -> dict[str, Any]:
        """The arguments as LiteLLM leaves them where that deployment failed, to ask again with."""
        arguments = self.not_called()
        self.metadata["model_info"] = {"id": identity}
        return arguments

    def not_called(self) -> dict[str, Any]:
        """The arguments as LiteLLM leaves them where it could call none of the deployments."""
        self.metadata["request_retry_count"] = self.metadata.get("request_retry_count", 0) + 1
        return self.arguments

    @property
    def metadata(self) -> dict[str, Any]:
        own: dict[str, Any] = next(self.arguments[n] for n in METADATA if n in self.arguments)
        return own


class Explored:
    """Takes the explorer's place, and keeps the candidates that it was to call."""

    def __init__(self) -> None:
        self.called: list[tuple[str, ...]] = []

    def start(self, opened: Any, candidates: Any, request: Any) -> None:
        self.called.append(tuple(candidates))


@dataclass
class Journey:
    """A worker with one zoo, named `zoo`, over a database in ``folder``."""

    plugin: MessplusPlugin
    deployments: Sequence[Deployment] = field(default_factory=lambda: in_process.DEPLOYMENTS)
    asked: int = 0

    @property
    def engine(self) -> Engine:
        return brain_of(self.plugin.parts).engines["zoo"]

    @property
    def counters(self) -> dict[str, int]:
        return self.plugin.counters.as_dict()

    def request(self, **given: Any) -> dict[str, Any]:
        """The arguments of a request; each gets an id of its own unless it is given."""
        self.asked += 1
        return arguments_of(**{"call_id": str(self.asked), **given})

    async def ask(
        self,
        prompt: str | Messages | None = QUESTION,
        arguments: dict[str, Any] | None = None,
        deployments: Sequence[Any] | None = None,
        **given: Any,
    ) -> RoutedRequest:
        """Ask for a choice between the healthy deployments. A retry gives the ``arguments``."""
        if arguments is None:
            arguments = self.request(**given)
        messages = user(prompt) if isinstance(prompt, str) else prompt
        healthy = list(self.deployments if deployments is None else deployments)
        found = await self.plugin.async_filter_deployments("zoo", healthy, messages, arguments)
        return RoutedRequest(arguments, list(found))

    async def answers(
        self, asked: RoutedRequest, served: str | None = None, answer: Any = ANSWER, **payload: Any
    ) -> None:
        """LiteLLM has an answer of that deployment, else of the first that was left to it."""
        event = log_event(
            asked.arguments, served or asked.ids[0], **{"id": answer["id"], **payload}
        )
        await self.plugin.async_log_success_event(event, answer, None, None)

    async def fails(self, asked: RoutedRequest, error: Exception = BROKEN) -> None:
        """LiteLLM has given up on the request."""
        await self.plugin.async_post_call_failure_hook(asked.arguments, error, None)

    def explores_nothing(self) -> Explored:
        """Call no model unseen; what would have been called is in what is returned."""
        explored = Explored()
        self.plugin.parts.router.explorer.start = explored.start  # type: ignore[method-assign]
        return explored

    async def decided(self) -> None:
        """Wait until everything is decided in shadow."""
        await self.plugin.parts.router.close()

    async def settled(self) -> None:
        """Wait until everything is decided in shadow and written."""
        await self.decided()
        await brain_of(self.plugin.parts).journal.flush()


@asynccontextmanager
async def journey(
    folder: Path,
    zoo: Mapping[str, Any] | None = None,
    deployments: Sequence[Deployment] = in_process.DEPLOYMENTS,
    **given: Any,
) -> AsyncIterator[Journey]:
    """``zoo`` are settings of the zoo, ``given`` what else `running` takes."""
    async with running(folder, dict(zoo or {}), deployments=deployments, **given) as plugin:
        yield Journey(plugin, deployments)


@dataclass(kw_only=True)
class Routed(Journey):
    """A journey behind LiteLLM's own router, which shows the deployments and filters after us."""

    router: litellm.Router

    async def choose(
        self,
        prompt: str | Messages | None = QUESTION,
        arguments: dict[str, Any] | None = None,
        **given: Any,
    ) -> list[str]:
        """Ids of the deployments that LiteLLM would load-balance between."""
        if arguments is None:
            arguments = self.request(**given)
        shown = {
            "messages": user(prompt) if isinstance(prompt, str) else prompt,
            "input": arguments.get("input"),
        }
        return await litellm_router.healthy(self.router, "zoo", arguments, **shown)

    def put(self, given: Deployment) -> None:
        """Add a deployment, or replace the one of its id."""
        litellm_router.put(self.router, given)

    def remove(self, identity: str) -> None:
        litellm_router.remove(self.router, identity)

    async def swept(self) -> None:
        """Let the plugin look at the router, and the log be folded in."""
        parts = self.plugin.parts
        parts.live.look()
        await brain_of(parts).catalog.report()
        await brain_of(parts).journal.flush()
        brain_of(parts).journal.follow()
        head = await log.head(brain_of(parts).database)
        await until_it_holds(lambda: brain_of(parts).journal.position >= head)


def live(model: str, price: float, group: str = "zoo", **given: Any) -> Deployment:
    """A deployment of LiteLLM's router; its id is the model's name unless it is given."""
    params: dict[str, Any] = {"api_key": "none"}
    params |= {name: given.pop(name) for name in ("tags", "region_name", "order") if name in given}
    return deployment(model, price, params=params, **given) | {"model_name": group}


@asynccontextmanager
async def routed(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    deployments: Sequence[Deployment],
    zoo: Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    **router_settings: Any,
) -> AsyncIterator[Routed]:
    """A worker over a database in ``folder``, which several may share; ``config`` are sections of
    the proxy's configuration."""
    router = litellm.Router(model_list=list(deployments), **router_settings)
    sections = {"router_settings": router_settings, **(config or {})}
    async with running(folder, dict(zoo or {}), None, deployments, sections) as plugin:
        monkeypatch.setattr(plugin.parts.router.gates, "router", lambda: router)
        monkeypatch.setattr(plugin.parts.live, "router", lambda: router)
        monkeypatch.setattr(litellm, "callbacks", [plugin])
        yield Routed(plugin, deployments, router=router)
