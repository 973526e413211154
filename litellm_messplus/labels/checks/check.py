"""The protocol of a check, and checks by operators' functions."""

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
    """Satisfaction from 0 to 1, and the reason. The reason is logged, and the log must not hold
    users' words, so it quotes nothing."""

    value: float
    reason: str | None = None


class CheckTimeoutError(Exception):
    """Error of a check that exceeded its time limit."""


class Check(Protocol):
    """A check that judges one call at a time; ``name`` is what is logged."""

    name: str

    async def check(self, call: AnsweredCall) -> Score | None:
        """Score a call; None if the check cannot tell. An exception is counted, and gives no
        label."""


# Checks by the operator's functions that judge an answer.

CHECK_SECONDS = 5.0
"""How long such a function may take; after that, there is no label."""

THREADS = 8
"""Most threads per function. One that hangs keeps its thread: it cannot be ended from outside."""


class LimitedFunction:
    """A function of the operator, called within a time limit. Sync ones run in a thread."""

    def __init__(self, function: Callable[..., Any], timeout_seconds: float) -> None:
        self._function = function
        self._timeout_seconds = timeout_seconds
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004
        )
        self._threads = asyncio.Semaphore(THREADS)

    async def __call__(self, *given: Any) -> Any:
        """Call the function. Raises its exceptions, and CheckTimeoutError when its time is up."""
        try:
            async with asyncio.timeout(self._timeout_seconds) as limit:
                found = self._function(*given) if self._is_async else await self._in_thread(given)
                return await found if inspect.isawaitable(found) else found
        except TimeoutError:
            if not limit.expired():  # the function's own
                raise
            raise CheckTimeoutError(f"took over {self._timeout_seconds} s") from None
        except SystemExit as error:  # which would end the proxy
            raise RuntimeError("a check is not to end the process") from error

    async def _in_thread(self, given: tuple[Any, ...]) -> Any:
        """Call it in a thread of its own, for which the end of the process does not wait."""
        await self._threads.acquire()
        loop = asyncio.get_running_loop()
        ended: Future[Any] = Future()
        ended.set_running_or_notify_cancel()
        ended.add_done_callback(lambda _: _call_in(loop, self._threads.release))
        Thread(target=_run, args=(self._function, given, ended), daemon=True).start()
        return await asyncio.wrap_future(ended)


class CallableCheck:
    """A check by a function of an `AnsweredCall` with an answer."""

    def __init__(
        self, name: str, function: Callable[[AnsweredCall], Any], seconds: float = CHECK_SECONDS
    ) -> None:
        self.name = name
        self._function = LimitedFunction(function, seconds)

    async def check(self, call: AnsweredCall) -> Score | None:
        """Call the function. Raises its exceptions, CheckTimeoutError when its time is up, and
        TypeError or ValueError for an invalid score."""
        found = None if call.answer is None else await self._function(call)
        return None if found is None else Score(_score(found))


def _run(function: Callable[..., Any], given: tuple[Any, ...], ended: Future[Any]) -> None:
    try:
        ended.set_result(function(*given))
    except BaseException as error:
        ended.set_exception(error)


def _call_in(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the loop is closed: no task waits for a thread
        loop.call_soon_threadsafe(function)


def _score(found: object) -> float:
    if not isinstance(found, Real):
        raise TypeError(f"returned a {type(found).__name__}, not a bool, a score or None")
    value = float(found)
    if math.isnan(value) or not 0.0 <= value <= 1.0:
        raise ValueError("returned a number that is not from 0 to 1")
    return value
