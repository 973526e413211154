"""A prompt as a chain of digests: of all of it, and of each beginning that was asked before."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import islice, takewhile

from litellm_messplus.prediction.encoder import Conversation, Turn

DIGEST = 16
"""Bytes: two of a trillion beginnings are the same with a probability of 1 in 10^15."""
LOOK_UPS = 64
"""Beginnings of a prompt that are looked up, the longest: an earlier one is not known again."""

Digest = bytes


@dataclass(frozen=True, slots=True)
class Beginning:
    """The part of a prompt that was there when an answer was asked for: so many ``turns`` and
    ``characters``, up to a turn of the assistant."""

    digest: Digest
    turns: int
    characters: int


@dataclass(frozen=True, slots=True)
class Chain:
    """A prompt, ``whole``, its ``longest`` beginning, None of a first question, and those that are
    ``shorter``, the longest first. Nearly always the longest is known: the others are worked out
    when they are asked for."""

    whole: Beginning
    longest: Beginning | None
    shorter: Callable[[], Sequence[Beginning]]

    def earlier(self) -> Iterator[Beginning]:
        """Yield the beginnings, the longest first."""
        if self.longest is not None:
            yield self.longest
            yield from self.shorter()


class Digests:
    """Keyed: without the key nobody can guess a short prompt from its digest."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def of_text(self, scope: Iterable[str], text: str) -> Digest:
        """Hash an id or an answer, which means something within its scope alone."""
        digest = blake2b(key=self._key, digest_size=DIGEST)
        for part in (*scope, text):
            digest.update(_framed(part))
        return digest.digest()

    def of_answer(self, text: str) -> Digest:
        """Hash the words of an answer, without the spaces around them, which clients strip."""
        return self.of_text((), text.strip())

    def of_answer_after(self, conversation: Conversation, beginning: Beginning) -> Digest:
        """Hash the answer that a prompt has there, which may be several turns of the assistant."""
        following = conversation.turns[beginning.turns :]
        own = takewhile(lambda turn: turn.role == "assistant", following)
        return self.of_answer("\n".join(turn.text for turn in own))

    def chain(self, scope: Iterable[str], conversation: Conversation) -> Chain:
        """Hash a prompt and its beginnings: the tools first, then the turns in order."""
        begun = blake2b(key=self._key, digest_size=DIGEST)
        for part in (*scope, *conversation.tools):
            begun.update(_framed(part))
        turns = conversation.turns
        newest = next(_answers(turns), None)
        places = [len(turns)] if newest is None else [newest, len(turns)]
        found = _beginnings(begun.copy(), conversation, places)
        longest = None if newest is None else found[0]
        return Chain(found[-1], longest, partial(_shorter, begun, conversation))


def _framed(text: str) -> bytes:
    """Put its length before a text, so that no two sequences of parts read alike."""
    return _encoded(f"{len(text)}:{text}")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")  # clients send halves of surrogates too


def _beginnings(
    digest: blake2b, conversation: Conversation, places: Iterable[int]
) -> list[Beginning]:
    """Hash the turns on from the tools, up to each of the places in turn."""
    turns, characters = conversation.turns, sum(map(len, conversation.tools))
    found: list[Beginning] = []
    done = 0
    for place in places:
        parts: list[str] = []
        for turn in turns[done:place]:
            text = turn.text
            parts += (f"{len(turn.role)}:{turn.role}{len(text)}:", text)
            characters += len(text)
        digest.update(_encoded("".join(parts)))
        found.append(Beginning(digest.digest(), place, characters))
        done = place
    return found


def _shorter(begun: blake2b, conversation: Conversation) -> list[Beginning]:
    """Hash the beginnings that are looked up after the longest, the longest of them first."""
    places = [*islice(_answers(conversation.turns), 1, LOOK_UPS)]
    return _beginnings(begun.copy(), conversation, places[::-1])[::-1]


def _answers(turns: Sequence[Turn]) -> Iterator[int]:
    """Yield where the assistant begins to speak, after somebody else, the last one first: an answer
    may be several turns."""
    for place in range(len(turns) - 1, 0, -1):
        if turns[place].role == "assistant" != turns[place - 1].role:
            yield place
