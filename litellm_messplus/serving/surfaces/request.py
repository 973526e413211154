"""A request as LiteLLM's router passes it to a filter, read by the record of its surface."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from litellm_messplus.core.encoder import Conversation, Turn
from litellm_messplus.runtime.errors import RefusedError
from litellm_messplus.runtime.stand_ins import once
from litellm_messplus.serving import litellm_seam
from litellm_messplus.serving.litellm_seam import request_headers
from litellm_messplus.serving.surfaces.conversation import plain_turns, read_conversation
from litellm_messplus.serving.surfaces.surface import (
    MESSAGES,
    OWN_METADATA,
    SERVERS_OWN,
    SURFACES,
    Surface,
)

ROUTE = "route"
ROUTE_HEADER = "x-messplus-route"
"""Where a client switches routing off for a request: in `metadata.messplus`, and as a header."""


@dataclass(frozen=True)
class IncomingRequest:
    """One request of a surface that is routed. ``metadata`` is LiteLLM's own, and mutable."""

    surface: Surface
    litellm_call_id: str
    metadata: dict[str, Any]
    messages: Sequence[Mapping[str, Any]] | None
    kwargs: Mapping[str, Any]

    @property
    def call_type(self) -> str:
        return self.surface.call_type

    @property
    def prompt_arguments(self) -> dict[str, Any]:
        """The arguments that hold the prompt, if they are not among ``kwargs``.

        LiteLLM's router passes a prompt that is not a list of messages as a user's message.
        """
        if self.messages is None:
            return {}
        if self.surface.prompt == MESSAGES:
            return {MESSAGES: list(self.messages)}
        return {self.surface.prompt: self.messages[0]["content"]}

    @property
    def prompt(self) -> Any:
        """The prompt itself: messages, the items of a responses input, or text."""
        found = self.kwargs.get(self.surface.prompt)
        return found if self.messages is None else self.messages

    @property
    def is_switched_off(self) -> bool:
        """Whether the client switches routing off for this request, by header or metadata.

        Raises RefusedError for another value than `off`."""
        own = self.client_metadata.get("messplus")
        stated = own.get(ROUTE) if isinstance(own, Mapping) else None
        given = request_headers(self.metadata).get(ROUTE_HEADER, stated)
        if given not in (None, "off"):
            raise RefusedError(
                f"{ROUTE_HEADER}, or messplus.{ROUTE} in the metadata: given {str(given)[:64]!r}; "
                "allowed: off, or nothing"
            )
        return given is not None

    @property
    def continues(self) -> str | None:
        """The id of the earlier answer that it continues, whose state is kept elsewhere."""
        return _continued(self.surface, self.kwargs)

    @property
    def attempts(self) -> Mapping[str, Any]:
        """The metadata in which LiteLLM leaves what became of earlier attempts: of an API that it
        translates, another than that which its hooks see."""
        own = self.kwargs.get(OWN_METADATA) if self.surface.as_chat else None
        return own if isinstance(own, Mapping) else self.metadata

    @property
    def is_stream(self) -> bool:
        return bool(self.kwargs.get("stream"))

    @once
    def key_hash(self) -> str | None:
        return _key_hash(self.metadata)

    @property
    def team_id(self) -> str | None:
        found = self.metadata.get("user_api_key_team_id")
        return None if found is None else str(found)

    @property
    def client_metadata(self) -> Mapping[str, Any]:
        """Metadata that the client sent as `metadata`, which may go upstream, or as
        `litellm_metadata`, which never does. Includes LiteLLM's own."""
        if not self.surface.has_client_metadata:
            return self.metadata
        found = self.kwargs.get("metadata")
        return {**self.metadata, **found} if isinstance(found, Mapping) else self.metadata

    @property
    def most_completion_tokens(self) -> float:
        """The most tokens of the answer, all choices together; infinite without a limit. The
        smaller of two limits counts."""
        if self.kwargs.keys().isdisjoint(self.surface.limits):
            return math.inf
        limits = [_count(self.kwargs.get(name)) for name in self.surface.limits]
        given = [limit for limit in limits if limit is not None]
        choices = _count(self.kwargs.get("n")) or 1
        return float(min(given) * choices) if given else math.inf

    @once
    def plain(self) -> tuple[Turn, ...] | None:
        """The turns of a request that is words alone: one text a message, and no argument that asks
        for more than an answer; None for any other."""
        is_plain = self.kwargs.keys().isdisjoint(self.surface.asking)
        return plain_turns(self.prompt) if is_plain else None

    @once
    def conversation(self) -> Conversation:
        """The prompt as the model sees it, on any surface. It is read once: every request waits for
        it."""
        given, surface = self.kwargs, self.surface
        if self.plain is not None:
            return Conversation(self.plain)
        return read_conversation(
            given.get(surface.prompt) if self.messages is None else self.messages,
            given.get(surface.system) if surface.system else None,
            [given[name] for name in surface.tools if given.get(name)],
            [given.get(name) for name in surface.formats],
        )


