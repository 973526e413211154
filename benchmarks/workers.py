"""What one database carries for 1, 2 and 4 workers: commits, waits for its log, and staleness.

    python -m benchmarks.workers [--json] [--seconds 5] [--rate 40] [--database sqlite]

A worker here is the journal and the engine in a process of their own, without LiteLLM, which would
take 15 ms of CPU per request: on two cores, four proxies would measure the machine. Every request
is decided, logged with its call, and judged; each verdict waits for the disk. First each worker
takes `--rate` requests a second, then as many as its eight clients can send. Postgres is started by
the benchmark, as it is installed, with its data on this machine's disk.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path

from litellm_messplus.deciding.decider import Engine
from litellm_messplus.journal import Journal
from litellm_messplus.learning.learner import Learner
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.state.entries import Entry, Labelled
from litellm_messplus.store import log
from litellm_messplus.store.database import create_engine, migrate
from tests.support import packages
from tests.support.builders import build_engine, build_zoo, label, request, served_call
from tests.support.postgres import postgres_server

WORKERS = (1, 2, 4)
SECONDS = 5.0
RATE = 40.0
"""Requests per second and worker: a proxy on a core of its own handles about 60."""
CLIENTS = 8
START_SECONDS = 12.0
"""Seconds until every process has imported what it needs."""
SETTLE_SECONDS = 3.0
DATABASES = ("sqlite", "postgres")


@dataclass(frozen=True)
class Load:
    """The work of one worker, and the common start time; ``rate`` None is as fast as possible."""

    database: str
    worker: int
    begins: float
    seconds: float
    rate: float | None


@dataclass
class Told:
    """The times of one worker: moments by request, in seconds since 1970, and durations in
    seconds."""

    acknowledged: dict[str, float] = field(default_factory=dict)
    folded: dict[str, float] = field(default_factory=dict)
    acknowledging: list[float] = field(default_factory=list)
    locking: list[float] = field(default_factory=list)
    cpu: float = 0.0
    counters: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Figures:
    """The figures of all workers together; times in milliseconds."""

    database: str
    workers: int
    paced: bool
    requests_per_second: float
    commits_per_second: float
    acknowledged_median: float
    acknowledged_99: float
    lock_median: float
    lock_99: float
    stale_median: float | None
    stale_99: float | None
    cpu_per_request: float


class Worker:
    """A worker that drives a journal, and records the times."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._told = Told()
        self._engine = build_engine(build_zoo())
        self._journal: Journal | None = None

    async def run(self) -> Told:
        self._watch()
        database = create_engine(self._load.database)
        counters = Counters()
        learner = Learner(database, {self._engine.zoo.name: self._engine}, counters)
        self._journal = Journal(learner, counters, store_text=False, flush_seconds=0.5)
        self._journal.start()
        if time.time() > self._load.begins:
            raise RuntimeError("the machine is too busy: a worker was not ready in time")
        await asyncio.sleep(self._load.begins - time.time())
        cpu, ends = time.process_time(), self._load.begins + self._load.seconds
        if self._load.rate is None:
            await asyncio.gather(*(self._client(n, ends) for n in range(CLIENTS)))
        else:
            await self._paced(self._load.rate, ends)
        self._told.cpu = time.process_time() - cpu
        await asyncio.sleep(SETTLE_SECONDS)  # until the others' last writes are folded in
        await self._journal.close()
        await database.dispose()
        self._told.counters = counters.as_dict()
        return self._told

    def _watch(self) -> None:
        """Record the times of folding in, and of waiting for the head of the log."""
        apply, advance = Engine.apply, log.advance
        told = self._told

        def timed_apply(engine: Engine, entry: Entry) -> None:
            apply(engine, entry)
            if isinstance(entry, Labelled):
                told.folded[entry.request_id] = time.time()

        async def timed_advance(*arguments: object) -> log.Ends:
            began = time.perf_counter()
            ends = await advance(*arguments)  # type: ignore[arg-type]
            told.locking.append(time.perf_counter() - began)
            return ends

        Engine.apply = timed_apply  # type: ignore[method-assign, assignment]
        log.advance = timed_advance  # type: ignore[assignment]

    async def _client(self, client: int, ends: float) -> None:
        number = 0
        while time.time() < ends:
            number += 1
            await self._request(f"{self._load.worker}-{client}-{number}-{self._load.begins:.0f}")

    async def _paced(self, rate: float, ends: float) -> None:
        number, tasks = 0, []
        while (due := self._load.begins + number / rate) < ends:
            await asyncio.sleep(max(0.0, due - time.time()))
            name = f"{self._load.worker}-{number}-{self._load.begins:.0f}"
            tasks.append(asyncio.create_task(self._request(name)))
            number += 1
        await asyncio.gather(*tasks)

    async def _request(self, name: str) -> None:
        assert self._journal is not None
        self._journal.write(request(name))
        self._journal.write(served_call(name))
        began = time.perf_counter()
        await self._journal.write_durably(label(name, 1.0))
        self._told.acknowledging.append(time.perf_counter() - began)
        self._told.acknowledged[name] = time.time()


