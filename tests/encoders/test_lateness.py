"""How late an event loop is, found by whoever is about to wait in it."""

import asyncio
from functools import partial

import pytest

from litellm_messplus.encoders import batcher
from litellm_messplus.encoders.batcher import LOOK_SECONDS, Lateness
from tests.support import virtual_time
from tests.support.virtual_time import running_loop

close_to = partial(pytest.approx, abs=1e-6)


def lateness() -> Lateness:
    return Lateness(running_loop().time)


async def look(late: Lateness, seconds: float = 0.0) -> float:
    """What was known before a look, into which other work of so many seconds falls."""
    known = late.seconds()
    await asyncio.sleep(0)
    running_loop().spend(seconds)
    await asyncio.sleep(4 * LOOK_SECONDS)
    return known


def test_nothing_is_known_at_first_and_an_idle_loop_is_not_late() -> None:
    async def story() -> list[float]:
        late = lateness()
        return [await look(late), await look(late)]

    assert virtual_time.run(story()) == close_to([0.0, 0.0])


def test_of_a_few_looks_the_worst_counts_and_of_many_not_the_rarest() -> None:
    async def story() -> tuple[float, float]:
        late = lateness()
        for seconds in (0.0, 0.1, 0.02, 0.0):
            await look(late, seconds)
        of_a_few = await look(late)
        for _ in range(20):
            await look(late)
        return of_a_few, await look(late)

    assert virtual_time.run(story()) == close_to((0.1 - LOOK_SECONDS, 0.0))


@pytest.mark.parametrize(("name", "value", "pause"), [("SECONDS", 0.1, 0.15), ("LOOKS", 2, 0.0)])
def test_what_was_long_ago_is_forgotten(
    name: str, value: float, pause: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batcher, name, value)

    async def story() -> tuple[float, float]:
        late = lateness()
        await look(late, 0.1)
        found = await look(late)
        running_loop().spend(pause)
        for _ in range(3):
            await look(late)
        return found, await look(late)

    assert virtual_time.run(story()) == close_to((0.1 - LOOK_SECONDS, 0.0))


def test_a_look_is_as_late_as_a_timeout_is() -> None:
    """In a loop that is busy for 30 ms in every turn."""

    async def story() -> tuple[float, float]:
        loop, late, timeouts = running_loop(), lateness(), []

        async def other_work() -> None:
            while True:
                loop.spend(0.03)
                await asyncio.sleep(0)

        busy = asyncio.create_task(other_work())
        for _ in range(10):
            late.seconds()
            started = loop.time()
            await asyncio.wait([loop.create_future()], timeout=LOOK_SECONDS)
            timeouts.append(loop.time() - started - LOOK_SECONDS)
        busy.cancel()
        return late.seconds(), max(timeouts)

    found, late = virtual_time.run(story())
    assert late > 0.05
    assert found == close_to(late)
