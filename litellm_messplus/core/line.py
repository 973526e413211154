"""The data of lines and conversations.

A *line* is one growing prompt, with the part of it that is warm at each deployment. A
*conversation* is what one label settles: the line that began it, and all lines that branched from
it, repeated or compacted it, or share its session. Both are named by the request that began them.

`Lines` of `lines.py` finds the place of a request before the decision (`find`), and is notified of
the deployment that answers (`called`) and of the outcome (`ended`). The log records a place by the
names of its conversation and line, the prefix, and the turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from litellm_messplus.core.digests import Digest
from litellm_messplus.core.encoder import Conversation
from litellm_messplus.costs.price import Price, Usage

# The part of a line that is in a deployment's prompt cache, and so is read at a discount.

CACHE_SECONDS = 300.0
"""Time for which a provider keeps a prompt that is not read again, unless it states another."""
HOUR_SECONDS = 3_600.0
"""The same, if the request paid for an hour."""
VLLM_SECONDS = 600.0
"""The same at a vLLM server, whose cache evicts by use and not by time: a guess."""


@dataclass(frozen=True, slots=True)
class Warm:
    """The cache of one line at one deployment: the ``tokens`` of a prompt of ``characters`` that
    its last call left there at time ``at``, for ``seconds``. ``read`` is the number of tokens that
    call read, None if ``tokens`` were reported and not estimated from it."""

    tokens: float
    characters: int
    at: float
    seconds: float = CACHE_SECONDS
    read: float | None = None

    def tokens_at(self, now: float, price: Price) -> float:
        """Estimate the tokens that a call now would find: 0 after the time, and 0 if the prompt is
        too short to be cached."""
        is_there = now - self.at <= self.seconds and self.tokens >= price.cached_from
        return self.tokens if is_there else 0.0


def warm_after(
    usage: Usage,
    price: Price,
    characters: int,
    at: float,
    *,
    share: float = 1.0,
    seconds: float = CACHE_SECONDS,
) -> Warm:
    """Estimate what a call leaves at its deployment: the tokens that it read from and wrote to the
    cache, if writes are reported, which they are if charged; else a ``share`` of its prompt."""
    if usage.written_tokens > 0 or price.written_surcharge > 0.0:
        kept = HOUR_SECONDS if usage.hour_tokens > 0 else seconds
        return Warm(float(usage.cached_tokens + usage.written_tokens), characters, at, kept)
    read = float(usage.prompt_tokens)
    return Warm(share * read, characters, at, seconds, read=read)


def shared(warm: Warm, characters: int) -> Warm:
    """Estimate the part of it that a prompt finds which shares only its first ``characters``."""
    if characters >= warm.characters:
        return warm
    part = characters / warm.characters
    read = None if warm.read is None else warm.read * part
    return replace(warm, tokens=warm.tokens * part, characters=characters, read=read)


# Lines, and the data of a request to find its line.


@dataclass(slots=True, eq=False)
class Line:
    """One growing prompt. ``tip`` is the digest of its newest form, ``words`` that without the
    system prompt, and ``gave`` that of an id in the answer to it, None before it has ended.
    ``requests`` counts its forms.
    ``candidate`` and ``deployment`` answered last, None before the first answer; ``warm`` holds the
    state of the caches, by deployment. The candidate has served since the request of number
    ``held_from``; ``is_answered`` if the last request was. ``prompt_tokens`` and ``characters`` are
    those of the newest answered prompt, ``attached`` its number of images and other attachments,
    ``stored`` the share of its uncached tokens that was written; None if unknown. ``went_up`` if
    trouble has broken its hold."""

    name: str
    conversation: str
    tip: Digest
    used_at: float
    words: Digest | None = None
    gave: Digest | None = None
    requests: int = 0
    candidate: str | None = None
    deployment: str | None = None
    warm: dict[str, Warm] = field(default_factory=dict)
    held_from: int = 1
    is_answered: bool = False
    prompt_tokens: float = 0.0
    characters: int = 0
    attached: int | None = None
    stored: float | None = None
    went_up: bool = False

    def changed(self, characters: int) -> None:
        """Note that the next prompt shares the first characters alone."""
        self.warm = {name: shared(warm, characters) for name, warm in self.warm.items()}

    def branched(self, own: "Line", characters: int) -> None:
        """Copy to a line that shares the first characters what holds for both."""
        own.candidate, own.deployment, own.warm = self.candidate, self.deployment, self.warm
        own.changed(characters)
        own.prompt_tokens, own.characters = self.prompt_tokens, self.characters
        own.attached, own.stored, own.went_up = self.attached, self.stored, self.went_up


@dataclass(frozen=True, slots=True)
class LineRequest:
    """One request. ``ids`` are the ids (of tool calls) in its prompt that earlier answers gave,
    in order. ``session`` is None if the client named none. ``continues`` is the id of the answer
    that it continues without repeating the conversation; None for a whole prompt."""

    request_id: str
    zoo: str
    key: str
    conversation: Conversation
    ids: Sequence[str] = ()
    session: str | None = None
    continues: str | None = None

    @property
    def scope(self) -> tuple[str, str]:
        """The scope, a zoo and a key, within which prompts, ids and sessions are matched."""
        return self.zoo, self.key


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a request. ``line`` is its own from now on; ``parent`` is the line it branched
    from, None if it extends the line or is the first. ``is_again`` if the whole prompt was sent
    before. ``turn`` is its number in the line, from 1. ``has_answers`` if the prompt has turns of
    the assistant. ``attached`` is the number of its images and other attachments."""

    line: Line
    turn: int
    characters: int
    prompt: Digest
    scope: tuple[str, str]
    parent: Line | None = None
    is_again: bool = False
    has_answers: bool = False
    attached: int = 0


@dataclass(frozen=True, slots=True)
class LoggedTurn:
    """A request that another worker served, as the log records it: its line, its ``prompt``, its
    number there, the deployment that answered, and what that one has in its cache since."""

    line: str
    conversation: str
    prompt: Digest
    turn: int
    candidate: str
    deployment: str
    characters: int
    prompt_tokens: float = 0.0
    warm: Warm | None = None