def work(load: Load) -> Told:
    """Work as one worker, in a process of its own."""
    return asyncio.run(Worker(load).run())


def measure(database: str, url: str, workers: int, seconds: float, rate: float | None) -> Figures:
    """Measure so many workers at once, on an existing database."""
    begins = time.time() + START_SECONDS
    loads = [Load(url, worker, begins, seconds, rate) for worker in range(workers)]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        told = list(pool.map(work, loads))
    for each in told:
        if each.counters:
            raise SystemExit(f"a worker had failures: {each.counters}")
    return figures(database, told, seconds, is_paced=rate is not None)


def figures(database: str, told: Sequence[Told], seconds: float, *, is_paced: bool) -> Figures:
    """Compute the figures from the workers' times."""
    if any(here.acknowledged.keys() - each.folded.keys() for each in told for here in told):
        raise RuntimeError("the machine is too busy: a worker had not read the log at the end")
    requests = sum(len(each.acknowledged) for each in told)
    acknowledging = [seconds for each in told for seconds in each.acknowledging]
    locking = [seconds for each in told for seconds in each.locking]
    stale = [
        max(0.0, there.folded[name] - moment)
        for here in told
        for there in told
        if there is not here
        for name, moment in here.acknowledged.items()
    ]
    return Figures(
        database=database,
        workers=len(told),
        paced=is_paced,
        requests_per_second=requests / seconds,
        commits_per_second=len(locking) / seconds,
        acknowledged_median=_milliseconds(acknowledging, 0.5),
        acknowledged_99=_milliseconds(acknowledging, 0.99),
        lock_median=_milliseconds(locking, 0.5),
        lock_99=_milliseconds(locking, 0.99),
        stale_median=_milliseconds(stale, 0.5) if stale else None,
        stale_99=_milliseconds(stale, 0.99) if stale else None,
        cpu_per_request=1000.0 * sum(each.cpu for each in told) / requests,
    )


def _milliseconds(found: list[float], share: float) -> float:
    cuts = statistics.quantiles(found, n=100, method="inclusive")
    return 1000.0 * cuts[round(100 * share) - 1]


@contextmanager
def databases(kind: str) -> Iterator[Iterator[str]]:
    """Yield URLs of empty logs, one after another."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            yield (f"sqlite+aiosqlite:///{Path(folder)}/{n}.db" for n in range(100))
        return
    if packages.find("postgresql") is None:
        raise SystemExit(f"{packages.INSTALL} postgresql")
    with postgres_server() as server:
        yield (server.database() for _ in range(100))


async def prepare(url: str) -> None:
    database = create_engine(url)
    await migrate(database)
    await database.dispose()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--rate", type=float, default=RATE)
    parser.add_argument("--database", choices=DATABASES, action="append")
    asked = parser.parse_args()
    found = []
    for kind in asked.database or DATABASES:
        with databases(kind) as urls:
            for rate in (asked.rate, None):
                for workers in WORKERS:
                    asyncio.run(prepare(url := next(urls)))
                    found.append(measure(kind, url, workers, asked.seconds, rate))
                    if not asked.json:
                        print(line(found[-1]), flush=True)
    if asked.json:
        print(json.dumps([asdict(each) for each in found]))


def line(found: Figures) -> str:
    """Format the figures of one measurement, for people."""
    stale = (
        ""
        if found.stale_median is None
        else (f", stale {found.stale_median:.0f} ({found.stale_99:.0f})")
    )
    return (
        f"{found.database} {found.workers} workers {'paced' if found.paced else 'full'}: "
        f"{found.requests_per_second:.0f} requests/s, {found.commits_per_second:.0f} commits/s, "
        f"ms median (99 %): acknowledged {found.acknowledged_median:.1f} "
        f"({found.acknowledged_99:.1f}), lock {found.lock_median:.1f} ({found.lock_99:.1f}){stale};"
        f" CPU {found.cpu_per_request:.2f} ms a request"
    )


if __name__ == "__main__":
    main()
