"""Workers on one Postgres hear of each other at once, and know it when they do not."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.deciding.decider import Engine
from litellm_messplus.learning.learner import Learner
from litellm_messplus.records import Record
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.serving import feedback
from litellm_messplus.serving.authentication import Caller
from litellm_messplus.serving.feedback import RequestFinder
from litellm_messplus.serving.open_requests import OpenRequests
from litellm_messplus.store import log, notices
from litellm_messplus.store.database import create_engine
from litellm_messplus.store.entries import Kinds, read_entries
from litellm_messplus.store.notices import LogNotices
from tests.support.builders import build_engine, build_zoo, label, request, served_call
from tests.support.folding import build_journal, learner_of
from tests.support.patience import PATIENT, turns, until_it_holds
from tests.support.postgres import Postgres, fetch

LISTENERS = "application_name = 'messplus-notices'"


@dataclass
class Worker:
    """A journal and an engine of its own, as one process of the proxy has them."""

    database: AsyncEngine
    flush_seconds: float = 0.01
    counters: Counters = field(default_factory=Counters)
    engine: Engine = field(default_factory=lambda: build_engine(build_zoo()))

    def __post_init__(self) -> None:
        self.journal = build_journal(
            self.database, self.engine, self.counters, flush_seconds=self.flush_seconds
        )

    async def reached(self, position: int) -> None:
        await until_it_holds(lambda: self.journal.position >= position)


@asynccontextmanager
async def running(url: str, *, flush_seconds: float = 0.01) -> AsyncIterator[Worker]:
    """A worker that listens."""
    worker = Worker(create_engine(url), flush_seconds)
    worker.journal.start()
    try:
        await until_it_holds(lambda: is_listening(worker))
        yield worker
    finally:
        await worker.journal.close()
        await worker.database.dispose()


def is_listening(worker: Worker) -> bool:
    return learner_of(worker.journal)._following.seconds == notices.SELDOM_SECONDS


@pytest.fixture(autouse=True)
def notices_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is found by the clock: only what is notified is seen in time."""
    monkeypatch.setattr(notices, "SELDOM_SECONDS", 2 * PATIENT)


@pytest.fixture
async def workers(database: AsyncEngine, database_url: str) -> AsyncIterator[tuple[Worker, Worker]]:
    async with AsyncExitStack() as stack:
        yield (
            await stack.enter_async_context(running(database_url)),
            await stack.enter_async_context(running(database_url)),
        )


async def test_a_label_at_one_worker_is_reported_to_the_other_one(
    workers: tuple[Worker, Worker],
) -> None:
    here, there = workers
    for number in range(12):
        for record in (request(f"r{number}"), served_call(f"r{number}")):
            await here.journal.write_durably(record)
        await here.journal.write_durably(label(f"r{number}", float(number % 2)))
        await there.reached(here.journal.position)

    queues = [each.engine.state.policy.queue("default") for each in workers]
    assert queues[0] == queues[1] != 0.0
    assert [each.counters.as_dict() for each in workers] == [{}, {}]


