"""What is asked and told of lines and conversations.

A *line* is one prompt that grows, with what is warm of it at the deployments. A *conversation* is
what one label settles: the line that began it, and all that branched from it, were asked again or
compacted, or have its session. Both are named by the request that began them.

`Lines` of `lines.py` is asked where a request stands before it is decided (`find`), and told who
answers (`called`) and what became of it (`ended`). For the log, a place has the conversation's and
the line's names, the prefix, and the turn.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from litellm_messplus.conversations.digests import Digest
from litellm_messplus.costs.price import Price, Usage
from litellm_messplus.costs.usage import RecentMean
from litellm_messplus.prediction.encoder import Conversation

# What a deployment has of a line in its prompt cache, and so what it will read at a discount.

CACHE_SECONDS = 300.0
"""How long a provider keeps what is not read again, unless it says otherwise."""
HOUR_SECONDS = 3_600.0
"""The same, where the request paid for an hour."""
VLLM_SECONDS = 600.0
"""Seconds that a vLLM server keeps it, whose cache forgets by use and not by time: a guess."""


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


# Lines, and what is asked of them.


class Joined(StrEnum):
    """The sign that told that a prompt belongs to a conversation."""

    NEW = "new"
    PREFIX = "prefix"
    ID = "id"
    SESSION = "session"


@dataclass(slots=True, eq=False)
class Line:
    """One prompt that grows. ``tip`` is the digest of its newest form, ``requests`` counts them.
    ``candidate`` and ``deployment`` are who answered last, None before the first answer; ``warm``
    is what the deployments have in their caches, by deployment. The candidate serves since the
    request of number ``held_from``; ``is_answered`` where its last request was. ``prompt_tokens``
    and ``characters`` are of the newest prompt that was answered, ``stored`` is the share that was
    written of what was not cached of it, None where nobody says. It ``went_up`` where trouble has
    broken its hold."""

    name: str
    conversation: str
    tip: Digest
    used_at: float
    requests: int = 0
    candidate: str | None = None
    deployment: str | None = None
    warm: dict[str, Warm] = field(default_factory=dict)
    held_from: int = 1
    is_answered: bool = False
    prompt_tokens: float = 0.0
    characters: int = 0
    stored: float | None = None
    went_up: bool = False

    def branched(self, own: "Line", characters: int) -> None:
        """Give a line that has its first characters in common what holds for both."""
        own.candidate, own.deployment = self.candidate, self.deployment
        own.warm = {name: shared(warm, characters) for name, warm in self.warm.items()}
        own.prompt_tokens, own.characters = self.prompt_tokens, self.characters
        own.stored, own.went_up = self.stored, self.went_up


@dataclass(frozen=True, slots=True)
class Asked:
    """One request. ``ids`` reads those in its prompt that an answer gave (of tool calls), in their
    order: asked only where the words do not tell, for it takes as long as they do. ``session`` is
    None where nobody named one. ``continues`` is the id of the answer that it goes on from without
    repeating what was said; None of a whole prompt."""

    request_id: str
    zoo: str
    key: str
    conversation: Conversation
    ids: Callable[[], Sequence[str]] = tuple
    session: str | None = None
    continues: str | None = None

    @property
    def scope(self) -> tuple[str, str]:
        """Within which prompts, ids and sessions are the same."""
        return self.zoo, self.key


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a request. ``line`` is its own from now on; ``parent`` is the line that it came
    from, None where it grew or is the first. ``prefix`` counts the ``characters`` of the prompt
    that were asked before in either. ``is_again`` where all of them were. ``turn`` is the request's
    number in its line, from 1. It ``has_answers`` where the assistant speaks in the prompt."""

    line: Line
    joined: Joined
    turn: int
    prefix: int
    characters: int
    prompt: Digest
    scope: tuple[str, str]
    parent: Line | None = None
    is_again: bool = False
    has_answers: bool = False


@dataclass(frozen=True, slots=True)
class Told:
    """A request that another worker served, as the log tells of it: its line, its ``prompt``, its
    number there, who answered, and what that one has in its cache since."""

    line: str
    conversation: str
    prompt: Digest
    turn: int
    candidate: str
    deployment: str
    characters: int
    prompt_tokens: float = 0.0
    warm: Warm | None = None
