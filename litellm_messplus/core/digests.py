"""A prompt as a chain of digests: of the whole, and of each beginning that was a prompt before.

Each beginning has two. One is of all of it, the other leaves out the system prompt, in which
clients put what differs in every request: a date, a time, a number of their own."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice, takewhile

from litellm_messplus.core.encoder import Conversation, Turn

DIGEST = 16
"""Bytes: two of a trillion beginnings collide with a probability of 1 in 10^15."""
SYSTEM = ("system", "developer")
"""Roles of a system prompt."""
LOOK_UPS = 64
"""Number of beginnings of a prompt that are looked up, the longest: earlier ones are not found."""

Digest = bytes


@dataclass(frozen=True, slots=True)
class Beginning:
    """The part of a prompt that was the prompt of an earlier answer: its number of ``turns`` and
    ``characters``, up to a turn of the assistant. ``words`` is the digest without the system
    prompt."""

    digest: Digest
    words: Digest
    turns: int
    characters: int


@dataclass(frozen=True, slots=True)
class Chain:
    """A ``whole`` prompt, its ``longest`` beginning (None for a first question), and the
    ``shorter`` ones, the longest first. The longest is nearly always known, so the others are
    computed on demand."""

    whole: Beginning
    longest: Beginning | None
    shorter: Callable[[], Sequence[Beginning]]

    def earlier(self) -> Iterator[Beginning]:
        """Yield the beginnings, the longest first."""
        if self.longest is not None:
            yield self.longest
            yield from self.shorter()


class Digests:
    """Keyed digests: without the key, a short prompt cannot be guessed from its digest."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def of_text(self, scope: Iterable[str], text: str) -> Digest:
        """Hash an id or an answer, which is meaningful within its scope only."""
        return self._begun((*scope, text)).digest()

    def _begun(self, parts: Iterable[str]) -> blake2b:
        """Hash parts, each with its length before it, so that no two sequences of parts have the
        same bytes."""
        framed = ""
        for part in parts:
            framed += f"{len(part)}:{part}"
        encoded = framed.encode("utf-8", "surrogatepass")  # clients also send lone surrogates
        return blake2b(encoded, key=self._key, digest_size=DIGEST)

    def of_answer(self, text: str) -> Digest:
        """Hash the text of an answer, without the surrounding spaces, which clients strip."""
        return self.of_text((), text.strip())

    def of_answer_after(self, conversation: Conversation, beginning: Beginning) -> Digest:
        """Hash the answer in a prompt after a beginning; it may be several assistant turns."""
        following = conversation.turns[beginning.turns :]
        own = takewhile(lambda turn: turn.role == "assistant", following)
        return self.of_answer("\n".join(turn.text for turn in own))

    def chain(self, scope: Iterable[str], conversation: Conversation) -> Chain:
        """Hash a prompt and its beginnings: the tools first, then the turns in order.

        What is before the first turn of a user or the assistant is the system prompt. It is hashed
        by itself, so that the words alone have a digest, and the whole another one."""
        turns, tools = conversation.turns, conversation.tools
        lead = [turn.text for turn in takewhile(lambda turn: turn.role in SYSTEM, turns)]
        begun, system = self._begun((*scope, *tools)), self._begun(lead).digest()

        def beginnings(places: Sequence[int]) -> list[Beginning]:
            digest, done, characters = begun.copy(), len(lead), len("".join((*tools, *lead)))
            found = []
            for place in places:
                parts: list[str] = []
                for turn in turns[done:place]:
                    text = turn.text
                    length = len(text)
                    parts += (f"{len(turn.role)}:{turn.role}{length}:", text)
                    characters += length
                digest.update("".join(parts).encode("utf-8", "surrogatepass"))
                words = digest.digest()
                whole = blake2b(words + system, digest_size=DIGEST).digest()
                found.append(Beginning(whole, words, place, characters))
                done = place
            return found

        def shorter() -> list[Beginning]:
            return beginnings([*islice(_answers(turns), 1, LOOK_UPS)][::-1])[::-1]

        newest = [*islice(_answers(turns), 1)]
        *longest, whole = beginnings([*newest, len(turns)])
        return Chain(whole, longest[0] if longest else None, shorter)


def _answers(turns: Sequence[Turn]) -> Iterator[int]:
    """Yield the places where the assistant begins to speak after another role, the last one first:
    an answer may be several turns."""
    for place in range(len(turns) - 1, 0, -1):
        if turns[place].role == "assistant" != turns[place - 1].role:
            yield place
