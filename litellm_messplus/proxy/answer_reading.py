"""Reading what a model said, on any surface, for those who judge it."""

import json
from collections.abc import Iterable
from typing import Any

from litellm_messplus.labels.answered_call import Answer, Finish, ToolCall
from litellm_messplus.proxy.answers import field, text

FINISHES = {
    "stop": Finish.STOP,
    "end_turn": Finish.STOP,
    "stop_sequence": Finish.STOP,
    "completed": Finish.STOP,
    "length": Finish.LENGTH,
    "max_tokens": Finish.LENGTH,
    "max_output_tokens": Finish.LENGTH,
    "tool_calls": Finish.TOOL_CALLS,
    "function_call": Finish.TOOL_CALLS,
    "tool_use": Finish.TOOL_CALLS,
    "content_filter": Finish.CONTENT_FILTER,
    "refusal": Finish.CONTENT_FILTER,
}
"""By the words of chat and text completions, Anthropic messages and responses."""
TOOL_CALLS = frozenset({"tool_use", "function_call", "custom_tool_call"})
"""Types of what asks for a tool of the client's."""
WORDS = frozenset({"message", "text", "reasoning", "thinking", "redacted_thinking"})
"""Types of what has words, said or thought."""


def read_answer(response: object) -> Answer:
    """The answer of any surface; what it does not have is empty."""
    response = field(response, "response") or response  # the last event of a responses stream
    choices = field(response, "choices")
    first = choices[0] if choices else None
    message = field(first, "message")
    parts = [] if first is not None else _parts(response)
    return Answer(
        text=text(response),
        tool_calls=tuple(_tool_calls(message, parts)),
        finish=_finish(response, first),
        refusal=_refusal(message, parts),
        others=tuple(_others(message, response)),
    )


def _parts(response: object) -> list[Any]:
    """Output items and content blocks, nested ones after the one that holds them."""
    outer = field(response, "output") or field(response, "content") or []
    found = []
    for part in outer if isinstance(outer, list) else []:
        inner = field(part, "content")
        found += [part, *(inner if isinstance(inner, list) else [])]
    return found


def _tool_calls(message: object, parts: Iterable[object]) -> Iterable[ToolCall]:
    own = field(message, "tool_calls") or []
    called = [field(call, "function") or field(call, "custom") for call in own]
    called.append(field(message, "function_call"))
    called += [part for part in parts if field(part, "type") in TOOL_CALLS]
    for call in called:
        if call is not None:
            given = field(call, "arguments")
            arguments = field(call, "input") if given is None else given
            words = arguments if isinstance(arguments, str) else json.dumps(arguments, default=str)
            yield ToolCall(str(field(call, "name") or ""), words)


def _others(message: object, response: object) -> Iterable[str]:
    """Images and sounds of a chat; of other surfaces what the server's own tools left, too."""
    yield from (name for name in ("images", "audio") if field(message, name))
    for part in field(response, "output") or field(response, "content") or []:
        kind = field(part, "type")
        if kind and kind not in WORDS and kind not in TOOL_CALLS:
            yield str(kind)


def _finish(response: object, first: object) -> Finish:
    incomplete = field(field(response, "incomplete_details"), "reason")
    given = (
        field(first, "finish_reason")
        or field(response, "stop_reason")
        or incomplete
        or field(response, "status")
    )
    return FINISHES.get(str(given), Finish.OTHER)


def _refusal(message: object, parts: Iterable[object]) -> str | None:
    said = field(message, "refusal")
    kept = field(field(message, "provider_specific_fields"), "refusal")  # by LiteLLM, of a chat
    refused = next((part for part in parts if field(part, "type") == "refusal"), None)
    found = said or kept or field(refused, "refusal")
    return str(found) if found else None
