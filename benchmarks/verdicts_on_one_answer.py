"""Thousands of verdicts on one answer: the longest blocking of the event loop, and a full fold.

`python -m benchmarks.verdicts_on_one_answer` ends with status 1 if a step took more than 20 ms.
The proxy accepts 100 verdicts per call; older databases may hold any number.
"""

import asyncio
import gc
import sys
import tempfile
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.journal import Journal
from litellm_messplus.learning.learner import Learner
from litellm_messplus.restore import restore
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.serving import startup
from litellm_messplus.store import log
from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.store.history import history
from tests.support.builders import build_engine, label, request, served_call
from tests.support.folding import only_zoo

VERDICTS = 10_000
MORE = 24
FOLLOWED = 5_000
LONGEST_SECONDS = 0.020


class Steps:
    """The longest step of the event loop, each callback and each stretch of a task being one.
    In CPU time, so that other load does not matter; and without garbage collections, which come
    at any time."""

    longest = 0.0
    _collecting = 0.0
    _round_began = 0.0

    def _collected(self, phase: str, _info: dict[str, int]) -> None:
        if phase == "start":
            self._round_began = time.thread_time()
        else:
            self._collecting += time.thread_time() - self._round_began

    @contextmanager
    def watched(self) -> Iterator[None]:
        run = asyncio.Handle._run
        steps = self

        def timed(handle: asyncio.Handle) -> None:
            began, collecting = time.thread_time(), steps._collecting
            run(handle)
            took = time.thread_time() - began - (steps._collecting - collecting)
            steps.longest = max(steps.longest, took)

        asyncio.Handle._run = timed  # type: ignore[method-assign, assignment]
        gc.callbacks.append(self._collected)
        try:
            yield
        finally:
            gc.callbacks.remove(self._collected)
            asyncio.Handle._run = run  # type: ignore[method-assign]


async def measure(name: str, work: Coroutine[Any, Any, Any]) -> float:
    """Run the work, and print its time; returns its longest step."""
    steps, began = Steps(), time.perf_counter()
    with steps.watched():
        await asyncio.create_task(work)
    took = time.perf_counter() - began
    print(f"{name:45} {took:8.3f} s   longest step {steps.longest * 1000:7.1f} ms", flush=True)
    return steps.longest


async def judge(database: AsyncEngine, prefix: str, count: int) -> None:
    verdicts = [label(value=float(n % 2), label_id=f"{prefix}{n}") for n in range(count)]
    for start in range(0, count, 500):
        await log.append(database, verdicts[start : start + 500])


async def main(folder: str) -> int:
    database = create_engine(f"sqlite+aiosqlite:///{Path(folder) / 'messplus.db'}")
    await migrate(database)
    await log.append(database, [request(), served_call()])
    await judge(database, "first-", VERDICTS)
    engine = build_engine()
    began = time.perf_counter()
    position = await restore(database, only_zoo(engine))
    print(f"{'a fold of all, as a start does it':45} {time.perf_counter() - began:8.3f} s")
    counters = Counters()
    learner = Learner(database, only_zoo(engine), counters, snapshot_every=10**9, position=position)
    journal = Journal(learner, counters, store_text=False, flush_seconds=0.1)
    await judge(database, "another-worker-", FOLLOWED)
    startup.freeze_startup_objects()  # as the proxy does

    async def follow() -> None:
        journal.start()
        while journal.position < await log.head(database):  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    async def more() -> None:
        verdicts = (label(value=n % 2, label_id=f"more-{n}") for n in range(MORE))
        await asyncio.gather(*(journal.write_durably(each) for each in verdicts))

    longest = [
        await measure(f"{FOLLOWED} of another worker's are followed", follow()),
        await measure(f"{MORE} more verdicts", more()),
        await measure("the request is looked up", history(database, "r1")),
    ]
    await journal.close()
    await database.dispose()
    return int(max(longest) > LONGEST_SECONDS)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(asyncio.run(main(folder)))
