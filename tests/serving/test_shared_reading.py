"""Long readings of the log: one at a time, shared by all who ask, bounded in time and number."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from litellm_messplus.brain.monitoring import KEPT, SharedReadings
from litellm_messplus.store.reading import ReadingTakesTooLongError


class Log:
    """A log whose reading takes ``seconds`` of the clock, and ends when it is allowed to."""

    def __init__(self, seconds: float = 1.0) -> None:
        self.now = 0.0
        self.seconds = seconds
        self.readings = self.at_once = self.most_at_once = 0
        self.allowed = asyncio.Event()
        self.allowed.set()

    async def read(self) -> int:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self.allowed.wait()
            self.readings += 1
            self.now += self.seconds
            return self.readings
        finally:
            self.at_once -= 1

    def clock(self) -> float:
        return self.now


@pytest.fixture
async def log() -> Log:
    return Log()


@pytest.fixture
async def shared(log: Log) -> SharedReadings:
    return SharedReadings(clock=log.clock)


async def test_all_who_ask_at_once_share_one_reading(log: Log, shared: SharedReadings) -> None:
    found = await asyncio.gather(*(shared.get("status", log.read) for _ in range(50)))

    assert found == [1] * 50
    assert log.readings == 1


async def test_who_gives_up_ends_it_for_nobody_else(log: Log, shared: SharedReadings) -> None:
    log.allowed.clear()
    first = asyncio.create_task(shared.get("status", log.read))
    await asyncio.sleep(0)
    first.cancel()
    second = asyncio.create_task(shared.get("status", log.read))
    await asyncio.sleep(0)
    log.allowed.set()

    assert await second == 1
    assert log.readings == 1


async def test_abandoned_readings_do_not_add_up(log: Log, shared: SharedReadings) -> None:
    """Prometheus gives up, and asks again: 16 such scrapes took every connection."""
    log.allowed.clear()
    for _ in range(16):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(shared.get("metrics", log.read), 0.001)

    assert log.most_at_once == 1
    log.allowed.set()
    assert await shared.get("metrics", log.read) == 1


async def test_different_readings_take_turns(log: Log, shared: SharedReadings) -> None:
    await asyncio.gather(*(shared.get(window, log.read) for window in range(20)))

    assert log.readings == 20
    assert log.most_at_once == 1


async def test_a_finding_serves_for_as_long_as_it_took(log: Log, shared: SharedReadings) -> None:
    assert await shared.get("status", log.read) == 1
    log.now += 0.9
    assert await shared.get("status", log.read) == 1
    log.now += 0.2
    assert await shared.get("status", log.read) == 2


async def test_a_quick_reading_is_made_for_everyone_anew(shared: SharedReadings) -> None:
    log = Log(seconds=0.0)

    assert [await shared.get("status", log.read) for _ in range(3)] == [1, 2, 3]


async def test_a_reading_that_takes_too_long_is_given_up(log: Log) -> None:
    shared = SharedReadings(longest_seconds=0.01)
    log.allowed.clear()

    with pytest.raises(ReadingTakesTooLongError):
        await shared.get("status", log.read)

    assert log.at_once == 0
    log.allowed.set()
    assert await shared.get("status", log.read) == 1


async def test_a_failure_is_everyones_and_kept_by_nobody(log: Log, shared: SharedReadings) -> None:
    def failing() -> Callable[[], Awaitable[int]]:
        async def read() -> int:
            raise OSError("no disk")

        return read

    for outcome in await asyncio.gather(
        *(shared.get("status", failing()) for _ in range(3)), return_exceptions=True
    ):
        assert isinstance(outcome, OSError)
    assert await shared.get("status", log.read) == 1


async def test_only_the_newest_findings_are_kept(log: Log, shared: SharedReadings) -> None:
    log.seconds = 1e6
    for window in range(KEPT + 1):
        await shared.get(window, log.read)

    assert await shared.get(KEPT, log.read) == KEPT + 1
    assert await shared.get(0, log.read) == KEPT + 2


async def test_closing_ends_what_is_under_way(log: Log, shared: SharedReadings) -> None:
    log.allowed.clear()
    waiting = asyncio.create_task(shared.get("status", log.read))
    await asyncio.sleep(0)

    await shared.close()

    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert log.at_once == 0
