"""The conversation in a request of any surface, as the model will see it: turns and tools.

Clients may send anything, so nothing here fails: what has no text gives no turn."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from litellm_messplus.core.encoder import Conversation, Turn

MAPPINGS = (dict, Mapping)
"""Mapping types; dict, JSON's only one, comes first: its check takes a twentieth of the time."""
DEEPEST = 16
"""Most levels of nesting that are read: a content part in a tool result in a message takes six."""
WORDS = ("content", "text", "output", "refusal", "thinking")
"""Keys under which a message, item or content part has its text; the first present one counts."""
PARTED = frozenset({*WORDS, "type", "function_call", "name"}) - {"content"}
"""Keys that no simple message has."""
ROLES_BY_TYPE = {
    "function_call": "assistant",
    "custom_tool_call": "assistant",
    "reasoning": "assistant",
    "function_call_output": "tool",
    "custom_tool_call_output": "tool",
}
"""Roles of items of a responses input that name none, by type."""


IMAGES = frozenset({"image_url", "image", "input_image"})
ATTACHMENTS = frozenset(
    {"input_audio", "audio", "audio_url", "file", "input_file", "document", "video_url"}
)
"""Types of content parts on all surfaces."""
JSON_FORMATS = frozenset({"json_object", "json_schema"})


def read_conversation(
    messages: object,
    system: object = None,
    tools: Sequence[object] = (),
    answer_formats: Sequence[object] = (),
) -> Conversation:
    """Read a conversation from ``messages`` (or a prompt, or a responses input), a separate
    ``system`` prompt, ``tools``: lists of tools or functions in any surface's format, and the
    requested ``answer_formats``."""
    turns = [*_turns(system, "system"), *_turns(messages, "user")]
    descriptions = [text for given in tools for text in _tools(given)]
    attached = [_word(part, "type") for part in attached_parts(messages)]
    return Conversation(
        tuple(turns),
        tuple(descriptions),
        images=sum(kind in IMAGES for kind in attached),
        attachments=sum(kind in ATTACHMENTS for kind in attached),
        asks_json=any(_is_json(wanted) for wanted in answer_formats),
    )


PLAIN = frozenset({"role", "content"})
PLAIN_ROLES = frozenset({"system", "developer", "user", "assistant"})


def plain_turns(messages: Any) -> tuple[Turn, ...] | None:
    """Read messages that are a role and one text each, as most are; None if any is not."""
    if messages.__class__ is not list:
        return None
    turns = []
    for message in messages:
        if message.__class__ is not dict or message.keys() != PLAIN:
            return None
        role, text = message["role"], message["content"]
        if text.__class__ is not str or role.__class__ is not str or role not in PLAIN_ROLES:
            return None
        if text:
            turns.append(Turn(role, text))
    return tuple(turns)


def attached_parts(content: object, depth: int = DEEPEST) -> Iterator[Mapping[str, Any]]:
    """Yield all images and other attachments, at any level of messages and parts."""
    if isinstance(content, str) or depth == 0:
        return
    if isinstance(content, Mapping):
        kind = _word(content, "type")
        if kind in IMAGES or kind in ATTACHMENTS:
            yield content
        else:
            for name in WORDS:
                inner = content.get(name)
                if inner is not None and not isinstance(inner, str):
                    yield from attached_parts(inner, depth - 1)
    elif _is_list(content):
        for part in _items(content):
            if not (isinstance(part, dict) and _is_simple(part)):
                yield from attached_parts(part, depth - 1)


def _is_simple(message: dict[str, Any]) -> bool:
    """Detect a message without parts, as most are: a search for parts takes ten times as long, and
    every request waits for it."""
    content = message.get("content")
    return (content is None or isinstance(content, str)) and PARTED.isdisjoint(message)


def _is_json(wanted: object) -> bool:
    """Tell whether JSON is requested, by `response_format`, or by the `format` within `text`
    (responses) or `output_config` (Anthropic messages)."""
    found = wanted.get("format", wanted) if isinstance(wanted, Mapping) else None
    return isinstance(found, Mapping) and _word(found, "type") in JSON_FORMATS


