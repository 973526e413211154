"""What workers tell each other of conversations: at once, of bounded size, and nothing falsely."""

from pathlib import Path
from random import Random

import pytest
from sqlalchemy import make_url

from litellm_messplus.conversations.lines import UNUSED_SECONDS
from litellm_messplus.proxy.holding.pinboard import (
    LONGEST_ID,
    SIZE,
    SLOT,
    WAYS,
    Pinboard,
    Pinned,
    pinboard_path,
)

KEY = b"a key of 32 bytes, for the tests"
PROMPT = bytes(range(16))


def pinned(
    conversation: str = "c" * 32, *, deployment: str = "d" * 64, characters: int = 48_000
) -> Pinned:
    return Pinned(conversation, "l" * 32, deployment, 3, characters)


def test_a_worker_finds_what_another_pinned(tmp_path: Path) -> None:
    first, second = (Pinboard.open(tmp_path / "lines", KEY) for _ in range(2))
    assert second.find(PROMPT) is None
    first.pin(PROMPT, pinned())
    assert second.find(PROMPT) == pinned()
    second.pin(PROMPT, pinned(deployment="another"))
    assert first.find(PROMPT) == pinned(deployment="another")
    assert (tmp_path / "lines").stat().st_mode & 0o777 == 0o600


def test_what_several_conversations_asked_tells_nothing() -> None:
    board = Pinboard(bytearray(SIZE), KEY)
    board.pin(PROMPT, pinned())
    board.pin(PROMPT, pinned("e" * 32))
    assert board.find(PROMPT) is None
    board.pin(PROMPT, pinned())
    assert board.find(PROMPT) is None


def test_it_is_forgotten_as_lines_are() -> None:
    now = 1e9
    board = Pinboard(bytearray(SIZE), KEY, clock=lambda: now)
    board.pin(PROMPT, pinned())
    now += UNUSED_SECONDS + 1.0
    assert board.find(PROMPT) is None
    board.pin(PROMPT, pinned("e" * 32))
    assert board.find(PROMPT) == pinned("e" * 32)


def test_half_a_pin_is_none() -> None:
    """As where two workers write to one place at once."""
    memory = bytearray(SIZE)
    board = Pinboard(memory, KEY)
    board.pin(PROMPT, pinned())
    place = next(place for place in range(0, SIZE, SLOT) if memory[place] or memory[place + 1])
    for byte in range(place, place + SLOT):
        memory[byte] ^= 1
        assert board.find(PROMPT) is None
        memory[byte] ^= 1
    assert board.find(PROMPT) == pinned()


def test_it_has_a_bound_and_the_oldest_gives_way() -> None:
    now = 0.0
    board = Pinboard(memory := bytearray(SIZE), KEY, clock=lambda: now)
    random = Random(0)
    prompts = [PROMPT[:4] + random.randbytes(12) for _ in range(WAYS + 1)]
    for prompt in prompts:
        now += 1.0
        board.pin(prompt, pinned())
    assert [board.find(prompt) is not None for prompt in prompts] == [False, *[True] * WAYS]
    assert len(memory) == SIZE == 2_752_512


def test_what_is_too_long_is_not_told() -> None:
    board = Pinboard(bytearray(SIZE), KEY)
    board.pin(PROMPT, pinned(deployment="d" * (LONGEST_ID + 1)))
    board.pin(PROMPT, pinned("c" * 33))
    assert board.find(PROMPT) is None
    board.pin(PROMPT, pinned(characters=2**40))
    assert board.find(PROMPT) == pinned(characters=2**32 - 1)


def test_a_link_that_somebody_laid_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_bytes(b"words")
    (tmp_path / "lines").symlink_to(tmp_path / "theirs")
    with pytest.raises(OSError, match="symbolic"):
        Pinboard.open(tmp_path / "lines", KEY)
    assert (tmp_path / "theirs").read_bytes() == b"words"


def test_it_lies_beside_a_file_of_sqlite_and_else_where_nobody_can_guess() -> None:
    sqlite = make_url("sqlite+aiosqlite:////srv/messplus.db")
    assert pinboard_path(sqlite, KEY) == Path("/srv/messplus.db-lines")
    postgres = make_url("postgresql+asyncpg://messplus@db/messplus")
    assert pinboard_path(postgres, KEY) == pinboard_path(postgres, KEY)
    assert pinboard_path(postgres, KEY) != pinboard_path(postgres, KEY[::-1])
