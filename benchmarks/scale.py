"""How long reading takes on a log of so many requests: the same on ten million as on ten thousand?

    python -m benchmarks.scale --requests 1000000 [--database URL] [--json]

The log is made by `benchmarks.scaled_log` in a temporary SQLite file, or in an empty database at
the URL. Each figure is the median of three, and above its limit the program ends with status 1.
"""

import argparse
import asyncio
import json
import math
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # no download at import

from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from threadpoolctl import threadpool_limits

from benchmarks.decision_time import configuration
from benchmarks.scaled_log import BLOCK, Scaled, make_log
from benchmarks.verdicts_on_one_answer import Steps
from litellm_messplus.brain.brain import Brain
from litellm_messplus.brain.feedback import Feedback
from litellm_messplus.brain.messages import Caller
from litellm_messplus.brain.opening import open_database
from litellm_messplus.core import snapshot
from litellm_messplus.core.engine import Engine
from litellm_messplus.encoders.lookup import load_encoder
from litellm_messplus.inspecting.listing import Wanted, requests_in
from litellm_messplus.records import LabelRecord, new_id, served_call_id
from litellm_messplus.restore import fold
from litellm_messplus.runtime.vocabulary import LabelKind
from litellm_messplus.serving import startup
from litellm_messplus.serving.composition import Parts
from litellm_messplus.serving.deployments.index import build_zoos
from litellm_messplus.serving.inside import BrainInside
from litellm_messplus.serving.worker_hands import WorkerHands
from litellm_messplus.settings.load import load_settings
from litellm_messplus.store import log, snapshots
from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.store.entries import read_entries
from tests.support.questions import questions

ZOO = "zoo"
MODELS = 3
TAIL = 500
"""Records after the snapshot, which are folded at a start."""
VERDICTS = 10_000
"""Number of verdicts on one answer, as an older database may hold them."""
TIMES = 3
BARS = {
    "start_seconds": 5.0,
    "metrics_seconds": 0.3,
    "status_seconds": 0.3,
    "feedback_seconds": 0.05,
    "history_seconds": 0.3,
    "views_seconds": 5.0,
    "longest_step_seconds": 0.02,
}


class Proxy:
    """The parts of a proxy that read and write a log, assembled as at a start."""

    def __init__(self, url: str) -> None:
        self.config = configuration(Path("unused"), MODELS)
        self.config["messplus"]["database"] = url
        self.settings = load_settings(self.config)
        self.engines = self._engines()

    def _engines(self) -> dict[str, Engine]:
        encoder = load_encoder(self.settings.encoder)
        zoos = build_zoos(self.settings, self.config["model_list"])
        return {name: Engine(zoo, encoder, self.settings.seed) for name, zoo in zoos.items()}

    async def snapshot(self, database: AsyncEngine, position: int) -> None:
        """Save a snapshot of a fold of the first records, as if it had come so far."""
        async for entry in read_entries(database, 0, BLOCK):
            fold(self.engines, entry)
        engine = self.engines[ZOO]
        fingerprint = snapshot.fingerprint(engine.zoo, engine.encoder.name)
        state = snapshot.dump(engine.state)
        await snapshots.save(database, snapshots.Snapshot(ZOO, position, fingerprint, state))

    async def start(self) -> int:
        """Do everything that a start does before the first request."""
        self.engines = self._engines()
        return (await open_database(self.settings, self.engines)).position or 0


async def measure(url: str, count: int) -> dict[str, Any]:
    """Measure all figures for a log of that length, made in the empty database at the URL."""
    database = create_engine(url)
    await migrate(database)
    if database.dialect.name == "sqlite":
        await _make_haste(database)
    began = time.perf_counter()
    scaled = await make_log(database, count, ZOO)
    made = time.perf_counter() - began
    if database.dialect.name == "postgresql":
        await _analyze(database)
    await database.dispose()
    return {"requests": count, "made_seconds": made, **await figures(url, scaled)}


async def figures(url: str, scaled: Scaled) -> dict[str, Any]:
    """Measure the reading of the log that was made there."""
    proxy, database = Proxy(url), create_engine(url)
    await proxy.snapshot(database, scaled.position - TAIL)
    found: dict[str, Any] = {"start_seconds": await _timed(proxy.start)}
    found["history_seconds"] = await _timed(lambda: requests_in(url, Wanted()))
    found |= await _of_a_running_proxy(proxy, scaled)
    found |= await _questions(database)
    await database.dispose()
    return found


async def _make_haste(database: AsyncEngine) -> None:
    """Turn off waiting for the disk: this file need not survive a crash."""
    async with database.connect() as connection:
        await connection.exec_driver_sql("PRAGMA journal_mode = OFF")

    @event.listens_for(database.sync_engine, "connect")
    def _never_wait(connection: Any, _entry: Any) -> None:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA cache_size = -500000")

    await database.dispose()


