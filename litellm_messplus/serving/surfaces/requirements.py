"""Requirements of a request on a model besides text, read from the request on every surface.

Clients may send anything, so nothing here fails: what cannot be read requires nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from litellm_messplus.serving.surfaces.conversation import IMAGES, attached_parts
from litellm_messplus.serving.surfaces.parameters import Values, read_parameters
from litellm_messplus.serving.surfaces.request import IncomingRequest


class Capability(StrEnum):
    """A kind of input or feature that a model may support, in plain words."""

    IMAGE = "images"
    AUDIO = "audio"
    VIDEO = "video"
    FILE = "files"
    TOOLS = "tools"
    PARALLEL_TOOLS = "parallel tools"
    JSON_SCHEMA = "a JSON schema"
    REASONING = "reasoning"


@dataclass(frozen=True, slots=True)
class Requirements:
    """The requirements of one request. ``answer_tokens`` is the most tokens of an answer, 0 without
    a limit; ``region`` is the one that the key allows; ``has_answer_format`` is set if the chat
    requests a format of any kind. ``sets`` are the parameters that make an arm, as the request sets
    them itself."""

    capabilities: frozenset[Capability] = frozenset()
    answer_tokens: int = 0
    region: str | None = None
    has_answer_format: bool = False
    sets: Values = field(default_factory=dict)


def read_requirements(request: IncomingRequest) -> Requirements:
    """Read the requirements of a request."""
    if request.plain is not None:
        own = read_parameters(request.kwargs)
        return Requirements(answer_tokens=_answer_tokens(request), sets=own)
    given = request.kwargs
    region = given.get("allowed_model_region")
    return Requirements(
        frozenset(_capabilities(request)),
        _answer_tokens(request),
        None if region is None else str(region),
        given.get("response_format") is not None,
        read_parameters(given),
    )


def _capabilities(request: IncomingRequest) -> Iterator[Capability]:
    given, prompt, conversation = request.kwargs, request.prompt, request.conversation
    if conversation.images or conversation.attachments:
        for part in attached_parts(prompt):
            kind = _modality(part)
            if kind is not None:
                yield kind
    if any(given.get(name) for name in request.surface.tools):
        yield Capability.TOOLS
        if given.get("parallel_tool_calls") is True:
            yield Capability.PARALLEL_TOOLS
    elif _has_used_tools(prompt):
        yield Capability.TOOLS
    if any(_is_schema(given.get(name)) for name in request.surface.formats):
        yield Capability.JSON_SCHEMA
    if _asks_to_reason(given):
        yield Capability.REASONING


# Capabilities that attachments need: by their type, or by the media type in their content.

AUDIO = frozenset({"input_audio", "audio", "audio_url"})
MEDIA = {"image": Capability.IMAGE, "audio": Capability.AUDIO, "video": Capability.VIDEO}
"""Capability by the first part of a media type; any other is a file."""


def _modality(part: Mapping[str, Any]) -> Capability | None:
    kind = part.get("type")
    if kind in IMAGES:
        return Capability.IMAGE
    if kind in AUDIO:
        return Capability.AUDIO
    if kind == "video_url":
        return Capability.VIDEO
    media = _media_type(part)
    if kind == "document" and media.startswith("text"):  # which Anthropic's API passes on as text
        return None
    return MEDIA.get(media.partition("/")[0], Capability.FILE)


def _media_type(part: Mapping[str, Any]) -> str:
    """Return the stated media type, else that of a data URL; empty if there is neither."""
    inner = part.get("file") or part.get("source") or part
    if not isinstance(inner, Mapping):
        return ""
    stated = inner.get("format") or inner.get("media_type")
    if isinstance(stated, str):
        return stated
    if inner.get("type") in ("text", "content"):
        return "text"
    data = inner.get("file_data")
    is_url = isinstance(data, str) and data.startswith("data:")
    return str(data)[5:].partition(";")[0][:64] if is_url else ""


# The other capabilities are requested by an argument.

USED = frozenset({"function_call", "function_call_output", "tool_use", "tool_result"})
"""Types of items and blocks that are part of a tool call."""


def _has_used_tools(prompt: object) -> bool:
    """Return whether the conversation has tool calls, which a model without tools cannot read."""
    if not isinstance(prompt, list | tuple):
        return False
    return any(isinstance(item, Mapping) and _tells_of_tools(item) for item in prompt)


def _tells_of_tools(item: Mapping[str, Any]) -> bool:
    if item.get("role") == "tool" or item.get("tool_calls") or item.get("function_call"):
        return True
    if _is_of_tools(item):
        return True
    content = item.get("content")
    if not isinstance(content, list):
        return False
    return any(isinstance(part, Mapping) and _is_of_tools(part) for part in content)


def _is_of_tools(part: Mapping[str, Any]) -> bool:
    kind = part.get("type")
    return isinstance(kind, str) and kind in USED


def _is_schema(wanted: object) -> bool:
    found = wanted.get("format", wanted) if isinstance(wanted, Mapping) else None
    return isinstance(found, Mapping) and found.get("type") == "json_schema"


def _asks_to_reason(given: Mapping[str, Any]) -> bool:
    thinking, reasoning = given.get("thinking"), given.get("reasoning")
    if isinstance(thinking, Mapping) and thinking.get("type") in ("enabled", "adaptive"):
        return True
    effort = given.get("reasoning_effort")
    if effort is None and isinstance(reasoning, Mapping):
        effort = reasoning.get("effort")
    if isinstance(effort, Mapping):  # LiteLLM's form if a summary is requested too
        effort = effort.get("effort")
    return effort not in (None, "none")


def _answer_tokens(request: IncomingRequest) -> int:
    """Return the token limit of one choice: each has the context to itself."""
    if request.kwargs.keys().isdisjoint(request.surface.limits):
        return 0
    limits = (request.kwargs.get(name) for name in request.surface.limits)
    known = [limit for limit in limits if isinstance(limit, int) and limit > 0]
    return min(known, default=0)