def _turns(content: object, role: str) -> Iterator[Turn]:
    """Yield a turn for each message; consecutive content outside of messages is one of ``role``."""
    if content is None:
        return
    alone: list[object] = []
    for item in _items(content):
        if isinstance(item, MAPPINGS) and _is_message(item):
            if alone:
                yield from _turn(alone, role)
                alone = []
            yield from _turn(item, _role(item))
        else:
            alone.append(item)
    yield from _turn(alone, role)


def _turn(content: object, role: str) -> Iterator[Turn]:
    text = _plain(content)
    if text is None:
        text = "\n".join(filter(None, _texts(content, DEEPEST)))
    if text:
        yield Turn(role, text)


def _plain(content: object) -> str | None:
    """Return the text of a message that is one text, with calls or without; None for any other."""
    if not isinstance(content, dict) or content.get("function_call"):
        return None if content else ""
    words, calls = content.get("content"), content.get("tool_calls")
    if not calls:
        return words if isinstance(words, str) else None
    called = _functions(calls) if _is_simple(content) else None
    return called and (f"{words}\n{called}" if words else called)


def _functions(calls: object) -> str | None:
    """Return calls of functions in the format of chats; None for any other format."""
    if not isinstance(calls, list):
        return None
    texts = []
    for call in calls:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            return None
        name, given = function.get("name"), function.get("arguments")
        if not (isinstance(name, str) and name and isinstance(given, str)):
            return None
        texts.append(f"{name}({given})")
    return "\n".join(texts)


def _items(content: object) -> Sequence[object]:
    return content if _is_list(content) else (content,)  # type: ignore[return-value]


def _is_list(content: object) -> bool:
    if content.__class__ in (list, dict, str):  # as nearly all are
        return content.__class__ is list
    return isinstance(content, Sequence) and not isinstance(content, bytes | str)


def _is_message(item: Mapping[str, Any]) -> bool:
    return "role" in item or _word(item, "type") in ROLES_BY_TYPE


def _role(item: Mapping[str, Any]) -> str:
    return _word(item, "role") or ROLES_BY_TYPE.get(_word(item, "type"), "user")


def _texts(content: object, depth: int) -> Iterator[str]:
    """Yield the texts at any level of messages and content parts; other parts by their type."""
    if isinstance(content, str):
        yield content
    elif depth == 0:
        return
    elif isinstance(content, Mapping):
        yield from _texts_of_part(content, depth - 1)
    elif _is_list(content):
        for part in _items(content):
            yield from _texts(part, depth - 1)


def _texts_of_part(part: Mapping[str, Any], depth: int) -> Iterator[str]:
    """Yield the text first, then the calls that an assistant made."""
    words = next((part[name] for name in WORDS if part.get(name) is not None), None)
    calls = [*_items(part.get("tool_calls")), part.get("function_call")]
    called = [text for call in calls if isinstance(call, Mapping) for text in _call(call)]
    if words is not None:
        yield from _texts(words, depth)
    elif "name" in part and ("arguments" in part or "input" in part):
        yield from _call(part)
    elif not called:
        yield from _mark(part)
    yield from called


def _call(call: Mapping[str, Any]) -> Iterator[str]:
    """Yield a tool call as `name(arguments)`, from any surface's format."""
    function = call.get("function")
    inner: Mapping[str, Any] = function if isinstance(function, Mapping) else call
    if name := _word(inner, "name"):
        yield f"{name}({_arguments(inner.get('arguments', inner.get('input')))})"
    else:
        yield from _mark(call)


def _mark(part: Mapping[str, Any]) -> Iterator[str]:
    """Name a part without text by its type."""
    if kind := _word(part, "type"):
        yield f"[{kind}]"


def _word(given: Mapping[str, Any], key: str) -> str:
    found = given.get(key)
    return found if isinstance(found, str) else ""


def _arguments(given: object) -> str:
    if given is None:
        return ""
    if isinstance(given, str):
        return given
    try:
        return json.dumps(given, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return "..."


def _tools(given: object) -> Iterator[str]:
    """Yield each tool's name and description; one without both (built in) by its type."""
    for tool in _items(given):
        if not isinstance(tool, Mapping):
            continue
        function = tool.get("function")
        inner: Mapping[str, Any] = function if isinstance(function, Mapping) else tool
        words = [_word(inner, "name"), _word(inner, "description")]
        if any(words):
            yield ": ".join(filter(None, words))
        else:
            yield from _mark(tool)
