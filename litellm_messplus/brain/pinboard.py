"""The deployment of each conversation, in a file that the workers of one machine share.

The log has it too, about a second later; the next step of a tool loop comes sooner, and may reach
another worker. So a worker pins each prompt before its answer goes out, and looks here for unknown
ones. No lock is taken: a pin that two workers write at once fails its checksum and is ignored. The
file holds digests, ids and numbers, and no words.

The file is read and written, not mapped into memory. Writing to a mapped page without room on the
disk ends the process, and allocating the file first would not suffice: it may be truncated, or
become immutable, later. A write returns an error instead. The file is also opened for each use, so
a deleted one is created again, and sharing resumes by itself when there is room again. Both
together take 8 microseconds of a request; a map took 1.
"""

import os
import stat
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from struct import Struct

from sqlalchemy import URL

from litellm_messplus.core.digests import DIGEST
from litellm_messplus.core.lines import UNUSED_SECONDS
from litellm_messplus.runtime.stand_ins import replace

BUCKETS, WAYS = 4_096, 4
"""Number of buckets, and of pins in each. A prompt has one bucket, whose oldest pin is replaced."""
NAME, CHECK = 32, 8
"""Bytes of a request's name, and of the checksum."""
LONGEST_ID = 64
"""Most bytes of a deployment's id: as long as LiteLLM makes them."""
_PIN = Struct(f"<{DIGEST}s{NAME}s{NAME}s{LONGEST_ID}sIId")
SLOT = _PIN.size + CHECK
_BUCKET = Struct("<" + f"{DIGEST}s{_PIN.size - DIGEST - 8}xd{CHECK}x" * WAYS)
"""The prompt and the time of each pin of a bucket."""
OPENED = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
BUCKET = WAYS * SLOT
SIZE = BUCKETS * BUCKET
"""Most bytes of the file."""


def pinboard_path(database: URL, key: bytes) -> Path:
    """Return the path of the shared file: next to a file of SQLite, else in the folder of temporary
    files, under a name that cannot be guessed."""
    if database.get_backend_name() == "sqlite" and database.database:
        return Path(f"{database.database}-lines")
    name = blake2b(b"lines", key=key, digest_size=16).hexdigest()
    return Path(tempfile.gettempdir()) / f"messplus-{name}-lines"


@dataclass(frozen=True, slots=True)
class Pinned:
    """A request that a worker sent to a deployment: its conversation and line, its turn in it, and
    the characters of its prompt."""

    conversation: str
    line: str
    deployment: str
    turn: int
    characters: int


class Pinboard:
    """The file of one database's workers, of bounded size. All share the same ``clock`` and key.

    Each use raises OSError if the file cannot be read or written, or is another user's.
    """

    def __init__(self, path: Path, key: bytes, clock: Callable[[], float] = time.time) -> None:
        self._path = str(path)
        self._key = key
        self._clock = clock

    def pin(self, prompt: bytes, pinned: Pinned) -> None:
        """Write which deployment answers a prompt; does nothing if a name or id is too long."""
        if len(pinned.conversation) > NAME or len(pinned.line) > NAME:
            return
        if len(pinned.deployment.encode()) > LONGEST_ID:
            return
        file, now = self._open(), self._clock()
        try:
            place, known = self._find(file, prompt, now)
            if known is not None and known.conversation != pinned.conversation:
                pinned = replace(pinned, conversation="")
            os.pwrite(file, self._written(prompt, pinned, now), place)
        finally:
            os.close(file)

    def find(self, prompt: bytes) -> Pinned | None:
        """Find which deployment answers a prompt; None without a pin, or if several conversations
        have it."""
        file = self._open()
        try:
            _, known = self._find(file, prompt, self._clock())
        finally:
            os.close(file)
        return known if known is not None and known.conversation else None

    def _open(self) -> int:
        """Open the file of this user, and create it if there is none."""
        file = os.open(self._path, OPENED, 0o600)
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            os.close(file)
            raise PermissionError(f"{self._path} is not a file of this user")
        return file

    def _find(self, file: int, prompt: bytes, now: float) -> tuple[int, Pinned | None]:
        """Find the slot of a prompt, or the oldest of those that it may have: its offset in the
        file, and its pin, None if there is none, or if it is too old. Its conversation is empty if
        several had the same prompt."""
        first = int.from_bytes(prompt[:4], "little") % BUCKETS * BUCKET
        bucket = os.pread(file, BUCKET, first).ljust(BUCKET, b"\0")
        found = _BUCKET.unpack(bucket)
        prompts, times = found[::2], found[1::2]
        if prompt not in prompts:
            ages = [at if at <= now else 0.0 for at in times]
            return first + ages.index(min(ages)) * SLOT, None
        start = prompts.index(prompt) * SLOT
        body, check = bucket[start : start + _PIN.size], bucket[start + _PIN.size : start + SLOT]
        if check != self._check(body):
            return first + start, None
        _, conversation, line, deployment, turn, characters, at = _PIN.unpack(body)
        if now - at > UNUSED_SECONDS:
            return first + start, None
        names = (_text(conversation), _text(line), _text(deployment))
        return first + start, Pinned(*names, turn, characters)

    def _written(self, prompt: bytes, pinned: Pinned, now: float) -> bytes:
        """Format a pin as the bytes of its slot; a partial one fails its checksum."""
        body = _PIN.pack(
            prompt,
            pinned.conversation.encode(),
            pinned.line.encode(),
            pinned.deployment.encode(),
            pinned.turn,
            min(pinned.characters, 2**32 - 1),
            now,
        )
        return body + self._check(body)

    def _check(self, body: bytes) -> bytes:
        return blake2b(body, key=self._key, digest_size=CHECK).digest()


def _text(padded: bytes) -> str:
    return padded.rstrip(b"\0").decode()