def read_request(
    messages: Sequence[Mapping[str, Any]] | None, kwargs: Mapping[str, Any] | None
) -> IncomingRequest | None:
    """Read a request from the router's arguments; None if it is not routed.

    Token counting and embeddings are not routed.
    """
    surface = None if kwargs is None else _surface(kwargs)
    if kwargs is None or surface is None:
        return None
    call_id, metadata = kwargs.get("litellm_call_id"), kwargs.get(surface.metadata)
    if not call_id or not isinstance(metadata, dict):
        return None
    if surface.as_chat is not None:
        kwargs = surface.as_chat(kwargs)
        messages = kwargs[MESSAGES]
    return IncomingRequest(surface, str(call_id), metadata, messages, kwargs)


def _key_hash(metadata: Mapping[str, Any]) -> str | None:
    found = metadata.get("user_api_key_hash") or metadata.get("user_api_key")
    return None if found is None else str(found)


def continued_response(kwargs: Mapping[str, Any]) -> str | None:
    """Return the id of the earlier answer that a request continues; most surfaces have none."""
    surface = _surface(kwargs)
    return None if surface is None else _continued(surface, kwargs)


def _continued(surface: Surface, kwargs: Mapping[str, Any]) -> str | None:
    earlier = kwargs.get(surface.continues) if surface.continues else None
    return str(earlier) if earlier else None


def _surface(kwargs: Mapping[str, Any]) -> Surface | None:
    call_type = litellm_seam.call_type(kwargs)
    return SURFACES.get(call_type) if isinstance(call_type, str) else None


def _count(value: object) -> int | None:
    """Return an integer above zero, else None; a client may send anything."""
    return value if isinstance(value, int) and value > 0 else None


# Whether a request may have side effects: by tools that run at a provider or in LiteLLM.
#
# Such a request is never repeated unseen: a second call may act again, such as send a mail, book,
# write to a file, or be charged for.


def may_wait(request: IncomingRequest) -> bool:
    """Tell whether another answer may take the place of the first before the client sees any: it
    gets one whole answer through the proxy, without tools, in the form of ours, which no later
    request continues by its id."""
    given, surface = request.kwargs, request.surface
    if request.is_stream or surface.continues or surface.as_chat:
        return False
    if litellm_seam.PROXIED not in given:
        return False
    is_single = (_count(given.get("n")) or 1) == 1
    has_tools = any(given.get(name) for name in (*surface.tools, *SERVERS_OWN))
    return is_single and not has_tools


RUN_BY_CLIENT = frozenset({"function", "custom"})
"""Types of tools that the client runs upon the answer. Any other may run elsewhere, as may an
unknown one."""


def may_act(request: IncomingRequest) -> bool:
    """Tell whether a second call of a request could repeat a side effect."""
    return request.plain is None and any(map(_acts, _given(request)))


def _given(request: IncomingRequest) -> Iterator[Mapping[str, Any]]:
    """Yield the arguments, and those that are passed to the provider unchanged."""
    yield request.kwargs
    extra = request.kwargs.get("extra_body")
    if isinstance(extra, Mapping):
        yield extra


def _acts(given: Mapping[str, Any]) -> bool:
    if any(given.get(name) not in (None, []) for name in SERVERS_OWN):
        return True
    if isinstance(
        given.get("prompt"), Mapping
    ):  # a template stored at the provider, with its tools
        return True
    return any(_runs_elsewhere(tool) for tool in _tools(given.get("tools")))


def _tools(given: object) -> list[Any] | tuple[Any, ...]:
    return given if isinstance(given, list | tuple) else [] if not given else [given]


def _runs_elsewhere(tool: object) -> bool:
    """Tell whether a tool runs outside the client. Anthropic's need no type if they have a schema;
    Gemini's built-in ones have their name as a key, and no schema."""
    if not isinstance(tool, Mapping):
        return True
    kind = tool.get("type")
    if kind is None:
        return "input_schema" not in tool and "function" not in tool
    return not (isinstance(kind, str) and kind in RUN_BY_CLIENT)