async def test_a_worker_does_not_read_back_the_notices_of_its_own(
    database: AsyncEngine, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[tuple[int, int]] = []

    def reading(engine: AsyncEngine, after: int, upto: int, kinds: Kinds) -> AsyncIterator[object]:
        read.append((after, upto))
        return read_entries(engine, after, upto, kinds)

    monkeypatch.setattr("litellm_messplus.learning.learner.read_entries", reading)
    async with running(database_url) as worker:
        for number in range(5):
            await worker.journal.write_durably(request(f"r{number}"))
            await has_looked(worker)

    assert [(after, upto) for after, upto in read if upto > after] == []


async def has_looked(worker: Worker) -> None:
    """Until the worker was notified of what it has written itself."""
    followed = learner_of(worker.journal)._following
    await until_it_holds(lambda: followed.upto >= worker.journal.position and not followed._timer)
    await turns()


async def test_many_notices_are_one_look(
    database: AsyncEngine, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look keeps the event loop: however much others commit, there are ten in a second."""
    looks = 0
    look = Learner.look_up_to_notice

    async def counted(self: Learner) -> None:
        nonlocal looks
        looks += self._following.upto > self.position
        await look(self)

    monkeypatch.setattr(Learner, "look_up_to_notice", counted)
    async with running(database_url) as worker:
        began = time.monotonic()
        for number in range(60):
            await appended(database, request(f"r{number}"))
        await worker.reached(60)
        seconds = time.monotonic() - began

    assert 1 <= looks <= 2 + seconds / notices.GAP_SECONDS


async def appended(database: AsyncEngine, *records: Record) -> None:
    """Written by a process that is not this worker."""
    await log.append(database, records)


async def test_a_notice_lets_records_wait_for_their_flush_interval(
    database: AsyncEngine, database_url: str
) -> None:
    async with running(database_url, flush_seconds=2 * PATIENT) as worker:
        worker.journal.write(request("mine"))
        await appended(database, request("theirs"))
        await worker.reached(1)
        found = await fetch(database_url, "SELECT request_id FROM requests")

    assert [row["request_id"] for row in found] == ["theirs"]


@pytest.mark.parametrize("given", ["r1", "litellm-r1", "chatcmpl-r1"])
async def test_who_waits_for_an_id_is_woken_when_another_worker_writes_it(
    workers: tuple[Worker, Worker], given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feedback, "WAIT_SECONDS", 2 * PATIENT)
    here, there = workers
    finder = RequestFinder(there.database, OpenRequests(), there.journal.arrivals, there.counters)
    looking = asyncio.create_task(finder.find(given, Caller("key", is_admin=False)))
    await until_it_holds(lambda: bool(there.journal.arrivals._waiting))
    await here.journal.write_durably(request("r1"))
    await here.journal.write_durably(served_call("r1"))

    async with asyncio.timeout(PATIENT):
        assert (await looking).request_id == "r1"


async def test_a_connection_that_was_killed_comes_back_and_misses_nothing(
    database: AsyncEngine, database_url: str, server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "RETRY_SECONDS", 0.2)
    monkeypatch.setattr(notices, "FOLLOW_SECONDS", 7200.0)
    async with running(database_url) as worker:
        await fetch(
            server.url(),
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {LISTENERS}",
        )
        await until_it_holds(lambda: "log_notices_lost" in worker.counters.as_dict())
        await appended(database, request("while none listens"))
        await worker.reached(1)

        assert is_listening(worker)
        assert worker.counters.as_dict() == {"log_notices_lost": 1}


async def test_the_clock_looks_without_notices(
    database: AsyncEngine, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As behind a pooler that gives each transaction another connection."""
    monkeypatch.setattr(notices, "NOTIFY_HEAD", "SELECT 1")
    monkeypatch.setattr(notices, "ANSWER_SECONDS", 0.1)
    monkeypatch.setattr(notices, "FOLLOW_SECONDS", 0.05)
    worker = Worker(create_engine(database_url))
    learner_of(worker.journal)._following._notices = LogNotices(
        database, lambda position: None, learner_of(worker.journal)._following._lost
    )
    worker.journal.start()
    await until_it_holds(lambda: "log_notices_lost" in worker.counters.as_dict())
    await appended(database, request("r1"))
    await worker.reached(1)
    assert not is_listening(worker)
    await worker.journal.close()
    await worker.database.dispose()


async def test_attempts_to_listen_become_rare(
    database: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(notices, "LONGEST_RETRY_SECONDS", 0.2)
    lost: list[float] = []
    away = create_engine("postgresql+asyncpg://nobody@127.0.0.1:1/nowhere")
    listening = asyncio.create_task(
        LogNotices(away, lambda position: None, lambda error: lost.append(time.monotonic())).run()
    )
    await until_it_holds(lambda: len(lost) > 7)
    listening.cancel()

    pauses = [later - earlier for earlier, later in pairwise(lost[:8])]
    least = [0.01, 0.02, 0.04, 0.08, 0.16, 0.2, 0.2]
    assert all(pause > 0.9 * each for pause, each in zip(pauses, least, strict=True))


async def test_a_stop_ends_the_connection(
    database: AsyncEngine, database_url: str, server: Postgres
) -> None:
    listening = f"SELECT pid FROM pg_stat_activity WHERE {LISTENERS}"
    async with running(database_url):
        assert len(await fetch(server.url(), listening)) == 1
    async with asyncio.timeout(PATIENT):
        while await fetch(server.url(), listening):  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.02)
