"""A prompt as a chain of digests: of all of it, and of each beginning that was asked before."""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from itertools import takewhile

from litellm_messplus.prediction.encoder import Conversation

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
    """A prompt, ``whole``, and its beginnings, ``earlier``, the longest first."""

    whole: Beginning
    earlier: tuple[Beginning, ...]


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
        digest = blake2b(key=self._key, digest_size=DIGEST)
        for part in (*scope, *conversation.tools):
            digest.update(_framed(part))
        characters = sum(map(len, conversation.tools))
        turns = conversation.turns
        earlier: list[Beginning] = []
        first = _first_looked_up(conversation)
        for place, turn in enumerate(turns):
            if place >= first and _begins_an_answer(conversation, place):
                earlier.append(Beginning(digest.copy().digest(), place, characters))
            digest.update(_framed(turn.role))
            digest.update(_framed(turn.text))
            characters += len(turn.text)
        return Chain(Beginning(digest.digest(), len(turns), characters), tuple(earlier[::-1]))


def _framed(text: str) -> bytes:
    """Put its length before a text, so that no two sequences of parts read alike."""
    encoded = text.encode("utf-8", "surrogatepass")  # clients send halves of surrogates too
    return b"%d:" % len(encoded) + encoded


def _begins_an_answer(conversation: Conversation, place: int) -> bool:
    """Tell whether the assistant speaks there, after somebody else: an answer may be several
    turns."""
    turns = conversation.turns
    is_first = place == 0 or turns[place - 1].role != "assistant"
    return is_first and place > 0 and turns[place].role == "assistant"


def _first_looked_up(conversation: Conversation) -> int:
    """Find the turn from which on beginnings are looked up."""
    left = LOOK_UPS
    for place in range(len(conversation.turns) - 1, 0, -1):
        if _begins_an_answer(conversation, place):
            left -= 1
            if left == 0:
                return place
    return 1
