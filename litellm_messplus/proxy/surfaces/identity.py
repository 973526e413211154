"""What tells of which conversation a request is: ids, a session, and the answer before it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from litellm_messplus.conversations.lines import IDS
from litellm_messplus.proxy.surfaces.answers import field
from litellm_messplus.proxy.surfaces.conversation import read_conversation

GENERATED = "litellm_session_id_generated"
"""LiteLLM's mark of a session id that it made itself, another one for each request."""
ID_NAMES = ("id", "call_id", "tool_call_id", "tool_use_id")
"""Where the surfaces keep the id of a tool call, in the call and in its result."""
CALLS = frozenset({"tool_use", "function_call", "custom_tool_call", "function", "custom"})
RESULTS = frozenset({"tool_result", "function_call_output", "custom_tool_call_output"})
"""Types of what has one."""


def session_named(metadata: Mapping[str, Any], given: Mapping[str, Any]) -> str | None:
    """Find the session that a client named, in its metadata or beside it; None for one that LiteLLM
    generated, which no other request has."""
    if metadata.get(GENERATED):
        return None
    found = metadata.get("session_id") or given.get("litellm_session_id")
    return str(found) if found else None


def ids_in(prompt: object) -> tuple[str, ...]:
    """Collect the newest ids of the tool calls in a prompt of any surface, in their order."""
    found: dict[str, None] = {}
    for item in reversed(_items(prompt)):
        for name in reversed(list(_ids(item))):
            found.setdefault(name)
        if len(found) >= IDS:
            break
    return tuple(reversed(list(found)))[-IDS:]


def ids_given(response: object) -> tuple[str, ...]:
    """Collect the ids of the tool calls that an answer asks for."""
    return tuple(name for item in _answer(response) for name in _ids(item))


def answer_as_asked(response: object) -> str:
    """Write the answer as the next prompt will hold it, its tool calls too: the words by which a
    conversation is told from others with the same question."""
    read = read_conversation(_answer(response))
    return "\n".join(turn.text for turn in read.turns)


def _answer(response: object) -> list[Any]:
    """Convert an answer to the messages, or the items, that a client will send back."""
    response = field(response, "response") or response  # the last event of a responses stream
    choices = field(response, "choices")
    if choices:
        message = field(choices[0], "message")
        if message is None:
            return [{"role": "assistant", "content": field(choices[0], "text")}]
        return [{**_plain(message), "role": "assistant"}]
    blocks = field(response, "content")
    if isinstance(blocks, list):
        return [{"role": "assistant", "content": [_plain(block) for block in blocks]}]
    return [_plain(item) for item in field(response, "output") or []]


def _plain(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    return dict(value.model_dump(exclude_none=True)) if hasattr(value, "model_dump") else {}


def _items(prompt: object) -> Sequence[Any]:
    return prompt if isinstance(prompt, list | tuple) else ()


def _ids(item: object) -> Iterator[str]:
    """Yield the ids of a message or an item: its own, those of its calls and of its parts."""
    if isinstance(item, dict) and _is_plain(item):  # as most messages are
        return
    if not isinstance(item, Mapping):  # in twenty times the time that asking for a dict takes
        return
    kind = item.get("type")
    if item.get("role") == "tool" or kind in RESULTS or kind in CALLS:
        # An item of the responses API has an `id` of its own beside that of the call.
        own = (item.get(name) for name in reversed(ID_NAMES))
        found = next((name for name in own if isinstance(name, str) and name), None)
        if found is not None:
            yield found
    for inner in (*_items(item.get("tool_calls")), *_items(item.get("content"))):
        yield from _ids({"type": "function", **inner} if _is_call(inner) else inner)


def _is_plain(item: dict[str, Any]) -> bool:
    """Tell whether a message is words alone."""
    is_words = isinstance(item.get("content"), str) and item.get("type") is None
    return is_words and not item.get("tool_calls") and item.get("role") != "tool"


def _is_call(inner: object) -> bool:
    """Detect a tool call of a chat: some clients leave its type out."""
    return isinstance(inner, Mapping) and "function" in inner
