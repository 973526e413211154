"""What an endpoint says that a call used, in the words of any API; or what we count ourselves."""

import math
from typing import Any

import litellm

from litellm_messplus.costs.price import Usage
from litellm_messplus.costs.usage import CHARACTERS_PER_TOKEN
from litellm_messplus.proxy.surfaces.answers import field

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
