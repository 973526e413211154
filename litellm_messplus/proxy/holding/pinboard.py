"""Who serves a conversation, told among the workers of one machine in the memory that they share.

The log tells it too, a second or so later; the next step of a tool loop comes sooner, and may reach
another worker. So a worker pins each prompt before it is called, and looks here for what it does
not know. Nobody waits: no lock is taken, and a pin that two write at once fails its check and is
none. There are digests, ids and numbers on it, and no words.
"""

import mmap
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
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
SIZE = BUCKETS * WAYS * SLOT


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
    """A pin as it lies at a ``place``; of a conversation without a name where several asked the
    same."""

    place: int
    prompt: bytes
    pinned: Pinned
    at: float


class Pinboard:
    """The memory of one database's workers, of bounded size. ``clock`` is the same for all."""

    def __init__(
        self, memory: mmap.mmap | bytearray, key: bytes, clock: Callable[[], float] = time.time
    ) -> None:
        self._memory = memory
        self._key = key
        self._clock = clock

    @classmethod
    def open(cls, path: Path, key: bytes) -> "Pinboard":
        """Open the one of the workers that have the same path and key.

        Raises OSError where there is no memory to share, or the file is somebody else's.
        """
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        file = os.open(path, flags, 0o600)
        try:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
                raise PermissionError(f"{path} is not a file of this user")
            if found.st_size != SIZE:
                os.ftruncate(file, SIZE)
            return cls(mmap.mmap(file, SIZE), key)
        finally:
            os.close(file)

    def pin(self, prompt: bytes, pinned: Pinned) -> None:
        """Tell who answers a prompt; nothing of what is too long to be told."""
        if max(len(pinned.conversation), len(pinned.line)) > NAME:
            return
        if len(pinned.deployment.encode()) > LONGEST_ID:
            return
        slots = list(self._slots(prompt))
        own = next((slot for slot in slots if slot.prompt == prompt), None)
        if own is not None and self._is_there(own) and self._is_another(own, pinned):
            pinned = replace(pinned, conversation="")
        target = own or min(slots, key=lambda slot: slot.at)
        self._write(target.place, prompt, pinned)

    def find(self, prompt: bytes) -> Pinned | None:
        """Find who answers a prompt; None where nobody told, or where several conversations have
        it."""
        for slot in self._slots(prompt):
            if slot.prompt == prompt and self._is_there(slot):
                return slot.pinned if slot.pinned.conversation else None
        return None

    def _is_there(self, slot: _Slot) -> bool:
        return self._clock() - slot.at <= UNUSED_SECONDS

    def _is_another(self, slot: _Slot, pinned: Pinned) -> bool:
        return slot.pinned.conversation != pinned.conversation

    def _slots(self, prompt: bytes) -> Iterator[_Slot]:
        """Read the places that a prompt may have."""
        first = int.from_bytes(prompt[:4], "little") % BUCKETS * WAYS
        for place in range(first, first + WAYS):
            whole = bytes(self._memory[place * SLOT : (place + 1) * SLOT])
            body, check = whole[:-CHECK], whole[-CHECK:]
            if check != self._check(body):
                yield _Slot(place, b"", Pinned("", "", "", 0, 0), -float("inf"))
                continue
            told, conversation, line, deployment, turn, characters, at = _PIN.unpack(body)
            names = (_text(conversation), _text(line), _text(deployment))
            yield _Slot(place, told, Pinned(*names, turn, characters), at)

    def _write(self, place: int, prompt: bytes, pinned: Pinned) -> None:
        body = _PIN.pack(
            prompt,
            pinned.conversation.encode(),
            pinned.line.encode(),
            pinned.deployment.encode(),
            pinned.turn,
            min(pinned.characters, 2**32 - 1),
            self._clock(),
        )
        self._memory[place * SLOT : (place + 1) * SLOT] = body + self._check(body)

    def _check(self, body: bytes) -> bytes:
        return blake2b(body, key=self._key, digest_size=CHECK).digest()


def _text(padded: bytes) -> str:
    return padded.rstrip(b"\0").decode()
