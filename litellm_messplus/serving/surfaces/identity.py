"""The sender of a request, the level that it wants, and what links it to its conversation."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from litellm_messplus.brain.messages import HEADER, MAY_KEY, NAME_KEY, WantedLevel
from litellm_messplus.core.lines import IDS
from litellm_messplus.records import Asker, Names, storable
from litellm_messplus.serving.litellm_seam import request_headers
from litellm_messplus.serving.surfaces.answers import field, whole
from litellm_messplus.serving.surfaces.conversation import read_conversation
from litellm_messplus.serving.surfaces.request import IncomingRequest

# Links of a request to its conversation: ids, a session, and the previous answer.

GENERATED = "litellm_session_id_generated"
"""LiteLLM's mark of a session id that it generated itself, one per request."""
ID_NAMES = ("id", "call_id", "tool_call_id", "tool_use_id")
"""Keys of the id of a tool call on the surfaces, in the call and in its result."""
CALLS = frozenset({"tool_use", "function_call", "custom_tool_call", "function", "custom"})
RESULTS = frozenset({"tool_result", "function_call_output", "custom_tool_call_output"})
"""Types of items and blocks that have such an id."""


def session_named(metadata: Mapping[str, Any], given: Mapping[str, Any]) -> str | None:
    """Find the session that a client named, in or outside its metadata; None for one that LiteLLM
    generated, which no other request shares."""
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


def answer_in_next_prompt(response: object) -> tuple[str, tuple[str, ...]]:
    """Write the answer, with its tool calls, as the next prompt will hold it: the text that
    distinguishes a conversation from others with the same question. Return the calls' ids too."""
    items = _answer(response)
    text = "\n".join(turn.text for turn in read_conversation(items).turns)
    return text, tuple(name for item in items for name in _ids(item))


def _answer(response: object) -> list[Any]:
    """Convert an answer to the messages, or the items, that a client will send back."""
    response = whole(response)  # the last event of a responses stream
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
    if isinstance(item, dict) and _is_plain(item):  # most messages
        return
    if not isinstance(item, Mapping):  # takes twenty times as long as a check for dict
        return
    kind = item.get("type")
    if item.get("role") == "tool" or kind in RESULTS or kind in CALLS:
        # An item of the responses API has an `id` of its own in addition to that of the call.
        own = (item.get(name) for name in reversed(ID_NAMES))
        found = next((name for name in own if isinstance(name, str) and name), None)
        if found is not None:
            yield found
    for inner in (*_items(item.get("tool_calls")), *_items(item.get("content"))):
        yield from _ids({"type": "function", **inner} if _is_call(inner) else inner)


def _is_plain(item: dict[str, Any]) -> bool:
    """Tell whether a message is plain text only."""
    is_words = isinstance(item.get("content"), str) and item.get("type") is None
    return is_words and not item.get("tool_calls") and item.get("role") != "tool"


def _is_call(inner: object) -> bool:
    """Detect a tool call of a chat: some clients leave its type out."""
    return isinstance(inner, Mapping) and "function" in inner


# The sender by readable names.
#
# LiteLLM collects names in its own metadata of a request: the key's alias, a user, an end user,
# tags. They are short and no text of a prompt; a client may send an end user and tags of any length
# and number.

LONGEST = 255
"""Most characters of a name that are kept."""
LONGEST_TAG = 64
"""Most characters of a tag that are kept."""
MOST_TAGS = 16
"""Most tags that are kept, the first ones."""


def asker_of(request: IncomingRequest) -> Asker:
    """Read the sender of a request, its call type, and whether it streams."""
    return Asker(
        request.litellm_call_id,
        request.key_hash,
        request.team_id,
        request.call_type,
        request.is_stream,
    )


def names_of(metadata: Mapping[str, Any], *, are_kept: bool) -> Names | None:
    """Read the names of the sender; None if the operator does not want them kept."""
    if not are_kept:
        return None
    return Names(
        key_alias=_name(metadata.get("user_api_key_alias")),
        user_id=_name(metadata.get("user_api_key_user_id")),
        end_user=_name(metadata.get("user_api_key_end_user_id")),
        tags=_tags(metadata.get("tags")),
    )


def _name(found: object) -> str | None:
    return storable(found[:LONGEST]) if found and isinstance(found, str) else None


def _tags(found: object) -> tuple[str, ...] | None:
    """Take the tags in order, without duplicates."""
    if found is None or not isinstance(found, Sequence) or isinstance(found, str):
        return None
    plain = (storable(tag[:LONGEST_TAG]) for tag in found[:MOST_TAGS] if isinstance(tag, str))
    return tuple(dict.fromkeys(filter(None, plain))) or None


# The level: what the operator states of the key or the team, and what the client asks for.


def wanted_level(request: IncomingRequest) -> WantedLevel:
    """Read what decides the level of a request. Of the key and the team the operator's metadata
    alone counts, never what the client sends."""
    metadata = request.metadata
    sent = request_headers(metadata).get(HEADER, request.client_metadata.get(NAME_KEY))
    stated, may = _stated(metadata, NAME_KEY), _stated(metadata, MAY_KEY)
    if may is not None:
        may = tuple(map(str, may if isinstance(may, list) else (may,)))
    return WantedLevel(stated, sent, may)


def _stated(metadata: Mapping[str, Any], key: str) -> Any:
    """Return what the operator states of the key, else of its team; None if nothing."""
    for whose in ("user_api_key_metadata", "user_api_key_team_metadata"):
        own = metadata.get(whose)
        found = own.get(key) if isinstance(own, Mapping) else None
        if found is not None:
            return found
    return None
