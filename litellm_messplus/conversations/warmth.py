"""What a deployment has of a line in its prompt cache, and so what it will read at a discount."""

from dataclasses import dataclass, replace

from litellm_messplus.costs.price import Price, Usage
from litellm_messplus.costs.token_estimator import RecentMean

CACHE_SECONDS = 300.0
"""How long a provider keeps what is not read again, unless it says otherwise."""
HOUR_SECONDS = 3_600.0
"""The same, where the request paid for an hour."""
VLLM_SECONDS = 600.0
"""The same of a vLLM server, whose cache forgets by use and not by time: a guess."""


@dataclass(frozen=True, slots=True)
class Warm:
    """The cache of one line at one deployment: ``tokens`` of a prompt of so many ``characters``
    that its last call left there at ``at``, for ``seconds``. ``read`` is how many tokens that call
    read, None where ``tokens`` are what was reported and not estimated of it."""

    tokens: float
    characters: int
    at: float
    seconds: float = CACHE_SECONDS
    read: float | None = None

    def tokens_at(self, now: float, price: Price) -> float:
        """Estimate the tokens that a call now would find: none after the time, none where the
        prompt is too short to be cached."""
        is_there = now - self.at <= self.seconds and self.tokens >= price.cached_from
        return self.tokens if is_there else 0.0


class Hits:
    """The share that one deployment found in its cache of what it had read before. All, before it
    has shown otherwise."""

    def __init__(self) -> None:
        self._share = RecentMean(1.0)

    @property
    def share(self) -> float:
        return self._share.value

    def observe(self, expected_tokens: float, cached_tokens: float) -> None:
        """Learn from a call whose prompt began with a prompt that it had, of so many tokens."""
        if expected_tokens > 0.0:
            self._share.add(min(cached_tokens / expected_tokens, 1.0))


def warm_after(
    usage: Usage,
    price: Price,
    characters: int,
    at: float,
    *,
    share: float = 1.0,
    seconds: float = CACHE_SECONDS,
) -> Warm:
    """Estimate what a call leaves at its deployment: what it read from the cache and wrote there,
    where writes are reported, which is where they are charged; else that share of its prompt."""
    if usage.written_tokens > 0 or price.written_surcharge > 0.0:
        kept = HOUR_SECONDS if usage.hour_tokens > 0 else seconds
        return Warm(float(usage.cached_tokens + usage.written_tokens), characters, at, kept)
    read = float(usage.prompt_tokens)
    return Warm(share * read, characters, at, seconds, read=read)


def shared(warm: Warm, characters: int) -> Warm:
    """Estimate what of it a prompt finds that has only its first characters in common."""
    if characters >= warm.characters:
        return warm
    part = characters / warm.characters
    read = None if warm.read is None else warm.read * part
    return replace(warm, tokens=warm.tokens * part, characters=characters, read=read)
