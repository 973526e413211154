"""What many workers on one database cost: each other, themselves, and the learner that they share.

    python -m benchmarks.workers [--json] [--database sqlite] [--seconds 300] [--workers 16]

A worker here is the journal, the spool and the engine without LiteLLM, which would take 15 ms of
CPU per request: on two cores, sixteen proxies would measure the machine. The learner is the real
process. First one worker writes while another only follows: `own_worker_ms` and `other_worker_ms`
are the CPU of each per request of the first. Then `--workers` workers of `--rate` requests a second
each, `--judged` of them judged, write for `--seconds`; all of them run in one process, whose
records are encoded beforehand, so that what is measured is the learner: its CPU per request, and
the age of the states that it publishes: the seconds from the commit of a batch to the state that
includes it.
Postgres is started by the benchmark, as it is installed, with its data on this machine's disk.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.core.encoder import Conversation
from litellm_messplus.core.engine import Engine
from litellm_messplus.core.hashed_ngrams import HashedNgrams
from litellm_messplus.core.published import Publication, View, view_of
from litellm_messplus.core.surface import VERSION, read_surface
from litellm_messplus.costs.price import Price
from litellm_messplus.journal import Journal
from litellm_messplus.learning.keeper import Keeper
from litellm_messplus.learning.outlet import outlet_of
from litellm_messplus.learning.process import KnownEncoder, LearnerSettings
from litellm_messplus.learning.spool import Spool
from litellm_messplus.records import Record
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.store import inbox
from litellm_messplus.store.database import create_engine, migrate
from tests.support import packages
from tests.support.builders import (
    build_zoo,
    decided,
    example,
    label,
    labelled,
    request,
    served_call,
    settled,
)
from tests.support.postgres import postgres_server

DATABASES = ("sqlite", "postgres")
WORKERS = 16
RATE = 60.0
"""Requests per second and worker: what a proxy on a core of its own serves."""
SECONDS = 300.0
FLUSH_SECONDS = 0.5
JUDGED = 0.1
"""Share of the requests that are judged."""
FILLED = 250
"""Judged calls of each model after which no part of its published state grows any more."""
MODELS = (3, 12)
"""Numbers of models of which the size of the published state is shown."""
ALONE_SECONDS = 10.0
ENCODER = HashedNgrams()


@dataclass(frozen=True)
class Pair:
    """The milliseconds of CPU per request of the worker that serves, and of another one."""

    requests: int
    own_worker_ms: float
    other_worker_ms: float


@dataclass(frozen=True)
class Many:
    """The figures of many workers: ages in seconds, CPU in milliseconds per request."""

    workers: int
    requests_per_second: float
    age_median_seconds: float
    age_p95_seconds: float
    age_p99_seconds: float
    learner_ms: float
    learner_share_of_a_core: float
    left_in_inbox: int


def served(name: str, number: int, judged: float) -> list[Record]:
    """Make the records of a request with real features, its call, and for some a verdict."""
    words = f"What is {number} plus {number % 97}? Explain each of the {number % 7} steps."
    conversation = Conversation.of_text(words)
    records: list[Record] = [
        request(
            name,
            encoder=ENCODER.name,
            features=ENCODER.encode([ENCODER.read(conversation)])[0],
            surface=read_surface(conversation),
            surface_version=VERSION,
        ),
        served_call(name),
    ]
    if int((number + 1) * judged) > int(number * judged):
        records.append(label(name, float(number % 3 > 0)))
    return records


def encoded(prefix: str, requests: int, judged: float) -> bytes:
    """Encode a batch of so many requests."""
    made = (served(f"{prefix}-{number}", number, judged) for number in range(requests))
    return inbox.encode([record for records in made for record in records])


class Database:
    """A database with its learner process."""

    def __init__(self, url: str) -> None:
        self.url = url
        known = KnownEncoder(ENCODER.name, ENCODER.dimension, ENCODER.is_fast)
        self.keeper = Keeper(LearnerSettings(url, {"zoo": build_zoo()}, known, 0))

    async def __aenter__(self) -> "Database":
        self.engine = create_engine(self.url)
        await migrate(self.engine)
        await asyncio.to_thread(self.keeper.begin)
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.keeper.close()
        await self.engine.dispose()

    def learner_cpu(self) -> float:
        """Return the CPU seconds of the learner so far."""
        process = self.keeper.process_id
        if process is None:
            raise SystemExit("the learner ended")
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def worker(database: AsyncEngine, name: str, counters: Counters) -> Spool:
    """Build what a worker of that name has of the learner."""
    engines = {"zoo": Engine(build_zoo(), ENCODER, 0)}
    return Spool(database, engines, counters, name, outlet_of(database))


def follow(url: str, seconds: float) -> None:
    """Follow what is published, as a worker that serves nothing does; print its CPU seconds."""

    async def run() -> None:
        database = create_engine(url)
        spool = worker(database, "other", Counters())
        spool.start()
        await spool.has_state.wait()
        began = time.process_time()
        await asyncio.sleep(seconds)
        print(json.dumps({"cpu": time.process_time() - began, "position": spool.position}))
        await spool.close(is_written=False)
        await database.dispose()

    asyncio.run(run())


async def pair(url: str, rate: float, seconds: float) -> Pair:
    """Measure a worker that serves next to one that follows, and that one alone for the zero."""
    async with Database(url) as database:
        idle = json.loads(await _following(url, ALONE_SECONDS))["cpu"] / ALONE_SECONDS
        counters = Counters()
        spool = worker(database.engine, "own", counters)
        journal = Journal(spool, counters, store_text=False, flush_seconds=FLUSH_SECONDS)
        journal.start()
        made = [served(f"own-{number}", number, JUDGED) for number in range(int(rate * seconds))]
        following = asyncio.create_task(_following(url, seconds))
        began, cpu = time.monotonic(), time.process_time()
        for number, records in enumerate(made):
            await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
            for record in records:
                journal.write(record)
        own = time.process_time() - cpu
        other = json.loads(await following)["cpu"] - idle * seconds
        await journal.flush()
        await journal.close()
        if counters.as_dict():
            raise SystemExit(f"a worker had failures: {counters.as_dict()}")
        return Pair(len(made), 1000.0 * own / len(made), 1000.0 * max(other, 0.0) / len(made))


async def _following(url: str, seconds: float) -> bytes:
    code = f"from benchmarks.workers import follow; follow({url!r}, {seconds!r})"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    return output


async def many(url: str, workers: int, rate: float, seconds: float, judged: float) -> Many:
    """Measure the learner that so many workers share."""
    batches = int(seconds / FLUSH_SECONDS)
    size = int(rate * FLUSH_SECONDS)
    made = [
        [encoded(f"{n}-{batch}", size, judged) for batch in range(batches)] for n in range(workers)
    ]
    async with Database(url) as database:
        outlet, sent, ages = outlet_of(database.engine), dict[tuple[str, int], float](), []
        taken: dict[str, int] = {}

        async def write(name: str, encoded: Sequence[bytes], first: float) -> None:
            for number, data in enumerate(encoded, start=1):
                due = first + number * FLUSH_SECONDS
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                await inbox.put(database.engine, name, number, data, is_durable=number % 2 == 0)
                sent[name, number] = time.monotonic()

        async def watch() -> None:
            while True:
                if (data := await outlet.newer()) is not None:
                    now = time.monotonic()
                    for name, upto in Publication.unpack(data).taken.items():
                        for number in range(taken.get(name, 0) + 1, upto + 1):
                            if (name, number) in sent:
                                ages.append(now - sent[name, number])
                        taken[name] = upto
                await asyncio.sleep(0.01)

        watching = asyncio.create_task(watch())
        began, cpu = time.monotonic(), database.learner_cpu()
        await asyncio.gather(
            *(
                write(f"w{n}", encoded, began + FLUSH_SECONDS * n / workers)
                for n, encoded in enumerate(made)
            )
        )
        took, cpu = time.monotonic() - began, database.learner_cpu() - cpu
        left = len(await inbox.waiting(database.engine, 10**6))
        await asyncio.sleep(1.0)
        watching.cancel()
        requests = workers * batches * size
        cuts = statistics.quantiles(ages, n=100, method="inclusive")
        return Many(
            workers=workers,
            requests_per_second=requests / took,
            age_median_seconds=cuts[49],
            age_p95_seconds=cuts[94],
            age_p99_seconds=cuts[98],
            learner_ms=1000.0 * cpu / requests,
            learner_share_of_a_core=cpu / took,
            left_in_inbox=left,
        )


def state_bytes(models: int) -> int:
    """Return the size of the published state of one zoo of so many models."""
    zoo = build_zoo({f"model-{number}": Price(0.0, 0.01 * number) for number in range(models)})
    engine = Engine(zoo, ENCODER, 0)
    for number in range(FILLED * models):
        name = zoo.candidates[number % models]
        conversation = Conversation.of_text(f"what is {number}?")
        seen = example(
            name,
            request_id=str(number),
            encoder=ENCODER.name,
            features=ENCODER.encode([ENCODER.read(conversation)])[0],
            surface=read_surface(conversation),
        )
        engine.apply(decided(request_id=str(number), position=number))
        engine.apply(settled(name, call_id=f"{number}.0", example=seen, seconds=1.0))
        engine.apply(labelled(1.0, request_id=str(number), call_id=f"{number}.0", example=seen))
    view = View("0" * 64, *view_of(engine.state))
    return len(Publication(10**6, 1, 16, {}, {"zoo": view}).pack())


@contextmanager
def databases(kind: str) -> Iterator[Iterator[str]]:
    """Yield URLs of empty databases, one after another."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            yield (f"sqlite+aiosqlite:///{Path(folder)}/{n}.db" for n in range(100))
        return
    if packages.find("postgresql") is None:
        raise SystemExit(f"{packages.INSTALL} postgresql")
    with postgres_server() as server:
        yield (server.database() for _ in range(100))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--rate", type=float, default=RATE)
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--judged", type=float, default=JUDGED, help="share, from 0 to 1")
    parser.add_argument("--database", choices=DATABASES, action="append")
    given = parser.parse_args()
    found: dict[str, Any] = {"state_bytes": {each: state_bytes(each) for each in MODELS}}
    for kind in given.database or DATABASES:
        with databases(kind) as urls:
            two = asyncio.run(pair(next(urls), given.rate, min(given.seconds, 30.0)))
            load = given.workers, given.rate, given.seconds, given.judged
            fleet = asyncio.run(many(next(urls), *load))
            found[kind] = {**asdict(two), "sixteen": asdict(fleet)}
            if not given.json:
                print(kind, *(f"{name} {value:.3f}" for name, value in asdict(two).items()))
                print(kind, *(f"{name} {value:.3f}" for name, value in asdict(fleet).items()))
    if given.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
