"""Codes open one session each, for a short time; both are kept as hashes, and not without end."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import event, select
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.page.sign_ins import LASTS, MOST, Kind, SignIns
from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.store.tables import page_sign_ins


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 2, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def empty(tmp_path: Path) -> AsyncIterator[AsyncEngine]:
    engine = create_engine(f"sqlite+aiosqlite:///{tmp_path / 'messplus.db'}")
    await migrate(engine)
    yield engine
    await engine.dispose()


@pytest.fixture
def sign_ins(empty: AsyncEngine, clock: Clock) -> SignIns:
    return SignIns(empty, clock)


async def kept(database: AsyncEngine) -> list[tuple[str, str]]:
    async with database.connect() as connection:
        found = await connection.execute(select(page_sign_ins.c.token_hash, page_sign_ins.c.kind))
        return [(row.token_hash, row.kind) for row in found]


async def test_a_code_opens_one_session(sign_ins: SignIns) -> None:
    code = await sign_ins.new(Kind.CODE)
    session = await sign_ins.redeem(code)

    assert session is not None
    assert await sign_ins.is_open(session)
    assert await sign_ins.redeem(code) is None


async def test_of_two_who_use_a_code_at_once_one_gets_in(sign_ins: SignIns) -> None:
    code = await sign_ins.new(Kind.CODE)
    sessions = await asyncio.gather(*(sign_ins.redeem(code) for _ in range(4)))

    assert len([session for session in sessions if session is not None]) == 1


@pytest.mark.parametrize("guess", ["", "guess", "x" * 100])
async def test_a_guess_opens_nothing(sign_ins: SignIns, empty: AsyncEngine, guess: str) -> None:
    statements: list[str] = []
    event.listen(
        empty.sync_engine, "before_cursor_execute", lambda *given: statements.append(given[2])
    )

    assert await sign_ins.redeem(guess) is None
    assert not await sign_ins.is_open(guess)
    assert {statement.partition(" ")[0] for statement in statements} == {"SELECT"}


async def test_a_code_is_no_session_and_a_session_no_code(sign_ins: SignIns) -> None:
    assert not await sign_ins.is_open(await sign_ins.new(Kind.CODE))
    assert await sign_ins.redeem(await sign_ins.new(Kind.SESSION)) is None


@pytest.mark.parametrize("kind", Kind)
async def test_both_expire(sign_ins: SignIns, clock: Clock, kind: Kind) -> None:
    code, session = await sign_ins.new(Kind.CODE), await sign_ins.new(Kind.SESSION)
    clock.now += LASTS[kind]

    if kind is Kind.CODE:
        assert await sign_ins.redeem(code) is None
    else:
        assert not await sign_ins.is_open(session)


async def test_signing_out_ends_the_session(sign_ins: SignIns) -> None:
    session, other = await sign_ins.new(Kind.SESSION), await sign_ins.new(Kind.SESSION)
    await sign_ins.end(session)
    await sign_ins.end("nobody's")

    assert not await sign_ins.is_open(session)
    assert await sign_ins.is_open(other)


async def test_neither_stands_in_the_database(sign_ins: SignIns, empty: AsyncEngine) -> None:
    code, session = await sign_ins.new(Kind.CODE), await sign_ins.new(Kind.SESSION)

    text = str(await kept(empty))
    assert code not in text
    assert session not in text


async def test_of_too_many_the_oldest_go(
    sign_ins: SignIns, empty: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MOST, Kind.SESSION, 3)
    sessions = [await sign_ins.new(Kind.SESSION) for _ in range(5)]

    assert [await sign_ins.is_open(session) for session in sessions] == [False, False, *[True] * 3]
    assert len(await kept(empty)) == 3


async def test_what_has_expired_is_forgotten(
    sign_ins: SignIns, empty: AsyncEngine, clock: Clock
) -> None:
    await sign_ins.new(Kind.CODE)
    clock.now += LASTS[Kind.CODE]
    await sign_ins.new(Kind.SESSION)

    assert [kind for _, kind in await kept(empty)] == ["session"]
