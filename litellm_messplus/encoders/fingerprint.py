"""Names for weights: other files, another name, wherever they lie."""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path

_BLOCK = 1 << 16
_BLOCKS = 64
_DIGEST_BYTES = 6


def fingerprint(folder: Path, patterns: Iterable[str]) -> str:
    """12 hexadecimal digits of the files that match any of the patterns, by their place in the
    folder, size, and content.

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
    """All of a small file; of a large one its first and last block and those evenly between."""
    last = max(path.stat().st_size - _BLOCK, 0)
    step = max(last // (_BLOCKS - 1), _BLOCK)
    with path.open("rb") as file:
        for start in [*range(0, last, step), last]:
            file.seek(start)
            yield file.read(_BLOCK)
