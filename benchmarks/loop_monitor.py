"""Inside a proxy under load: how long our code blocked the event loop, and how late the loop was.

A callback in place of the plugin's. When the proxy stops, `loop_monitor.json` in its start folder
holds the histograms and our longest steps, with the parts of each.
"""

import asyncio
import gc
import heapq
import json
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from functools import wraps
from itertools import count
from pathlib import Path
from resource import RUSAGE_THREAD, getrusage
from typing import Any, ParamSpec, TypeVar

from benchmarks.histogram import Histogram
from litellm_messplus.encoders.service import FeatureService
from litellm_messplus.journal import Journal
from litellm_messplus.serving.monitoring import StatusWatch
from litellm_messplus.serving.plugin import MessplusPlugin

LOOK_SECONDS = 0.002
REPORT = Path("loop_monitor.json")
P = ParamSpec("P")
T = TypeVar("T")


OURS, OURS_CPU, LATE, COLLECTIONS = Histogram(), Histogram(), Histogram(), Histogram()
LONGEST: list[tuple[float, int, dict[str, Any]]] = []
KEPT = 10
_numbers = count()


@contextmanager
def _timed(name: str) -> Iterator[None]:
    wall, cpu, collected = time.perf_counter(), time.thread_time(), COLLECTIONS.total
    switches = getrusage(RUSAGE_THREAD)
    try:
        yield
    finally:
        wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
        OURS.add(wall)
        OURS_CPU.add(cpu)
        after = getrusage(RUSAGE_THREAD)
        found = {
            "step": name,
            "wall": wall,
            "cpu": cpu,
            "collecting": COLLECTIONS.total - collected,
            "preempted": after.ru_nivcsw - switches.ru_nivcsw,
            "waited": after.ru_nvcsw - switches.ru_nvcsw,
        }
        heapq.heappush(LONGEST, (wall, next(_numbers), found))
        if len(LONGEST) > KEPT:
            heapq.heappop(LONGEST)


class _Timed(Awaitable[T]):
    """A coroutine with every step, from one wait to the next, timed."""

    def __init__(self, name: str, coroutine: Coroutine[Any, Any, T]) -> None:
        self._name = name
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, T]:
        steps = self._coroutine.__await__()
        while True:
            with _timed(self._name):
                try:
                    waited_for = next(steps)
                except StopIteration as ended:
                    return ended.value  # type: ignore[no-any-return]
            yield waited_for


def _steps(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    @wraps(function)
    async def timed(*arguments: P.args, **keywords: P.kwargs) -> T:
        return await _Timed(function.__qualname__, function(*arguments, **keywords))

    return timed


def _call(function: Callable[P, T]) -> Callable[P, T]:
    @wraps(function)
    def timed(*arguments: P.args, **keywords: P.kwargs) -> T:
        with _timed(function.__qualname__):
            return function(*arguments, **keywords)

    return timed


def _collecting(phase: str, _: dict[str, int]) -> None:
    global _collection_started
    if phase == "start":
        _collection_started = time.perf_counter()
    else:
        COLLECTIONS.add(time.perf_counter() - _collection_started)


async def _watch() -> None:
    while True:
        looked_at = time.perf_counter()
        await asyncio.sleep(LOOK_SECONDS)
        LATE.add(time.perf_counter() - looked_at - LOOK_SECONDS)


def _report() -> None:
    histograms = {"ours": OURS, "ours_cpu": OURS_CPU, "late": LATE, "collections": COLLECTIONS}
    found: dict[str, Any] = {name: vars(each) for name, each in histograms.items()}
    found["steps"] = [step for _, _, step in sorted(LONGEST, reverse=True)]
    REPORT.write_text(json.dumps(found))


# Before the plugin is created, because its parts bind these methods then.
for owner, method in (
    (MessplusPlugin, "async_filter_deployments"),
    (MessplusPlugin, "async_post_call_response_headers_hook"),
    (MessplusPlugin, "async_log_success_event"),
    (Journal, "_run"),
    (StatusWatch, "_run"),
):
    setattr(owner, method, _steps(getattr(owner, method)))
FeatureService._finish = _call(FeatureService._finish)  # type: ignore[method-assign]

from litellm_messplus.plugin import instance  # noqa: E402

_collection_started = 0.0
gc.callbacks.append(_collecting)
_task = asyncio.get_running_loop().create_task(_watch())
_close = instance.close


async def _close_and_report() -> None:
    _report()
    await _close()


instance.close = _close_and_report  # type: ignore[method-assign]

__all__ = ["instance"]
