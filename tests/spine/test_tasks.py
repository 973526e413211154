"""What runs in parallel to requests is bounded, repeated, and closed whatever else fails."""

import asyncio
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.tasks import Closings, Periodic, Tasks
from tests.support.virtual_time import run


async def forever() -> None:
    await asyncio.Event().wait()


async def test_no_more_tasks_run_than_may() -> None:
    tasks = Tasks(most=2)
    begun = [tasks.start(forever(), "test") for _ in range(3)]

    assert [each is None for each in begun] == [False, False, True]
    await tasks.close()
    assert len(tasks) == 0


def test_a_stop_waits_for_what_ends_in_time_and_cancels_the_rest() -> None:
    ended = []

    async def lasting(seconds: float) -> None:
        await asyncio.sleep(seconds)
        ended.append(seconds)

    async def stop() -> float:
        tasks, loop = Tasks(), asyncio.get_running_loop()
        for seconds in (1.0, 4.0, 60.0):
            tasks.start(lasting(seconds), "test")
        begun = loop.time()
        await tasks.close(5.0)
        return loop.time() - begun

    assert run(stop()) == pytest.approx(5.0)
    assert ended == [1.0, 4.0]


@pytest.mark.parametrize(
    ("first", "retry", "expected"),
    [
        (0.0, None, [0.0, 10.0, 20.0, 30.0]),
        (3.0, None, [3.0, 13.0, 23.0, 33.0]),
        (0.0, 2.0, [0.0, 10.0, 12.0, 14.0, 24.0, 34.0]),
    ],
)
def test_a_job_is_done_again_and_again_whatever_it_raises(
    first: float, retry: float | None, expected: list[float]
) -> None:
    counters, done = Counters(), []

    async def repeat() -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()

        async def job() -> None:
            done.append(loop.time() - begun)
            if 1 < len(done) < 4:  # the second and the third
                raise OSError("away")

        periodic = Periodic(counters)
        periodic.every(10.0, job, "jobs_failed", "no job", first=first, retry=retry)
        await asyncio.sleep(35.0)
        await periodic.close()
        await asyncio.sleep(100.0)

    run(repeat())
    assert done == pytest.approx(expected)
    assert counters.as_dict() == {"jobs_failed": 2}


def test_a_wait_is_counted_once_it_is_late_twice() -> None:
    ends = iter([TimeoutError, None, TimeoutError, TimeoutError, None, OSError, None])
    counters = Counters()

    async def job() -> None:
        if (error := next(ends, None)) is not None:
            raise error

    async def repeat() -> None:
        periodic = Periodic(counters)
        periodic.every(1.0, job, "jobs_failed", "no job")
        await asyncio.sleep(10.0)
        await periodic.close()

    run(repeat())
    assert counters.as_dict() == {"jobs_failed": 2}


@pytest.mark.parametrize("failing", ["first", "second", "third", None])
async def test_every_part_is_closed_in_reverse_whatever_another_raises(
    failing: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    closed: list[str] = []

    async def close(name: str) -> None:
        closed.append(name)
        if name == failing:
            raise OSError("it will not")

    counters = Counters()
    closings = Closings(counters)
    for name in ("first", "second", "third"):
        closings.then(partial(close, name), name)
    await closings.close()

    assert closed == ["third", "second", "first"]
    assert counters.as_dict() == ({} if failing is None else {"shutdown_failures": 1})
    assert [record.message.split(" was")[0] for record in caplog.records] == (
        [] if failing is None else [failing]
    )


@given(st.integers(1, 5), st.lists(st.tuples(st.booleans(), st.integers(0, 9))))
def test_a_bounded_map_holds_the_newest_keys(most: int, steps: list[tuple[bool, int]]) -> None:
    found: Bounded[int, list[int]] = Bounded(most)
    used: list[int] = []
    for is_set, key in steps:
        if is_set:
            found[key] = [key]
        else:
            assert found.newest(key, partial(list, [key])) is found[key]
        used = [each for each in used if each != key] + [key]

        assert list(found) == used[-most:]
        assert all(value == [each] for each, value in found.items())
