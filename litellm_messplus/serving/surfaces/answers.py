"""Reading an answer, on any surface: its id, its text, its usage."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
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


def as_plain(response: object) -> dict[str, Any]:
    """Copy a response whole into a dict of what JSON has, whichever class LiteLLM gave it."""
    found: Any = whole(response)
    return deepcopy(found) if isinstance(found, dict) else dict(found.model_dump(warnings=False))


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


# A streamed answer, by the chunks that the client got.

CUT = frozenset(
    {"length", "max_tokens", "max_output_tokens", "MAX_TOKENS"}
    | {"content_filter", "refusal", "SAFETY"}
)
"""Ways to end by which an answer without words is one: it was cut off, or refused."""
ENDS = frozenset({"message_stop", "response.completed", "response.incomplete"})
ERRORS = frozenset({"error", "response.failed"})
"""Types of the last events of a stream that have no finish reason."""


def events(chunks: Sequence[Any]) -> list[Any]:
    """List the events of a stream: chunks as they are; from bytes, which may be cut anywhere, those
    within."""
    if not chunks or not isinstance(chunks[0], bytes | str):
        return list(chunks)
    found = []
    parts = (each.encode() if isinstance(each, str) else each for each in chunks)
    for line in b"".join(parts).splitlines():
        with suppress(ValueError):
            found.append(json.loads(line.removeprefix(b"data:")))
    return found


def has_content(response: object) -> bool:
    """Tell whether an event, or a whole answer, holds any part of one: words, if only empty ones,
    a tool call, a refusal, reasoning or audio."""
    choices = field(response, "choices")
    if choices and _says(choices[0]):
        return True
    kind, inner = _kind(response), whole(response)
    if kind.startswith("content_block"):
        return kind.endswith("delta") or _kind(field(response, "content_block")) not in ("", "text")
    if kind.endswith(".delta") or ".output_item" in kind:
        return True
    whys = [field(each, "stop_reason") for each in (response, field(response, "delta"))]
    whys.append(field(field(inner, "incomplete_details"), "reason"))
    if not CUT.isdisjoint(whys) or field(inner, "output") or field(inner, "content"):
        return True
    return any(map(_says, _choices(inner)))


def is_empty(response: object) -> bool:
    """Tell whether a whole answer is of a known form, and holds no part."""
    inner, parts = whole(response), ("choices", "output", "content", "candidates")
    return not has_content(response) and any(field(inner, name) is not None for name in parts)


def _choices(response: object) -> list[Any]:
    """List the choices of a chat, or Gemini's candidates."""
    return [*(field(response, "choices") or ()), *(field(response, "candidates") or ())]


def _says(choice: object) -> bool:
    """Tell whether a choice says anything: LiteLLM ends a stream of nothing with an empty delta."""
    if field(choice, "message") is not None or field(choice, "text"):
        return True
    if not CUT.isdisjoint([field(choice, "finish_reason"), field(choice, "finishReason")]):
        return True
    said = field(choice, "delta") or field(choice, "content")
    if isinstance(said, Mapping):
        return "content" in said or any(said[name] for name in said.keys() - {"role"})
    return said is not None and bool(said.model_dump(exclude_none=True))


def error_of(event: object) -> str | None:
    """Return the message of an event that says that the answer failed; None for any other."""
    if _kind(event) not in ERRORS:
        return None
    error = field(event, "error") or field(whole(event), "error") or event
    return str(field(error, "message") or error)


def has_ended(event: object) -> bool:
    """Tell whether nothing but the usage may follow an event."""
    reasons = [(field(one, "finish_reason"), field(one, "finishReason")) for one in _choices(event)]
    return _kind(event) in ENDS or any(map(any, reasons))


def streamed_id(event: object) -> str | None:
    """Return the id of an answer from the first event of its stream; None if it has none."""
    found = response_id(field(event, "message") or whole(event))
    return None if found is None else plain_response_id(found)


def assembled(chunks: Sequence[Any]) -> object | None:
    """Put a streamed answer together as LiteLLM does for its log; None for one in bytes."""
    last = chunks[-1] if chunks else None
    if isinstance(last, bytes | str) or _kind(last) in ENDS:
        return last if _kind(last) in ENDS else None
    found: object | None = litellm.stream_chunk_builder(chunks=list(chunks))
    return found


def _kind(event: object) -> str:
    found = field(event, "type")
    return str(getattr(found, "value", found) or "")


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
