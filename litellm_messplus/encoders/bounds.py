"""Common parts of encoders from files: a name for their weights, and the text that they read."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from litellm_messplus.core.encoder import Conversation, middle_left_out, shortened

# Names for weights: they depend on the files, not on their location.

_BLOCK = 1 << 16
_BLOCKS = 64
_DIGEST_BYTES = 6


def fingerprint(folder: Path, patterns: Iterable[str]) -> str:
    """Return a hash, of 12 hexadecimal digits, of the files that match any of the patterns: of
    their place in the folder, size, and content.

    A file above 4 MiB is hashed by evenly spaced samples, so that gigabytes of weights take
    milliseconds: retrained weights differ nearly everywhere.
    """
    digest = blake2b(digest_size=_DIGEST_BYTES)
    for path in sorted({path for pattern in patterns for path in folder.glob(pattern)}):
        digest.update(f"{path.relative_to(folder).as_posix()}\0{path.stat().st_size}\0".encode())
        for block in _samples(path):
            digest.update(block)
    return digest.hexdigest()


def _samples(path: Path) -> Iterator[bytes]:
    """Yield all of a small file; of a large one, the first and last block and evenly spaced
    ones."""
    last = max(path.stat().st_size - _BLOCK, 0)
    step = max(last // (_BLOCKS - 1), _BLOCK)
    with path.open("rb") as file:
        for start in [*range(0, last, step), last]:
            file.seek(start)
            yield file.read(_BLOCK)


# The part of a prompt that a bounded encoder reads.


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a text that is read: at most ``characters``, of which at most ``head`` from its
    beginning."""

    characters: int
    head: int

    def read(self, conversation: Conversation) -> str:
        return shortened(conversation, self.characters, self.head)

    def of(self, text: str) -> str:
        """Cut a text for a tokenizer: bounded, and lone surrogates replaced by `?`."""
        bounded = middle_left_out(text, self.characters, self.head)
        return bounded.encode("utf-8", "replace").decode("utf-8")


MAX_TOKENS = 256
"""Largest length in the paper's appendix."""
OF_256_TOKENS = Window(characters=4 * MAX_TOKENS, head=MAX_TOKENS)
"""About 256 tokens of English, four characters each; of denser text the tokenizer keeps the end."""
