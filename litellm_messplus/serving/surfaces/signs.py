"""Signs in a prompt that tie it to the model that answered before, or that show trouble there.

Clients may send anything, so nothing here fails: what cannot be read is no sign. Every request
waits for this. JSON's only mapping is a dict, and a check for dict takes a twentieth of the time of
one for Mapping.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from litellm_messplus.core.hold import Signs, Trouble
from litellm_messplus.serving.surfaces.answers import deployment_of_response
from litellm_messplus.serving.surfaces.request import IncomingRequest

LISTS = (list, tuple)

# An open tool loop: the client sends a tool's result, and no user message follows it.

RESULTS = frozenset(
    {"tool_result", "function_call_output", "custom_tool_call_output", "computer_call_output"}
    | {"local_shell_call_output", "shell_call_output", "apply_patch_call_output"}
    | {"mcp_approval_response"}
)
"""Types of items and blocks that answer a tool call."""
TOOL_ROLES = frozenset({"tool", "function"})

# State that only one provider can read, or that is stored there.

SEALED = frozenset({"redacted_thinking", "item_reference", "container_upload"})
MAY_BE_SEALED = frozenset({*SEALED, "thinking", "reasoning"})
"""Types of items and blocks that hold such state, or may."""
SEALING = frozenset({"thinking_blocks", "encrypted_content", "file_id", "file", "source"})
"""Keys under which a message, an item or a block of any type holds it."""
ELSEWHERE = ("conversation", "container")
"""Arguments that name state stored at a provider."""
STORED_REASONING = "rs_"
"""Prefix of the id of a reasoning item that is stored at the provider."""

# Trouble, seen in the newest tool calls and questions.

RECENT_CALLS = 6
OFTEN = 3
"""Recent calls that must be alike, or failed, the newest among them, to count as trouble."""
FAILED_WORDS = ("error:", "traceback (most recent call last)")
"""Prefixes of the result of a failed tool, for APIs that do not mark it."""
LONG = 10_000
"""Characters of a question from which on its words are not taken apart: every request waits."""
LAST_SIGNS = " \t\r\n.!?…"
"""Characters at either end of a question that make no other one of it."""
SHORTEST = 24
"""Least characters of a question that counts as asked again: `go on` does not."""
RECENT_ITEMS = 64
"""Newest items that are searched for calls and questions."""
TWO_QUESTIONS = 2
"""Least questions in words alone that show anything."""


def read_signs(request: IncomingRequest) -> Signs:
    """Read the signs in a request of any surface."""
    plain = request.plain
    if plain is not None and len([turn for turn in plain if turn.role == "user"]) < TWO_QUESTIONS:
        return Signs()
    earlier = request.continues
    items = _items(request.prompt)
    is_in_loop = bool(items) and _answers_a_call(items[-1])
    return Signs(
        is_in_loop=is_in_loop,
        is_portable=earlier is None
        and not any(request.kwargs.get(name) for name in ELSEWHERE)
        and not any(map(_is_sealed, items)),
        trouble=_trouble(items, is_in_loop=is_in_loop),
        deployment=None if earlier is None else deployment_of_response(earlier),
    )


def _answers_a_call(item: object) -> bool:
    if not isinstance(item, dict):
        return False
    if item.get("role") in TOOL_ROLES or item.get("type") in RESULTS:
        return True
    return any(_is_result(part) for part in _items(item.get("content")))


def _is_result(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") in RESULTS


def _is_sealed(item: object) -> bool:
    """Tell whether a message, an item or a block holds state that another provider refuses."""
    if not isinstance(item, dict):
        return False
    kind, content = item.get("type"), item.get("content")
    if kind is None and isinstance(content, str) and not item.get("thinking_blocks"):
        return False  # most messages
    if not (kind in MAY_BE_SEALED or isinstance(content, LISTS)) and SEALING.isdisjoint(item):
        return False  # most others
    if kind in SEALED or item.get("encrypted_content") or item.get("file_id"):
        return True
    if kind == "thinking" and item.get("signature"):
        return True
    if kind == "reasoning" and str(item.get("id") or "").startswith(STORED_REASONING):
        return True
    inner = (item.get("thinking_blocks"), content)
    nested = (item.get("file"), item.get("source"))
    return any(map(_is_sealed, nested)) or any(
        _is_sealed(part) for parts in inner for part in _items(parts)
    )


def _trouble(items: Sequence[Any], *, is_in_loop: bool) -> Trouble | None:
    recent = items[-RECENT_ITEMS:]
    if not is_in_loop:
        return Trouble.ASKED_AGAIN if _is_repeated(recent) else None
    calls = _newest_calls(recent)
    if len(calls) < OFTEN:
        return None
    newest = calls[0]
    if sum(call[1:] == newest[1:] for call in calls) >= OFTEN:
        return Trouble.REPEATED
    failed = _failed(recent[-2 * RECENT_CALLS :])
    if newest[0] in failed and sum(call[0] in failed for call in calls) >= OFTEN:
        return Trouble.FAILED
    return None


Call = tuple[str, str, Any]
"""The id, the name and the arguments of a tool call."""


def _newest_calls(items: Sequence[Any]) -> list[Call]:
    found: list[Call] = []
    for item in reversed(items):
        found += reversed(list(_calls(item)))
        if len(found) >= RECENT_CALLS:
            break
    return found[:RECENT_CALLS]


def _calls(item: object) -> Iterator[Call]:
    """Yield the tool calls of a message or an item, in their order."""
    if not isinstance(item, dict):
        return
    for call in (item, *_items(item.get("tool_calls")), *_items(item.get("content"))):
        if not isinstance(call, dict):
            continue
        inner = call.get("function")
        named = inner if isinstance(inner, dict) else call
        given = named.get("arguments", named.get("input"))
        name = named.get("name")
        if isinstance(name, str) and given is not None:
            yield str(call.get("call_id") or call.get("id")), name, given


def _failed(items: Sequence[Any]) -> set[str]:
    """Collect the ids of failed calls, by the API's mark or by the first words of the result."""
    found: set[str] = set()
    for item in items:
        if not isinstance(item, dict):
            continue
        for result in (item, *_items(item.get("content"))):
            if isinstance(result, dict) and _has_failed(result):
                ids = (result.get(name) for name in ("tool_call_id", "tool_use_id", "call_id"))
                found.update(str(each) for each in ids if each)
    return found


