"""A function of the operator's judges answers, whatever it does."""

import asyncio
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from litellm_messplus.labels.checks.check import THREADS, CallableCheck, CheckTimeoutError, Score
from litellm_messplus.labels.source import AnsweredCall
from tests.support.checking import ended
from tests.support.patience import PATIENT, until, until_it_holds


def checking(function: Callable[[AnsweredCall], Any], seconds: float = PATIENT) -> CallableCheck:
    return CallableCheck("own", function, seconds)


def judge(call: AnsweredCall) -> bool:
    assert call.answer is not None
    return call.answer.text == "fine"


async def judge_later(call: AnsweredCall) -> bool:
    await asyncio.sleep(0)
    return judge(call)


class Judge:
    def __call__(self, call: AnsweredCall) -> bool:
        return judge(call)


class LateJudge:
    async def __call__(self, call: AnsweredCall) -> bool:
        return await judge_later(call)


@pytest.mark.parametrize(
    "function",
    [judge, judge_later, Judge(), LateJudge(), lambda call: judge_later(call)],
    ids=["sync", "async", "object", "async object", "sync that returns a coroutine"],
)
async def test_it_gets_the_call_and_its_verdict_counts(function: Any) -> None:
    assert await checking(function).check(ended("fine")) == Score(1.0)
    assert await checking(function).check(ended("poor")) == Score(0.0)


@pytest.mark.parametrize(
    ("returned", "score"),
    [
        (True, Score(1.0)),
        (False, Score(0.0)),
        (0.25, Score(0.25)),
        (1, Score(1.0)),
        (np.float32(0.5), Score(0.5)),
        (None, None),
    ],
)
async def test_what_it_may_return(returned: object, score: Score | None) -> None:
    assert await checking(lambda call: returned).check(ended()) == score


@pytest.mark.parametrize("returned", ["secret", 1.5, -0.1, float("nan"), float("inf"), [1], 1j])
async def test_what_is_no_verdict_is_refused_without_a_word_of_it(returned: object) -> None:
    with pytest.raises((TypeError, ValueError), match="returned a") as raised:
        await checking(lambda call: returned).check(ended())
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("error", [RuntimeError("broken"), TimeoutError("its own")], ids=repr)
async def test_what_it_raises_is_raised(error: Exception) -> None:
    def sync(call: AnsweredCall) -> bool:
        raise error

    async def later(call: AnsweredCall) -> bool:
        raise error

    for function in (sync, later):
        with pytest.raises(type(error), match=str(error)):
            await checking(function).check(ended())


async def test_it_cannot_end_the_process() -> None:
    async def later(call: AnsweredCall) -> bool:
        sys.exit("later")

    for function in (lambda call: sys.exit("now"), later):
        with pytest.raises(RuntimeError, match="not to end the process"):
            await checking(function).check(ended())


async def test_it_is_not_asked_about_a_call_that_failed() -> None:
    def never(call: AnsweredCall) -> bool:
        raise AssertionError

    assert await checking(never).check(ended(None)) is None


async def test_a_sync_one_does_not_hold_up_the_event_loop() -> None:
    gate = threading.Event()

    async def go_on() -> None:
        gate.set()

    checked, _ = await asyncio.gather(
        checking(lambda call: gate.wait(PATIENT)).check(ended()), go_on()
    )

    assert checked == Score(1.0)


async def test_one_that_hangs_takes_a_bounded_number_of_threads() -> None:
    gate = threading.Event()
    entered = []

    def hangs(call: AnsweredCall) -> bool:
        entered.append(call)
        return gate.wait(PATIENT)

    check = checking(hangs, seconds=0.05)
    found = await asyncio.gather(
        *(check.check(ended()) for _ in range(3 * THREADS)), return_exceptions=True
    )
    await until_it_holds(lambda: len(entered) >= THREADS)
    assert [type(error) for error in found] == [CheckTimeoutError] * 3 * THREADS
    assert len(entered) == THREADS

    gate.set()  # it hangs no more, and is asked again
    for _ in range(THREADS):
        await check._function._threads.acquire()


async def test_an_async_one_that_hangs_is_cancelled() -> None:
    cancelled = False

    async def hangs(call: AnsweredCall) -> bool:
        nonlocal cancelled
        try:
            await asyncio.sleep(PATIENT)
        except asyncio.CancelledError:
            cancelled = True
            raise
        return True

    with pytest.raises(CheckTimeoutError):
        await checking(hangs, seconds=0.01).check(ended())
    assert cancelled


def test_a_thread_that_ends_after_the_event_loop_harms_nobody() -> None:
    gate = threading.Event()
    threads = []

    def hangs(call: AnsweredCall) -> bool:
        threads.append(threading.current_thread())
        return gate.wait(PATIENT)

    async def main() -> None:
        with pytest.raises(CheckTimeoutError):
            await checking(hangs, seconds=0.01).check(ended())

    asyncio.run(main())
    until(lambda: bool(threads))
    gate.set()
    threads[0].join(PATIENT)  # an error of its end would be reported as one of this test
    assert not threads[0].is_alive()
