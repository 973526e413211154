"""Reading an answer, on any surface: its id, its text, its usage."""

from collections.abc import Mapping
from typing import Any


def hidden_params(response: object) -> Mapping[str, Any]:
    """What LiteLLM keeps beside an answer; Anthropic messages are plain dictionaries."""
    if isinstance(response, Mapping):
        return response.get("_hidden_params") or {}
    return getattr(response, "_hidden_params", None) or {}


def response_id(response: object) -> str | None:
    """The `id` that the client gets with a whole answer."""
    found = field(response, "id")
    return None if found is None else str(found)


def usage(response: object) -> object:
    """What an answer says that it used, in its own words; None where it says nothing."""
    return field(response, "usage")


def text(response: object) -> str:
    """The words of an answer: of its first choice, or of its content blocks in order."""
    choices = field(response, "choices")
    if choices:
        message = field(choices[0], "message")
        return str(field(message, "content") or field(choices[0], "text") or "")
    blocks = field(response, "output") or field(response, "content") or []
    said = [block for block in blocks if field(block, "type") != "reasoning"]
    return "".join(_block_text(block) for block in said)


def _block_text(block: object) -> str:
    inner = field(block, "content")
    if isinstance(inner, list):
        return "".join(_block_text(part) for part in inner)
    return str(field(block, "text") or "")


def field(value: object, name: str) -> Any:
    """Of a mapping or an object; None where there is none."""
    if isinstance(value, Mapping):
        return value.get(name)
    return getattr(value, name, None)
