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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from sqlalchemy import URL

from litellm_messplus.conversations.digests import DIGEST
from litellm_messplus.conversations.lines import UNUSED_SECONDS
from litellm_messplus.runtime.replacing import replace

BUCKETS, WAYS = 4_096, 4
"""Number of buckets, and of pins in each. A prompt has one bucket, whose oldest pin is replaced."""
NAME, CHECK = 32, 8
"""Bytes of a request's name, and of the checksum."""
LONGEST_ID = 64
"""Most bytes of a deployment's id: as long as LiteLLM makes them."""
_PIN = Struct(f"<{DIGEST}s{NAME}s{NAME}s{LONGEST_ID}sIId")
SLOT = _PIN.size + CHECK
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


class _Slot(NamedTuple):
    """A pin at ``place``, its offset in the file; its conversation is empty if several had the same
    prompt."""

    place: int
    prompt: bytes
    pinned: Pinned
    at: float


class Pinboard:
    """The file of one database's workers, of bounded size. All share the same ``clock`` and key.

    Each use raises OSError if the file cannot be read or written, or is another user's.
    """

    def __init__(self, path: Path, key: bytes, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._key = key
        self._clock = clock

    def pin(self, prompt: bytes, pinned: Pinned) -> None:
        """Write which deployment answers a prompt; does nothing if a name or id is too long."""
        if max(len(pinned.conversation), len(pinned.line)) > NAME:
            return
        if len(pinned.deployment.encode()) > LONGEST_ID:
            return
        with self._file() as file:
            slots = list(self._slots(file, prompt))
            own = next((slot for slot in slots if slot.prompt == prompt), None)
            if own is not None and self._is_there(own) and self._is_another(own, pinned):
                pinned = replace(pinned, conversation="")
            target = own or min(slots, key=lambda slot: slot.at)
            os.pwrite(file, self._written(prompt, pinned), target.place)

    def find(self, prompt: bytes) -> Pinned | None:
        """Find which deployment answers a prompt; None without a pin, or if several conversations
        have it."""
        with self._file() as file:
            slots = list(self._slots(file, prompt))
        for slot in slots:
            if slot.prompt == prompt and self._is_there(slot):
                return slot.pinned if slot.pinned.conversation else None
        return None

    def _is_there(self, slot: _Slot) -> bool:
        return self._clock() - slot.at <= UNUSED_SECONDS

    def _is_another(self, slot: _Slot, pinned: Pinned) -> bool:
        return slot.pinned.conversation != pinned.conversation

    @contextmanager
    def _file(self) -> Iterator[int]:
        """Open the file of this user, and create it if there is none."""
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        file = os.open(self._path, flags, 0o600)
        try:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
                raise PermissionError(f"{self._path} is not a file of this user")
            yield file
        finally:
            os.close(file)

    def _slots(self, file: int, prompt: bytes) -> Iterator[_Slot]:
        """Read the slots that a prompt may have; one never written is empty."""
        first = int.from_bytes(prompt[:4], "little") % BUCKETS * BUCKET
        bucket = os.pread(file, BUCKET, first)
        for start in range(0, BUCKET, SLOT):
            whole = bucket[start : start + SLOT]
            body, check = whole[:-CHECK], whole[-CHECK:]
            if check != self._check(body):
                yield _Slot(first + start, b"", Pinned("", "", "", 0, 0), -float("inf"))
                continue
            told, conversation, line, deployment, turn, characters, at = _PIN.unpack(body)
            names = (_text(conversation), _text(line), _text(deployment))
            yield _Slot(first + start, told, Pinned(*names, turn, characters), at)

    def _written(self, prompt: bytes, pinned: Pinned) -> bytes:
        """Format a pin as the bytes of its slot; a partial one fails its checksum."""
        body = _PIN.pack(
            prompt,
            pinned.conversation.encode(),
            pinned.line.encode(),
            pinned.deployment.encode(),
            pinned.turn,
            min(pinned.characters, 2**32 - 1),
            self._clock(),
        )
        return body + self._check(body)

    def _check(self, body: bytes) -> bytes:
        return blake2b(body, key=self._key, digest_size=CHECK).digest()


def _text(padded: bytes) -> str:
    return padded.rstrip(b"\0").decode()
