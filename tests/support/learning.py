"""A learner and its workers in one process, as the proxy has them in several."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.core.engine import Engine, Question
from litellm_messplus.core.published import Publication, View, view_of
from litellm_messplus.core.snapshot import fingerprint
from litellm_messplus.journal import Journal
from litellm_messplus.learning.loop import LearnerLoop
from litellm_messplus.learning.outlet import outlet_of
from litellm_messplus.learning.spool import Spool
from litellm_messplus.records import Record
from litellm_messplus.restore import restore
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.store import inbox, log
from litellm_messplus.store.tables import inbox as table
from tests.support.builders import PairEncoder, build_engine, build_zoo, point
from tests.support.folding import fold_all, only_zoo
from tests.support.patience import PATIENT, until_it_holds


class Clock:
    """Stands still until it is moved; in seconds."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Worker:
    """What a worker of the proxy has of the learner: an engine, a spool, and a journal."""

    def __init__(
        self, database: AsyncEngine, zoo: Zoo | None = None, name: str = "a", **how: Any
    ) -> None:
        self.database = database
        self.engine = build_engine(zoo)
        self.counters = Counters()
        self.followed: list[int] = []
        how = {"outlet": outlet_of(database), "followed": self.followed.append, **how}
        self.spool = Spool(database, only_zoo(self.engine), self.counters, name, **how)
        self.journal = Journal(self.spool, self.counters, store_text=False, flush_seconds=0.01)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Worker"]:
        self.journal.start()
        try:
            async with asyncio.timeout(PATIENT):
                yield self
        finally:
            await self.journal.close()

    async def write(self, *records: Record) -> None:
        """Write records, and wait until they are in the inbox."""
        for record in records:
            self.journal.write(record)
        await self.journal.flush()

    async def reached(self, position: int) -> None:
        await until_it_holds(lambda: self.spool.position >= position)

    @property
    def in_flight(self) -> int:
        """The number of requests that are counted and not part of the state."""
        return sum(map(len, self.engine._unfolded.values()))

    async def is_the_fold(self) -> bool:
        """Whether it decides as one that has folded the log itself."""
        folded = await fold_all(self.database, self.engine.zoo)
        folded.deciders = self.engine.deciders
        return decisions(self.engine) == decisions(folded)


def decisions(engine: Engine) -> list[object]:
    """The situation and the choice for some requests, which are not numbered."""
    found: list[object] = []
    for level in engine.zoo.levels.values():
        for number in range(5):
            prompt = point(0.5, 0.25 * number)
            question = Question(f"q{number}", level, prompt, 40 * number, engine.zoo.candidates)
            choice = engine.decide(question)
            engine.forget(question.request_id)
            found.append((choice.situation, choice.decision))
    return found


def published(engine: Engine, position: int, epoch: int = 1, **of: Any) -> Publication:
    """What a learner publishes."""
    view = View(fingerprint(engine.zoo, engine.encoder.name), *view_of(engine.state))
    return Publication(position, epoch, views={engine.zoo.name: view}, **of)


async def elected(
    database: AsyncEngine, zoo: Zoo | None = None, outlet: Any = None, **how: Any
) -> LearnerLoop:
    """A learner that was elected just now, and has restored its state."""
    epoch = await inbox.elect(database, "a process", datetime.now(UTC))
    engines = only_zoo(Engine(zoo or build_zoo(), PairEncoder(), 0, decides=False))
    position = await restore(database, engines)
    return LearnerLoop(database, engines, outlet or outlet_of(database), epoch, position, **how)


@asynccontextmanager
async def learning(
    database: AsyncEngine, zoo: Zoo | None = None, **how: Any
) -> AsyncIterator[LearnerLoop]:
    """A learner in office, which is stopped at the end."""
    loop = await elected(database, zoo, **how)
    await loop.begin()
    task = asyncio.create_task(loop.run())
    try:
        yield loop
    finally:
        loop.stop()
        async with asyncio.timeout(PATIENT):
            await task
        await loop.close()


async def put(database: AsyncEngine, worker: str, number: int, *records: Record) -> None:
    """Put a batch into the inbox."""
    data = inbox.encode(records)
    await inbox.put(database, worker, number, data, is_durable=False)


async def counts(database: AsyncEngine) -> tuple[int, int]:
    """The number of batches in the inbox, and of records in the log."""
    async with database.connect() as connection:
        batches = await connection.execute(select(func.count()).select_from(table))
    return batches.scalar_one(), await log.head(database)


class MemoryOutlet:
    """The place of publications, in memory; each attempt may ``fail``."""

    def __init__(self) -> None:
        self.published: list[Publication] = []
        self.signs = 0
        self.is_gone = False
        self.fail: Exception | None = None

    async def publish(self, data: bytes, epoch: int) -> None:
        if self.fail is not None:
            raise self.fail
        self.published.append(Publication.unpack(data))
        self.is_gone = False

    async def sign(self, epoch: int) -> bool:
        self.signs += 1
        return not self.is_gone

    async def newer(self) -> bytes | None:
        return self.published[-1].pack() if self.published else None

    @property
    def silent_seconds(self) -> float:
        return 0.0
