"""Reading from an answer whether LiteLLM's response cache gave it, and which answer it repeats."""

from collections.abc import Mapping
from typing import Any

import litellm

from litellm_messplus.proxy import answers
from litellm_messplus.proxy.response_ids import plain_response_id

NEVER_CACHED = {"no-cache": True, "no-store": True}
"""LiteLLM's `cache` argument for a call that neither reads the cache nor writes it."""


def is_repeated(data: Mapping[str, Any], response: object) -> bool:
    """Whether the cache answered a request; ``data`` is what LiteLLM hands to a hook.

    An Anthropic message that is whole carries no sign of it. LiteLLM's logging object does.
    """
    details = getattr(data.get("litellm_logging_obj"), "caching_details", None) or {}
    return bool(answers.hidden_params(response).get("cache_hit") or details.get("cache_hit"))


async def repeated_id(response: object) -> str | None:
    """The id of the answer that is repeated, as the log has it; None where LiteLLM does not say.

    A stream does not tell its id before its first word; the entry of the cache does, but for those
    of Anthropic messages and of semantic caches.
    """
    told = answers.response_id(response)
    key = answers.hidden_params(response).get("cache_key")
    if told is None and key is not None and litellm.cache is not None:
        entry = await litellm.cache.async_get_cache(cache_key=key, cache={"use-cache": True})
        told = answers.response_id(entry)
    return None if told is None else plain_response_id(told)
