"""How late an event loop is, found by whoever is about to wait in it."""

import asyncio
import time
from collections.abc import Callable

import pytest

from litellm_messplus.encoders import batcher
from litellm_messplus.encoders.batcher import LOOK_SECONDS, Lateness


async def look(late: Lateness, seconds: float = 0.0) -> float:
    """What was known before a look, into which other work of so many seconds falls."""
    known = late.seconds()
    await asyncio.sleep(0)
    work(seconds)
    await asyncio.sleep(4 * LOOK_SECONDS)
    return known


def work(seconds: float) -> None:
    time.sleep(seconds)


async def test_nothing_is_known_at_first_and_an_idle_loop_is_not_late() -> None:
    late = Lateness()
    assert await look(late) == 0.0
    assert 0.0 < await look(late) < 0.03


async def test_of_a_few_looks_the_worst_counts_and_of_many_not_the_rarest() -> None:
    late = Lateness()
    for seconds in (0.0, 0.1, 0.02, 0.0):
        await look(late, seconds)
    assert 0.08 <= await look(late) < 0.2
    for _ in range(20):
        await look(late)
    assert await look(late) < 0.08


@pytest.mark.parametrize(
    ("name", "value", "forget"),
    [("SECONDS", 0.1, lambda: work(0.15)), ("LOOKS", 2, lambda: None)],
)
async def test_what_was_long_ago_is_forgotten(
    name: str, value: float, forget: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batcher, name, value)
    late = Lateness()
    await look(late, 0.1)
    forget()
    for _ in range(3):
        await look(late)
    assert await look(late) < 0.08


async def test_a_look_is_as_late_as_a_timeout_is() -> None:
    """In a loop that is busy for 30 ms in every turn."""
    late, timeouts = Lateness(), []

    async def other_work() -> None:
        while True:
            work(0.03)
            await asyncio.sleep(0)

    busy = asyncio.create_task(other_work())
    for _ in range(10):
        late.seconds()
        started = time.perf_counter()
        await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=0.01)
        timeouts.append(time.perf_counter() - started - 0.01)
    busy.cancel()

    assert max(timeouts) > 0.05
    assert late.seconds() == pytest.approx(max(timeouts), abs=0.03)
