"""The place of the published state: whole, the newest, and with signs of life."""

import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.learning.outlet import FileOutlet, Outlet, RowOutlet, outlet_of
from litellm_messplus.store import inbox
from litellm_messplus.store.database import create_engine, migrate
from tests.support.learning import Clock
from tests.support.postgres import Postgres


def published(database: AsyncEngine) -> Path:
    return Path(f"{database.url.database}-state")


async def elect(database: AsyncEngine) -> int:
    return await inbox.elect(database, "a process", datetime.now(UTC))


async def test_a_state_is_read_once_until_there_is_a_sign_of_life(either: AsyncEngine) -> None:
    here, there, epoch = outlet_of(either), outlet_of(either), await elect(either)
    await there.newer()  # the election is a sign of life on Postgres
    assert await there.newer() is None
    await here.publish(b"one", epoch)
    assert (await there.newer(), await there.newer()) == (b"one", None)
    assert await here.sign(epoch)
    assert (await there.newer(), await there.newer()) == (b"one", None)
    for data in (b"two", b"three"):
        await here.publish(data, epoch)
    assert await there.newer() == b"three"


def timed(database: AsyncEngine, clock: Clock) -> Outlet:
    if database.dialect.name == "postgresql":
        return RowOutlet(database, clock)
    return FileOutlet(published(database), clock)


async def test_the_silence_is_measured_on_the_readers_clock(either: AsyncEngine) -> None:
    clock = Clock()
    here, there, epoch = outlet_of(either), timed(either, clock), await elect(either)
    await here.publish(b"one", epoch)
    clock.now += 3.0
    assert there.silent_seconds == 3.0
    await there.newer()
    assert there.silent_seconds == 0.0
    clock.now += 7.0
    await there.newer()
    assert there.silent_seconds == 7.0
    await here.sign(epoch)
    await there.newer()
    assert there.silent_seconds == 0.0


async def test_a_deleted_file_is_noticed_and_read_again(database: AsyncEngine) -> None:
    here, there = outlet_of(database), outlet_of(database)
    await here.publish(b"one", 1)
    assert await there.newer() == b"one"
    published(database).unlink()
    assert await there.newer() is None
    assert not await here.sign(1)
    await here.publish(b"one", 1)
    assert await there.newer() == b"one"
    assert await here.sign(1)


async def test_a_file_that_is_half_written_is_never_read(tmp_path: Path) -> None:
    """While another thread writes as fast as it can, and with a part that a full disk left."""
    (tmp_path / "state.part").write_bytes(b"half")
    path, ended = tmp_path / "state", threading.Event()
    here = FileOutlet(path)
    await here.publish(bytes([0]) * 100_000, 1)

    def write() -> None:
        number = 0
        while not ended.is_set():
            number += 1
            part = path.with_name(f"{path.name}.part")
            part.write_bytes(bytes([number % 256]) * (100_000 + number % 256 % 7))
            part.replace(path)

    writer = threading.Thread(target=write)
    writer.start()
    read, there = 0, FileOutlet(path)
    try:
        while read < 200:
            data = await there.newer()
            if data is not None:
                read += 1
                assert len(set(data)) == 1
                assert len(data) == 100_000 + data[0] % 7
    finally:
        ended.set()
        writer.join()


async def test_only_the_learner_in_office_changes_the_row(server: Postgres) -> None:
    database = create_engine(await server.new_database())
    await migrate(database)
    outlet = outlet_of(database)
    assert isinstance(outlet, RowOutlet)
    first, second = await elect(database), await elect(database)
    await outlet.publish(b"old", first)
    assert await outlet.newer() is None
    await outlet.publish(b"new", second)
    assert await outlet.newer() == b"new"
    await outlet.publish(b"old", first)
    await outlet.sign(first)
    assert await outlet.newer() is None
    await outlet.sign(second)
    assert await outlet.newer() == b"new"
    await database.dispose()


def gone(path: Path) -> bytes:
    raise FileNotFoundError(path)


async def test_a_state_that_cannot_be_read_does_not_end_the_reading(
    database: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file goes away between the look and the reading."""
    here, there = outlet_of(database), outlet_of(database)
    await here.publish(b"one", 1)
    with monkeypatch.context() as away:
        away.setattr(Path, "read_bytes", gone)
        assert await there.newer() is None
    await here.publish(b"two", 1)
    assert await there.newer() == b"two"
