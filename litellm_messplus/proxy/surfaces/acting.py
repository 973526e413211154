"""Whether answering a request may act: by tools that run at a provider, or in LiteLLM itself.

Such a request is never repeated unseen, for what is called twice may act twice: send a mail, book,
write to a file, or be paid for again.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from litellm_messplus.proxy.surfaces.request import IncomingRequest

RUN_BY_CLIENT = frozenset({"function", "custom"})
"""Types of tools that the answer only asks for: the client runs them. Any other may run elsewhere,
one that is not known here too."""
SERVERS_OWN = ("mcp_servers", "web_search_options", "container", "conversation")
"""Arguments by which a provider searches, calls other servers, runs code, or writes down the
turn."""


def may_act(request: IncomingRequest) -> bool:
    """Tell whether a second call of a request could do something a second time."""
    return any(map(_acts, _given(request)))


def _given(request: IncomingRequest) -> Iterator[Mapping[str, Any]]:
    """Yield the arguments, and those that are handed on to the provider as they are."""
    yield request.kwargs
    extra = request.kwargs.get("extra_body")
    if isinstance(extra, Mapping):
        yield extra


def _acts(given: Mapping[str, Any]) -> bool:
    if any(given.get(name) not in (None, []) for name in SERVERS_OWN):
        return True
    if isinstance(
        given.get("prompt"), Mapping
    ):  # a template that the provider keeps, tools and all
        return True
    return any(_runs_elsewhere(tool) for tool in _tools(given.get("tools")))


def _tools(given: object) -> list[Any] | tuple[Any, ...]:
    return given if isinstance(given, list | tuple) else [] if not given else [given]


def _runs_elsewhere(tool: object) -> bool:
    """Tell whether anybody but the client runs a tool. Anthropic's need no type where they have a
    schema; Gemini's own have a name for a key, and no schema."""
    if not isinstance(tool, Mapping):
        return True
    kind = tool.get("type")
    if kind is None:
        return "input_schema" not in tool and "function" not in tool
    return not (isinstance(kind, str) and kind in RUN_BY_CLIENT)