def _has_failed(result: dict[str, Any]) -> bool:
    if result.get("is_error") is True:
        return True
    content = result.get("output", result.get("content"))
    is_result = result.get("role") in TOOL_ROLES or result.get("type") in RESULTS
    return is_result and isinstance(content, str) and content[:64].lower().startswith(FAILED_WORDS)


def _is_repeated(items: Sequence[Any]) -> bool:
    """Tell whether the newest question is the one before it: other data in the same template make
    another question."""
    questions = (words for item in reversed(items) if (words := _question(item)))
    newest, before = next(questions, None), next(questions, None)
    if newest is None or before is None or len(newest) < SHORTEST:
        return False
    return newest == before or (len(newest) < LONG and _words(newest) == _words(before))


def _words(text: str) -> list[str]:
    return text.strip(LAST_SIGNS).casefold().split()


def _question(item: object) -> str | None:
    """Return the text of a user's message; None for everything else."""
    if not isinstance(item, dict) or item.get("role") != "user" or _answers_a_call(item):
        return None
    content = item.get("content")
    if isinstance(content, str):
        return content
    texts = (part.get("text") for part in _items(content) if isinstance(part, dict))
    return "\n".join(text for text in texts if isinstance(text, str)) or None


def _items(prompt: object) -> Sequence[Any]:
    return prompt if isinstance(prompt, LISTS) else ()
