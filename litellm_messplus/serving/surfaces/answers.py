"""Reading an answer, on any surface: its id, its text, its usage."""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Any

import litellm

from litellm_messplus.costs.price import Usage
from litellm_messplus.costs.usage import CHARACTERS_PER_TOKEN
from litellm_messplus.labels.source import Answer, Finish, ToolCall
from litellm_messplus.serving import litellm_seam

# Ids of answers, as logged, and what LiteLLM encodes in them.


def plain_response_id(given: str) -> str:
    """Decode the id that a client received to the one in LiteLLM's log event."""
    return litellm_seam.decrypted_response_id(given)


def deployment_of_response(response_id: str) -> str | None:
    """Return LiteLLM's id of the deployment that gave a response; None for an id that is not
    LiteLLM's own."""
    return litellm_seam.deployment_of_response_id(plain_response_id(response_id))


def response_id(response: object) -> str | None:
    """Return the `id` that the client receives with a non-streamed answer."""
    found = field(response, "id")
    return None if found is None else str(found)


def usage(response: object) -> object:
    """Return the usage that an answer reports, in its own format; None if it reports none."""
    return field(response, "usage")


def text(response: object) -> str:
    """Return the text of an answer: of its first choice, or of its content blocks in order."""
    choices = field(response, "choices")
    if choices:
        message = field(choices[0], "message")
        return str(field(message, "content") or field(choices[0], "text") or "")
    response = whole(response)
    blocks = field(response, "output") or field(response, "content") or []
    text_blocks = [block for block in blocks if field(block, "type") != "reasoning"]
    return "".join(_block_text(block) for block in text_blocks)


def log_probabilities(response: object) -> list[float]:
    """Return the log-probabilities of the tokens of a chat completion; empty without any."""
    choices = field(response, "choices")
    tokens = field(field(choices[0], "logprobs"), "content") if choices else None
    found = (field(token, "logprob") for token in tokens or ())
    return [float(each) for each in found if each is not None]


def whole(response: object) -> object:
    """Get the answer itself, which a responses stream has in its last event."""
    return field(response, "response") or response


def _block_text(block: object) -> str:
    inner = field(block, "content")
    if isinstance(inner, list):
        return "".join(_block_text(part) for part in inner)
    return str(field(block, "text") or "")


def field(value: object, name: str) -> Any:
    """Read a field of a mapping or an object; None if it is missing."""
    if value is None:
        return None
    kind: Any = value.__class__
    if kind is dict or _is_mapping(kind):
        return value.get(name)  # type: ignore[attr-defined]
    return getattr(value, name, None)


@cache
def _is_mapping(kind: type) -> bool:
    return issubclass(kind, Mapping)


# Whether an answer is from LiteLLM's response cache, and which answer it repeats.

NEVER_CACHED = {"no-cache": True, "no-store": True}
"""LiteLLM's `cache` argument for a call that neither reads the cache nor writes it."""


def is_repeated(data: Mapping[str, Any], response: object) -> bool:
    """Tell whether the cache answered a request; ``data`` is LiteLLM's argument of a hook.

    A non-streamed Anthropic message does not show it; LiteLLM's logging object does.
    """
    if litellm_seam.hidden_params(response).get("cache_hit"):
        return True
    return bool(litellm_seam.caching_details(data).get("cache_hit"))


async def repeated_id(response: object) -> str | None:
    """Return the id of the answer that is repeated, as logged; None if unknown to LiteLLM.

    A stream has no id before its first word; the cache's entry has it, except for Anthropic
    messages and semantic caches.
    """
    given = response_id(response)
    key = litellm_seam.hidden_params(response).get("cache_key")
    if given is None and key is not None:
        given = response_id(await litellm_seam.cached_answer(key))
    return None if given is None else plain_response_id(given)


