"""What all encoders from files share: a name for their weights, how much text they take in, and
how many cores they may use."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from litellm_messplus.prediction.encoder import Conversation, middle_left_out, shortened

# Names for weights: other files, another name, wherever they lie.

_BLOCK = 1 << 16
_BLOCKS = 64
_DIGEST_BYTES = 6


def fingerprint(folder: Path, patterns: Iterable[str]) -> str:
    """Return 12 hexadecimal digits of the files that match any of the patterns, by their place in
    the folder, size, and content.

    Of a file above 4 MiB evenly spaced samples stand for the whole, so that gigabytes of weights
    cost milliseconds: whatever was trained anew differs nearly everywhere.
    """
    digest = blake2b(digest_size=_DIGEST_BYTES)
    for path in sorted({path for pattern in patterns for path in folder.glob(pattern)}):
        digest.update(f"{path.relative_to(folder).as_posix()}\0{path.stat().st_size}\0".encode())
        for block in _samples(path):
            digest.update(block)
    return digest.hexdigest()


def _samples(path: Path) -> Iterator[bytes]:
    """Yield all of a small file; of a large one its first and last block and those evenly
    between."""
    last = max(path.stat().st_size - _BLOCK, 0)
    step = max(last // (_BLOCKS - 1), _BLOCK)
    with path.open("rb") as file:
        for start in [*range(0, last, step), last]:
            file.seek(start)
            yield file.read(_BLOCK)


# How much of a prompt a bounded encoder takes in.


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a text that is read: at most ``characters``, of which at most ``head`` are the
    beginning's."""

    characters: int
    head: int

    def read(self, conversation: Conversation) -> str:
        return shortened(conversation, self.characters, self.head)

    def of(self, text: str) -> str:
        """Cut any text as a tokenizer takes it: bounded, and lone surrogates replaced by `?`."""
        bounded = middle_left_out(text, self.characters, self.head)
        return bounded.encode("utf-8", "replace").decode("utf-8")


OF_256_TOKENS = Window(characters=4 * 256, head=256)
"""About four characters make a token of English; of denser text the tokenizer keeps the end."""


# How many cores an encoder may use.


def cores_for_encoding() -> int:
    """Count the cores for encoding: all but one, which the event loop keeps.

    torch's threads wait for each other at every layer: with both of two cores theirs and other
    work beside them, a text took a tiny encoder 1,100 ms, and 2 to 15 ms on one core alone.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, (cores or 1) - 1)
