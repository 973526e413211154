"""Reading an answer, on any surface: its id, its text, its usage."""

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import litellm

from litellm_messplus.costs.price import Usage
from litellm_messplus.costs.usage import CHARACTERS_PER_TOKEN
from litellm_messplus.labels.source import Answer, Finish, ToolCall
from litellm_messplus.serving import litellm_seam

# Ids of answers, as the log has them, and what LiteLLM writes into them.


def plain_response_id(given: str) -> str:
    """Decode the id that a client was given to the one in LiteLLM's log event."""
    return litellm_seam.decrypted_response_id(given)


def deployment_of_response(response_id: str) -> str | None:
    """Return LiteLLM's id of the deployment that gave a response; None for an id that is not
    LiteLLM's own."""
    return litellm_seam.deployment_of_response_id(plain_response_id(response_id))


def response_id(response: object) -> str | None:
    """Return the `id` that the client gets with a whole answer."""
    found = field(response, "id")
    return None if found is None else str(found)


def usage(response: object) -> object:
    """Return what an answer says that it used, in its own words; None where it says nothing."""
    return field(response, "usage")


def text(response: object) -> str:
    """Return the words of an answer: of its first choice, or of its content blocks in order."""
    response = whole(response)
    choices = field(response, "choices")
    if choices:
        message = field(choices[0], "message")
        return str(field(message, "content") or field(choices[0], "text") or "")
    blocks = field(response, "output") or field(response, "content") or []
    said = [block for block in blocks if field(block, "type") != "reasoning"]
    return "".join(_block_text(block) for block in said)


def whole(response: object) -> object:
    """Get the answer itself: of a responses stream LiteLLM gives the last event, which has it."""
    return field(response, "response") or response


def _block_text(block: object) -> str:
    inner = field(block, "content")
    if isinstance(inner, list):
        return "".join(_block_text(part) for part in inner)
    return str(field(block, "text") or "")


def field(value: object, name: str) -> Any:
    """Read a field of a mapping or an object; None where there is none."""
    if isinstance(value, Mapping):
        return value.get(name)
    return getattr(value, name, None)


# Reading from an answer whether LiteLLM's response cache gave it, and which answer it repeats.

NEVER_CACHED = {"no-cache": True, "no-store": True}
"""LiteLLM's `cache` argument for a call that neither reads the cache nor writes it."""


def is_repeated(data: Mapping[str, Any], response: object) -> bool:
    """Tell whether the cache answered a request; ``data`` is what LiteLLM hands to a hook.

    An Anthropic message that is whole carries no sign of it. LiteLLM's logging object does.
    """
    told = litellm_seam.hidden_params(response), litellm_seam.caching_details(data)
    return any(each.get("cache_hit") for each in told)


async def repeated_id(response: object) -> str | None:
    """Return the id of the answer that is repeated, as the log has it; None where LiteLLM does not
    say.

    A stream does not tell its id before its first word; the entry of the cache does, but for those
    of Anthropic messages and of semantic caches.
    """
    told = response_id(response)
    key = litellm_seam.hidden_params(response).get("cache_key")
    if told is None and key is not None:
        told = response_id(await litellm_seam.cached_answer(key))
    return None if told is None else plain_response_id(told)


# Reading what a model said, on any surface, for those who judge it.

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
    """Read the answer of any surface; what it does not have is empty."""
    response = whole(response)
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
    """List output items and content blocks, nested ones after the one that holds them."""
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
    """Name images and sounds of a chat; of other surfaces what the server's own tools left, too."""
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


# What an endpoint reports that a call used, in the words of any API; or what we count ourselves.

MOST_TOKENS = 100_000_000
"""Of one prompt or one answer, ten times what the longest context holds: more is a mistake."""
WRITTEN = ("cache_write_tokens", "cache_creation_tokens")
"""LiteLLM's names of what an endpoint wrote to its cache, by provider."""


class AbsurdUsageError(ValueError):
    """Tokens that no call can have used."""


def read_usage(reported: object) -> Usage | None:
    """Read tokens as reported; None where none were, or only zeros: no call reads nothing.

    Raises AbsurdUsageError for what no call can have used.
    """
    prompt = _first(reported, "prompt_tokens", "input_tokens")
    completion = _first(reported, "completion_tokens", "output_tokens")
    read = field(reported, "prompt_tokens_details") or field(reported, "input_tokens_details")
    answered = field(reported, "completion_tokens_details") or field(
        reported, "output_tokens_details"
    )
    cached = _tokens(field(read, "cached_tokens"))
    written = _first(read, *WRITTEN) or _first(reported, "cache_creation_input_tokens")
    if _is_anthropic(reported):  # which leaves out of the prompt what its cache has to do with
        cached = _tokens(field(reported, "cache_read_input_tokens"))
        prompt += cached + written
    if not prompt and not completion:
        return None
    cached = min(cached, prompt)
    written = min(written, prompt - cached)
    details = field(read, "cache_creation_token_details") or field(reported, "cache_creation")
    return Usage(
        prompt,
        completion,
        cached_tokens=cached,
        reasoning_tokens=min(_tokens(field(answered, "reasoning_tokens")), completion),
        written_tokens=written,
        hour_tokens=min(_tokens(field(details, "ephemeral_1h_input_tokens")), written),
    )


def counted_usage(prompt_characters: int, answer: str) -> Usage | None:
    """Count the usage of a call whose endpoint said nothing: the answer by LiteLLM's general
    tokenizer, the prompt, whose words are not kept, by its length. None where there are no words to
    count."""
    if not answer:
        return None
    # Without a model's name: by some of them, LiteLLM would download a tokenizer.
    written = litellm.token_counter(model="", text=answer, count_response_tokens=True)
    return Usage(math.ceil(prompt_characters / CHARACTERS_PER_TOKEN), int(written), is_counted=True)


def _is_anthropic(reported: object) -> bool:
    """Tell Anthropic's usage, whose words are those of the Responses API, but for the details."""
    return (
        field(reported, "input_tokens") is not None
        and field(reported, "prompt_tokens") is None
        and field(reported, "input_tokens_details") is None
    )


def _first(reported: object, *names: str) -> int:
    return next((tokens for name in names if (tokens := _tokens(field(reported, name)))), 0)


def _tokens(value: Any) -> int:
    if value is None:
        return 0
    try:
        tokens = int(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise AbsurdUsageError(f"{value!r} tokens") from error
    if not 0 <= tokens <= MOST_TOKENS:
        raise AbsurdUsageError(f"{tokens} tokens")
    return tokens
