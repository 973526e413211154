"""Reading a request as LiteLLM's router sees it, on each of the four surfaces."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from litellm_messplus.prediction.encoder import Conversation
from litellm_messplus.proxy import litellm_seam
from litellm_messplus.proxy.surfaces.conversation import read_conversation

CALL_TYPES = frozenset({"acompletion", "atext_completion", "anthropic_messages", "aresponses"})
"""Chat completions, text completions, Anthropic messages, responses."""
METADATA_OF_OTHERS = frozenset({"anthropic_messages", "aresponses"})
"""Surfaces on which `metadata` is the client's and goes upstream; LiteLLM's is beside it."""
FORMATS = ("response_format", "text", "output_format", "output_config")
"""Where the surfaces ask for a format of the answer."""
COMPLETION_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
"""How the surfaces call it; where a client gives two, the smaller one counts."""


@dataclass(frozen=True, slots=True)
class IncomingRequest:
    """One request of a surface that is routed. ``metadata`` is LiteLLM's own, and mutable."""

    call_type: str
    litellm_call_id: str
    metadata: dict[str, Any]
    messages: Sequence[Mapping[str, Any]] | None
    kwargs: Mapping[str, Any]

    @property
    def prompt_arguments(self) -> dict[str, Any]:
        """The arguments that hold the prompt, where they are not among ``kwargs``.

        LiteLLM's router hands over the prompt of a text completion as the words of a user.
        """
        if self.messages is None:
            return {}
        if self.call_type == "atext_completion":
            return {"prompt": self.messages[0]["content"]}
        return {"messages": list(self.messages)}

    @property
    def is_stream(self) -> bool:
        return bool(self.kwargs.get("stream"))

    @property
    def key_hash(self) -> str | None:
        found = self.metadata.get("user_api_key_hash") or self.metadata.get("user_api_key")
        return None if found is None else str(found)

    @property
    def team_id(self) -> str | None:
        found = self.metadata.get("user_api_key_team_id")
        return None if found is None else str(found)

    @property
    def client_metadata(self) -> Mapping[str, Any]:
        """The metadata that the client sent as `metadata`, which may go upstream, or as
        `litellm_metadata`, which never does. LiteLLM's own stands among it."""
        found = self.kwargs.get("metadata") if self.call_type in METADATA_OF_OTHERS else None
        return {**self.metadata, **found} if isinstance(found, Mapping) else self.metadata

    @property
    def most_completion_tokens(self) -> float:
        """The limit on the answer's length, of all its choices together; infinite without a
        limit."""
        limits = [_count(self.kwargs.get(name)) for name in COMPLETION_LIMITS]
        given = [limit for limit in limits if limit is not None]
        choices = _count(self.kwargs.get("n")) or 1
        return float(min(given) * choices) if given else math.inf

    def conversation(self) -> Conversation:
        """Read the prompt as the model sees it, whatever the surface."""
        given = self.kwargs
        return read_conversation(
            given.get("input") if self.messages is None else self.messages,
            given.get("system") or given.get("instructions"),
            [given[name] for name in ("tools", "functions") if given.get(name)],
            [given.get(name) for name in FORMATS],
        )


def read_request(
    messages: Sequence[Mapping[str, Any]] | None, kwargs: Mapping[str, Any] | None
) -> IncomingRequest | None:
    """Read the request behind the router's arguments; None for what is not routed.

    Token counting and embeddings are not routed, nor is a response that continues an earlier one:
    that must stay on its deployment.
    """
    if kwargs is None or continued_response(kwargs) is not None:
        return None
    call_type = litellm_seam.call_type(kwargs)
    call_id = kwargs.get("litellm_call_id")
    if call_type not in CALL_TYPES or not call_id:
        return None
    metadata = kwargs.get(metadata_name(call_type))
    if not isinstance(metadata, dict):
        return None
    return IncomingRequest(call_type, str(call_id), metadata, messages, kwargs)


def continued_response(kwargs: Mapping[str, Any]) -> str | None:
    """Return the id of the earlier response that a response continues; other surfaces have no such
    id."""
    earlier = kwargs.get("previous_response_id")
    is_response = litellm_seam.call_type(kwargs) == "aresponses"
    return str(earlier) if earlier and is_response else None


def metadata_name(call_type: str) -> str:
    """Name where LiteLLM keeps its own metadata in the arguments of a call."""
    return "litellm_metadata" if call_type in METADATA_OF_OTHERS else "metadata"


def _count(value: object) -> int | None:
    """Return a number above zero, else None; a client may send anything."""
    return value if isinstance(value, int) and value > 0 else None
