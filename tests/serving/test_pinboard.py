"""What workers tell each other of conversations: at once, of bounded size, and nothing falsely."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import make_url

from litellm_messplus.brain.pinboard import (
    BUCKETS,
    LONGEST_ID,
    SIZE,
    SLOT,
    WAYS,
    Pinboard,
    Pinned,
    pinboard_path,
)
from litellm_messplus.core.lines import UNUSED_SECONDS
from tests.support.patience import PATIENT

KEY = b"a key of 32 bytes, for the tests"
PROMPT = bytes(range(16))
LAST = (BUCKETS - 1).to_bytes(4, "little")
"""How a prompt begins whose place is at the end of the file."""


def pinned(
    conversation: str = "c" * 32, *, deployment: str = "d" * 64, characters: int = 48_000
) -> Pinned:
    return Pinned(conversation, "l" * 32, deployment, 3, characters)


def test_a_worker_finds_what_another_pinned(tmp_path: Path) -> None:
    first, second = (Pinboard(tmp_path / "lines", KEY) for _ in range(2))
    assert second.find(PROMPT) is None
    first.pin(PROMPT, pinned())
    assert second.find(PROMPT) == pinned()
    second.pin(PROMPT, pinned(deployment="another"))
    assert first.find(PROMPT) == pinned(deployment="another")
    assert (tmp_path / "lines").stat().st_mode & 0o777 == 0o600


def test_what_several_conversations_asked_tells_nothing(tmp_path: Path) -> None:
    board = Pinboard(tmp_path / "lines", KEY)
    board.pin(PROMPT, pinned())
    board.pin(PROMPT, pinned("e" * 32))
    assert board.find(PROMPT) is None
    board.pin(PROMPT, pinned())
    assert board.find(PROMPT) is None


def test_it_is_forgotten_as_lines_are(tmp_path: Path) -> None:
    now = 1e9
    board = Pinboard(tmp_path / "lines", KEY, clock=lambda: now)
    board.pin(PROMPT, pinned())
    now += UNUSED_SECONDS + 1.0
    assert board.find(PROMPT) is None
    board.pin(PROMPT, pinned("e" * 32))
    assert board.find(PROMPT) == pinned("e" * 32)


def test_half_a_pin_is_none(tmp_path: Path) -> None:
    """As where two workers write to one place at once."""
    path = tmp_path / "lines"
    board = Pinboard(path, KEY)
    board.pin(PROMPT, pinned())
    whole = path.read_bytes()
    for byte in range(len(whole) - SLOT, len(whole)):
        path.write_bytes(whole[:byte] + bytes([whole[byte] ^ 1]) + whole[byte + 1 :])
        assert board.find(PROMPT) is None
    path.write_bytes(whole)
    assert board.find(PROMPT) == pinned()


def test_it_has_a_bound_and_the_oldest_gives_way(tmp_path: Path) -> None:
    now = 0.0
    board = Pinboard(path := tmp_path / "lines", KEY, clock=lambda: now)
    random = Random(0)
    prompts = [PROMPT[:4] + random.randbytes(12) for _ in range(WAYS + 1)]
    for prompt in prompts:
        now += 1.0
        board.pin(prompt, pinned())
    assert [board.find(prompt) is not None for prompt in prompts] == [False, *[True] * WAYS]
    for _ in range(WAYS):
        now += 1.0
        board.pin(LAST + random.randbytes(12), pinned())
    assert path.stat().st_size == SIZE == 2_752_512


def test_what_is_too_long_is_not_told(tmp_path: Path) -> None:
    board = Pinboard(tmp_path / "lines", KEY)
    board.pin(PROMPT, pinned(deployment="d" * (LONGEST_ID + 1)))
    board.pin(PROMPT, pinned("c" * 33))
    assert board.find(PROMPT) is None
    board.pin(PROMPT, pinned(characters=2**40))
    assert board.find(PROMPT) == pinned(characters=2**32 - 1)


def test_a_link_that_somebody_laid_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_bytes(b"words")
    (tmp_path / "lines").symlink_to(tmp_path / "theirs")
    with pytest.raises(OSError, match="symbolic"):
        Pinboard(tmp_path / "lines", KEY).find(PROMPT)
    assert (tmp_path / "theirs").read_bytes() == b"words"


def test_a_file_that_is_deleted_is_made_anew(tmp_path: Path) -> None:
    first, second = (Pinboard(tmp_path / "lines", KEY) for _ in range(2))
    first.pin(PROMPT, pinned())
    (tmp_path / "lines").unlink()
    assert second.find(PROMPT) is None
    first.pin(PROMPT, pinned())
    assert second.find(PROMPT) == pinned()


def test_a_file_that_is_truncated_tells_nothing_and_is_written_again(tmp_path: Path) -> None:
    board = Pinboard(tmp_path / "lines", KEY)
    board.pin(PROMPT, pinned())
    size = (tmp_path / "lines").stat().st_size
    for left in (size - 1, size - SLOT, 0):
        os.truncate(tmp_path / "lines", left)
        assert board.find(PROMPT) is None
        board.pin(PROMPT, pinned())
        assert board.find(PROMPT) == pinned()


WITHOUT_ROOM = f"""
import resource, sys
from pathlib import Path
from litellm_messplus.brain.pinboard import Pinboard, Pinned

board = Pinboard(Path(sys.argv[1]), {KEY!r})
prompt, pinned = {LAST!r} + bytes(12), Pinned("c", "l", "d", 3, 1)
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, most))
try:
    board.pin(prompt, pinned)
except OSError as error:
    print(error.errno, board.find(prompt))
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
board.pin(prompt, pinned)
print(board.find(prompt) == pinned)
"""
"""A process that may write 4 KiB of a file, and then as much as it likes."""


def test_a_process_that_may_not_write_that_far_gets_an_error_and_goes_on(tmp_path: Path) -> None:
    child = [sys.executable, "-c", WITHOUT_ROOM, str(tmp_path / "lines")]
    ended = subprocess.run(child, capture_output=True, text=True, check=False, timeout=PATIENT)

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == [f"{errno.EFBIG} None", "True"]


def test_it_lies_beside_a_file_of_sqlite_and_else_where_nobody_can_guess() -> None:
    sqlite = make_url("sqlite+aiosqlite:////srv/messplus.db")
    assert pinboard_path(sqlite, KEY) == Path("/srv/messplus.db-lines")
    postgres = make_url("postgresql+asyncpg://messplus@db/messplus")
    assert pinboard_path(postgres, KEY) == pinboard_path(postgres, KEY)
    assert pinboard_path(postgres, KEY) != pinboard_path(postgres, KEY[::-1])
