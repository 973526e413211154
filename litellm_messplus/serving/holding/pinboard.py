"""Who serves a conversation, told among the workers of one machine in a file that they share.

The log tells it too, a second or so later; the next step of a tool loop comes sooner, and may reach
another worker. So a worker pins each prompt before its answer goes out, and looks here for what it
does not know. Nobody waits: no lock is taken, and a pin that two write at once fails its check and
is none. There are digests, ids and numbers on it, and no words.

The file is read and written, and not mapped into memory. Writing to a mapped page without room on
the disk ends the process, and allocating the file first would not be enough: it may be truncated,
or become immutable, later. A write gives an error instead. The file is opened for each use as well,
so one that was deleted is made anew, and sharing goes on by itself when there is room again. Both
together take 8 microseconds of a request; a map took 1.
"""

import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from sqlalchemy import URL

from litellm_messplus.conversations.digests import DIGEST
from litellm_messplus.conversations.lines import UNUSED_SECONDS

BUCKETS, WAYS = 4_096, 4
"""A prompt has its place in one bucket; there, the oldest of so many pins gives way."""
NAME, CHECK = 32, 8
"""Bytes of a request's name, and of the check."""
LONGEST_ID = 64
"""Of a deployment that is told of: as long as LiteLLM makes them."""
_PIN = Struct(f"<{DIGEST}s{NAME}s{NAME}s{LONGEST_ID}sIId")
SLOT = _PIN.size + CHECK
BUCKET = WAYS * SLOT
SIZE = BUCKETS * BUCKET
"""Bytes of the file at most."""


def pinboard_path(database: URL, key: bytes) -> Path:
    """Return where the workers of a database share it: beside a file of SQLite, else in the folder
    of temporary files, by a name that nobody can guess."""
    if database.get_backend_name() == "sqlite" and database.database:
        return Path(f"{database.database}-lines")
    name = blake2b(b"lines", key=key, digest_size=16).hexdigest()
    return Path(tempfile.gettempdir()) / f"messplus-{name}-lines"


@dataclass(frozen=True, slots=True)
class Pinned:
    """A request that a worker sent to a deployment: its conversation and line, its number there,
    and the length of its prompt."""

    conversation: str
    line: str
    deployment: str
    turn: int
    characters: int


class _Slot(NamedTuple):
    """A pin as it lies at a ``place`` in the file; of a conversation without a name where several
    asked the same."""

    place: int
    prompt: bytes
    pinned: Pinned
    at: float


class Pinboard:
    """The file of one database's workers, of bounded size. ``clock`` is the same for all, and so is
    the key.

    Each use raises OSError where the file cannot be read or written, or is somebody else's.
    """

    def __init__(self, path: Path, key: bytes, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._key = key
        self._clock = clock

    def pin(self, prompt: bytes, pinned: Pinned) -> None:
        """Tell who answers a prompt; nothing of what is too long to be told."""
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
        """Find who answers a prompt; None where nobody told, or where several conversations have
        it."""
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
        """Open the file of this user, and make it where there is none."""
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
        """Read the places that a prompt may have; what was never written is no pin."""
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
        """Write a pin as it lies in the file; half of one would fail its check."""
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