async def _analyze(database: AsyncEngine) -> None:
    """Analyse the tables, as autovacuum would have done long before."""
    async with database.connect() as connection:
        found = await connection.execution_options(isolation_level="AUTOCOMMIT")
        await found.exec_driver_sql("VACUUM ANALYZE")


async def _timed(work: Callable[[], Awaitable[Any]]) -> float:
    """Measure the median time. A result is cached for as long as reading it took, so each run waits
    that long."""
    took = []
    for _ in range(TIMES):
        began = time.perf_counter()
        await work()
        took.append(time.perf_counter() - began)
        await asyncio.sleep(1.5 * took[-1])
    return statistics.median(took)


async def _of_a_running_proxy(proxy: Proxy, scaled: Scaled) -> dict[str, float]:
    """Measure its requests, and the longest step of its event loop in the meantime."""
    database = create_engine(proxy.settings.database)
    await _judge_one_answer(database, f"{scaled.newest[:-5]}00000")
    settings, encoder = proxy.settings, load_encoder(proxy.settings.encoder)
    brain = Brain(settings, encoder, proxy.engines, database)
    brain.learner.begin_at(scaled.position)
    hands = WorkerHands({name: engine.zoo for name, engine in proxy.engines.items()})
    parts = Parts(settings, BrainInside(brain, hands))
    steps = Steps()
    startup.freeze_startup_objects()  # as the proxy does
    numbers = iter(range(BLOCK))

    async def feedback() -> None:
        number = BLOCK - 2 - 2 * next(numbers)  # requests without a label
        given = Feedback(id=f"{scaled.newest[:-5]}{number:05}", satisfied=True)
        await brain.feedback.accept(given, Caller("key-0", is_admin=True))

    with steps.watched():
        parts.start()
        while brain.journal.position < await log.head(database):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        found = {
            "metrics_seconds": await _timed(brain.watch.metrics),
            "status_seconds": await _timed(brain.watch.read),
            "feedback_seconds": await _timed(feedback),
        }
    await parts.close()
    failed = {name: count for name, count in parts.counters.as_dict().items() if count}
    if failed:
        raise SystemExit(f"not a measurement: {failed}")
    return {**found, "longest_step_seconds": steps.longest}


async def _judge_one_answer(database: AsyncEngine, request_id: str) -> None:
    """Judge one answer through another worker, which the proxy must follow."""
    verdicts = [
        LabelRecord(
            label_id=new_id(),
            call_id=served_call_id(request_id),
            request_id=request_id,
            created_at=datetime.now(UTC),
            kind=LabelKind.FEEDBACK,
            source="feedback",
            value=float(number % 2),
        )
        for number in range(VERDICTS)
    ]
    for start in range(0, VERDICTS, 500):
        await log.append(database, verdicts[start : start + 500])


async def _questions(database: AsyncEngine) -> dict[str, Any]:
    """Run the queries of `docs/sql.md` over the newest week; each once, since it fills no cache of
    its own."""
    took: dict[str, float] = {}
    week = str(datetime.now(UTC).date() - timedelta(days=7))
    async with database.connect() as connection:
        await _as_the_page_says(connection)
        for name, query in questions(connection.dialect.name, week).items():
            began = time.perf_counter()
            (await connection.exec_driver_sql(query)).all()
            took[name] = time.perf_counter() - began
    longest = max(took, key=lambda name: took[name])
    return {"views_seconds": took[longest], "longest_question": longest, "questions": took}


async def _as_the_page_says(connection: AsyncConnection) -> None:
    if connection.dialect.name == "postgresql":
        await connection.exec_driver_sql("SET jit = off")
        await connection.exec_driver_sql("SET TIME ZONE 'UTC'")
        return
    raw: Any = (await connection.get_raw_connection()).driver_connection
    await raw.create_function("sqrt", 1, math.sqrt, deterministic=True)  # some libraries lack it


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, required=True, help="A multiple of 1000.")
    parser.add_argument("--database", help="URL of an empty database; left out, a SQLite file.")
    parser.add_argument("--json", action="store_true", help="One JSON object.")
    given = parser.parse_args()
    threadpool_limits(limits=1, user_api="blas")  # as at the proxy's start
    with tempfile.TemporaryDirectory() as folder:
        url = given.database or f"sqlite+aiosqlite:///{folder}/messplus.db"
        found = asyncio.run(measure(url, given.requests))
    missed = [name for name, bar in BARS.items() if found[name] > bar]
    if given.json:
        print(json.dumps({**found, "missed": missed}))
    else:
        print(
            f"{'requests':24}{found['requests']:>12}\n{'made in':24}{found['made_seconds']:12.1f} s"
        )
        for name, bar in BARS.items():
            print(f"{name:24}{found[name]:12.4f} s   bar {bar:g} s")
        print(f"longest question: {found['longest_question']}")
    raise SystemExit(bool(missed))


if __name__ == "__main__":
    main()