# Reading the content of an answer, on any surface, for its judges.

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
"""Finish reasons of chat and text completions, Anthropic messages and responses."""
TOOL_CALLS = frozenset({"tool_use", "function_call", "custom_tool_call"})
"""Types of items and blocks that call a tool of the client."""
WORDS = frozenset({"message", "text", "reasoning", "thinking", "redacted_thinking"})
"""Types of items and blocks that hold text, answered or reasoned."""


def read_answer(response: object) -> Answer:
    """Read the answer of any surface; missing parts are empty."""
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
    """Name images and audio of a chat; on other surfaces also outputs of the server's tools."""
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
    refusal = field(message, "refusal")
    kept = field(field(message, "provider_specific_fields"), "refusal")  # by LiteLLM, of a chat
    refused = next((part for part in parts if field(part, "type") == "refusal"), None)
    found = refusal or kept or field(refused, "refusal")
    return str(found) if found else None


# The usage of a call as the endpoint reports it, in the format of any API; or as we count it.

MOST_TOKENS = 100_000_000
"""Most tokens of one prompt or answer, ten times the longest context: more is a mistake."""
WRITTEN = ("cache_write_tokens", "cache_creation_tokens")
"""LiteLLM's names for tokens that an endpoint wrote to its cache, by provider."""


class AbsurdUsageError(ValueError):
    """Error for a number of tokens that no call can have used."""


def read_usage(reported: object) -> Usage | None:
    """Read tokens as reported; None without a report, or if all are zero: every call reads some.

    Raises AbsurdUsageError for numbers that no call can have used.
    """
    read: FieldReader = reported.get if isinstance(reported, dict) else partial(field, reported)
    prompt = _first(read, "prompt_tokens", "input_tokens")
    completion = _first(read, "completion_tokens", "output_tokens")
    of_prompt = read("prompt_tokens_details") or read("input_tokens_details")
    of_answer = read("completion_tokens_details") or read("output_tokens_details")
    cached = 0 if of_prompt is None else _tokens(field(of_prompt, "cached_tokens"))
    written = 0 if of_prompt is None else _first(partial(field, of_prompt), *WRITTEN)
    written = written or _first(read, "cache_creation_input_tokens")
    if _is_anthropic(read):  # whose prompt tokens exclude cached and written ones
        cached = _tokens(read("cache_read_input_tokens"))
        prompt += cached + written
    if not prompt and not completion:
        return None
    if not (cached or written or of_answer):
        return Usage(prompt, completion)
    cached = min(cached, prompt)
    written = min(written, prompt - cached)
    details = field(of_prompt, "cache_creation_token_details") or read("cache_creation")
    return Usage(
        prompt,
        completion,
        cached_tokens=cached,
        reasoning_tokens=min(_tokens(field(of_answer, "reasoning_tokens")), completion),
        written_tokens=written,
        hour_tokens=min(_tokens(field(details, "ephemeral_1h_input_tokens")), written),
    )


def counted_usage(prompt_characters: int, answer: str) -> Usage | None:
    """Count the usage of a call whose endpoint reported none: the answer by LiteLLM's general
    tokenizer, the prompt, whose text is not kept, by its length. None without an answer's text."""
    if not answer:
        return None
    # Without a model's name: for some names, LiteLLM would download a tokenizer.
    written = litellm.token_counter(model="", text=answer, count_response_tokens=True)
    return Usage(math.ceil(prompt_characters / CHARACTERS_PER_TOKEN), int(written), is_counted=True)


FieldReader = Callable[[str], Any]
"""The reader of a field by its name."""


def _is_anthropic(read: FieldReader) -> bool:
    """Detect Anthropic's usage, whose keys are those of the Responses API without the details."""
    return (
        read("input_tokens") is not None
        and read("prompt_tokens") is None
        and read("input_tokens_details") is None
    )


def _first(read: FieldReader, *names: str) -> int:
    for name in names:
        tokens = _tokens(read(name))
        if tokens:
            return tokens
    return 0


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
