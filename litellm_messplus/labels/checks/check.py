"""The protocol of a check, and what it says."""

import asyncio
import inspect
import math
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from numbers import Real
from threading import Thread
from typing import Any, Protocol

from litellm_messplus.labels.source import AnsweredCall


@dataclass(frozen=True, slots=True)
class Score:
    """Satisfaction from 0 to 1, and why. The log keeps the reason and may not keep anybody's words,
    so it quotes nothing."""

    value: float
    reason: str | None = None


class CheckTimeoutError(Exception):
    """A check took longer than it may."""


class Check(Protocol):
    """A check that looks at one call at a time; ``name`` is what the log keeps."""

    name: str

    async def check(self, call: AnsweredCall) -> Score | None:
        """Score a call; None where the check cannot say. Whatever it raises is counted, and gives
        no label."""
        ...


# Checks of the operator's own: functions that judge an answer.

THREADS = 8
"""A function's own. One that hangs keeps its thread: it cannot be ended from outside."""

Judge = Callable[[AnsweredCall], Any]


class CallableCheck:
    """A function of one `AnsweredCall`, which has an answer. Sync ones run in a thread."""

    def __init__(self, name: str, function: Judge, timeout_seconds: float) -> None:
        self.name = name
        self._function = function
        self._timeout_seconds = timeout_seconds
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004
        )
        self._threads = asyncio.Semaphore(THREADS)

    async def check(self, call: AnsweredCall) -> Score | None:
        """Call the function. Raises what the function raises, CheckTimeoutError when its time is
        up, and TypeError or ValueError for what is no score."""
        if call.answer is None:
            return None
        try:
            async with asyncio.timeout(self._timeout_seconds) as limit:
                found = await self._called(call)
        except TimeoutError:
            if not limit.expired():  # the function's own
                raise
            raise CheckTimeoutError(f"took over {self._timeout_seconds} s") from None
        except SystemExit as error:  # which would end the proxy
            raise RuntimeError("a check is not to end the process") from error
        return None if found is None else Score(_score(found))

    async def _called(self, call: AnsweredCall) -> Any:
        found = self._function(call) if self._is_async else await self._in_thread(call)
        return await found if inspect.isawaitable(found) else found

    async def _in_thread(self, call: AnsweredCall) -> Any:
        """Call it in a thread of its own, which the end of the process does not wait for."""
        await self._threads.acquire()
        loop = asyncio.get_running_loop()
        ended: Future[Any] = Future()
        ended.set_running_or_notify_cancel()
        ended.add_done_callback(lambda _: _call_in(loop, self._threads.release))
        Thread(target=_run, args=(self._function, call, ended), daemon=True).start()
        return await asyncio.wrap_future(ended)


def _run(function: Judge, call: AnsweredCall, ended: Future[Any]) -> None:
    try:
        ended.set_result(function(call))
    except BaseException as error:
        ended.set_exception(error)


def _call_in(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the loop is closed: nobody waits for a thread
        loop.call_soon_threadsafe(function)


def _score(found: object) -> float:
    if not isinstance(found, Real):
        raise TypeError(f"returned a {type(found).__name__}, not a bool, a score or None")
    value = float(found)
    if math.isnan(value) or not 0.0 <= value <= 1.0:
        raise ValueError("returned a number that is not from 0 to 1")
    return value
