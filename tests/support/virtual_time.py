"""An event loop whose clock jumps to whatever comes next, so that hours pass in milliseconds."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from tests.support.patience import PATIENT

P = ParamSpec("P")
T = TypeVar("T")


class _JumpingSelector(selectors.DefaultSelector):
    now = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(PATIENT if timeout is None else 0)
        if not events and timeout is None:
            raise RuntimeError("everybody waits for something that never happens")
        if not events and timeout:
            self.now += timeout
        return events


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """For code that reads the loop's clock and no other. Time stands still for a thread only where
    nothing else is due."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now

    def spend(self, seconds: float) -> None:
        """Hold the loop up, as work that takes so long would."""
        self._jumping.now += seconds


def running_loop() -> VirtualTimeLoop:
    """The loop that this runs in, which is one of virtual time."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    return loop


def run(work: Coroutine[Any, Any, T]) -> T:
    """The result of the coroutine, in virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(work)


def in_virtual_time(test: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Run a test in virtual time."""

    @wraps(test)
    def timed(*given: P.args, **named: P.kwargs) -> T:
        return run(test(*given, **named))

    return timed
