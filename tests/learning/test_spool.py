"""The spool: what a worker sends and what it decides from, and what it waits for meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy.exc import InterfaceError
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus import backlog
from litellm_messplus.core.engine import Question
from litellm_messplus.learning import spool as module
from litellm_messplus.learning.lease import adjacent_path
from litellm_messplus.learning.outlet import SUFFIX, FileOutlet, outlet_of
from litellm_messplus.runtime.errors import UnloggedRequestError
from litellm_messplus.store import inbox, log
from litellm_messplus.store.database import create_engine
from litellm_messplus.store.worker_counters import WorkerCounters
from tests.support.builders import (
    build_engine,
    build_zoo,
    decided,
    label,
    point,
    request,
    served_call,
    traffic,
)
from tests.support.learning import Clock, MemoryOutlet, Worker, counts, learning, published, put
from tests.support.patience import PATIENT, turns, until_it_holds

LOST = InterfaceError("COMMIT", {}, Exception(), connection_invalidated=True)


def decide(worker: Worker, request_id: str) -> None:
    """Decide a request, which is in flight from then on."""
    zoo = worker.engine.zoo
    worker.engine.decide(
        Question(request_id, zoo.levels["default"], point(0, 0), 0, zoo.candidates)
    )


def publish(outlet: MemoryOutlet, position: int, epoch: int = 1, **of: Any) -> None:
    """Publish a state of as many requests."""
    engine = build_engine(build_zoo())
    for number in range(position):
        engine.apply(decided(request_id=f"r{number}", position=number + 1))
    outlet.published.append(published(engine, position, epoch, **of))


@pytest.fixture
def outlet() -> MemoryOutlet:
    return MemoryOutlet()


@pytest.fixture
def alone(database: AsyncEngine, outlet: MemoryOutlet) -> Worker:
    """A worker whose learner is the test."""
    return Worker(database, outlet=outlet)


@pytest.fixture
async def other(either: AsyncEngine, either_url: str) -> AsyncIterator[AsyncEngine]:
    """The same database, as another process has it."""
    engine = create_engine(either_url)
    yield engine
    await engine.dispose()


async def test_two_workers_and_their_learner(either: AsyncEngine, other: AsyncEngine) -> None:
    """What each writes is logged in order, and both decide from the fold of the log."""
    here, there = Worker(either, name="a"), Worker(other, name="b")
    records = [(here, each) for each in traffic(20, prefix="a")]
    records += [(there, each) for each in traffic(20, prefix="b", replaces=True)]
    for name in "ab":
        await WorkerCounters(either, name).exchange({}, datetime.now(UTC))
    async with learning(either) as loop, here.running(), there.running():
        for number, (worker, record) in enumerate(records):
            worker.journal.write(record)
            if number % 20 == 0:
                await here.journal.flush()
        await here.journal.flush()
        await there.journal.flush()
        end = len(records)
        await until_it_holds(lambda: here.spool.position == there.spool.position == end)

        for worker in (here, there):
            assert await worker.is_the_fold()
            assert (worker.in_flight, len(worker.spool._sent)) == (0, 0)
            assert worker.counters.as_dict() == {}
            assert worker.engine.deciders == 2
            assert worker.followed == sorted(set(worker.followed))
            assert worker.followed[-1] == await log.head(either)
        assert loop.counters.as_dict() == {}
    assert await counts(either) == (0, end)


async def test_a_verdict_is_in_the_state_when_it_is_acknowledged(
    either: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However slow the disk: a worker waits for no longer than so, which is a second elsewhere."""
    monkeypatch.setattr(module, "SETTLED_SECONDS", PATIENT)
    worker = Worker(either)
    async with learning(either), worker.running():
        await worker.write(request(), served_call())
        await worker.journal.write_durably(label(value=0.0))

        assert worker.engine.state.policy.queue("default") == 0.6
        assert await counts(either) == (0, 3)


async def test_without_a_learner_the_inbox_acknowledges(database: AsyncEngine) -> None:
    """At once, since nothing waits for a learner that is silent."""
    clock = Clock()
    worker = Worker(database, clock=clock)
    async with worker.running():
        clock.now += module.SILENT_SECONDS + 0.1
        async with asyncio.timeout(module.SETTLED_SECONDS):
            await worker.journal.write_durably(label())
    assert await counts(database) == (1, 0)


async def test_a_request_is_in_flight_until_a_state_has_it(alone: Worker, outlet: Any) -> None:
    decide(alone, "r0")
    decide(alone, "r1")
    await send(alone, request("r0"))
    await send(alone, request("r1"))
    publish(outlet, 0)
    await alone.spool.read()
    assert alone.in_flight == 2
    publish(outlet, 1, taken={"a": 1, "another": 9})
    await alone.spool.read()
    assert (alone.in_flight, alone.engine.state.requests["default"]) == (1, 1)
    publish(outlet, 2, taken={"a": 2})
    await alone.spool.read()
    assert (alone.in_flight, alone.engine.state.requests["default"]) == (0, 2)


async def send(worker: Worker, *records: Any) -> None:
    """Put records into the inbox as the journal does."""
    number = await worker.spool.append(records, is_durable=False)
    await worker.spool.fold_written(records, number)


async def test_a_state_before_its_commit_counts_once(alone: Worker, outlet: MemoryOutlet) -> None:
    """The learner may be faster than the answer to the commit."""
    decide(alone, "r0")
    with alone.spool.arrivals.expecting("r0") as arrived:
        number = await alone.spool.append([request("r0")], is_durable=False)
        publish(outlet, 1, taken={"a": number})
        await alone.spool.read()
        assert alone.in_flight == 0
        await alone.spool.fold_written([request("r0")], number)
        assert alone.in_flight == 0
        assert arrived.is_set()


async def test_an_attempt_whose_answer_is_lost_has_a_number_of_its_own(
    database: AsyncEngine, outlet: MemoryOutlet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the state would seem to include what was added to the second attempt."""
    alone, real, left = Worker(database, outlet=outlet), inbox.put, iter([LOST])

    async def broken(*arguments: Any, **how: Any) -> None:
        await real(*arguments, **how)
        for error in left:
            raise error

    monkeypatch.setattr(inbox, "put", broken)
    with pytest.raises(InterfaceError):
        await alone.spool.append([request("r0")], is_durable=False)
    await send(alone, request("r0"), request("r1"))
    publish(outlet, 1, taken={"a": 1})
    await alone.spool.read()
    assert not await is_settled(alone)
    publish(outlet, 2, taken={"a": 2})
    await alone.spool.read()
    assert await is_settled(alone)


async def is_settled(worker: Worker) -> bool:
    """Whether nothing is waited for."""
    task = asyncio.create_task(worker.spool.settled())
    await turns()
    is_done = task.done()
    task.cancel()
    return is_done


async def test_it_is_settled_with_the_state(alone: Worker, outlet: MemoryOutlet) -> None:
    assert await is_settled(alone)  # nothing was written
    publish(outlet, 0)
    await alone.spool.read()
    await send(alone, request("r0"))
    assert not await is_settled(alone)
    waiting = asyncio.create_task(alone.spool.settled())
    await turns()
    publish(outlet, 1, taken={"a": 1})
    await alone.spool.read()
    async with asyncio.timeout(module.SETTLED_SECONDS / 2.0):
        await waiting


async def test_the_wait_is_bounded(alone: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SETTLED_SECONDS", 0.05)
    await send(alone, request("r0"))
    async with asyncio.timeout(PATIENT):
        await alone.spool.settled()


async def test_a_forgotten_worker_does_not_wait(alone: Worker, outlet: MemoryOutlet) -> None:
    """It was silent for an hour."""
    await send(alone, request("r0"))
    publish(outlet, 1, taken={"a": 1})
    await alone.spool.read()
    publish(outlet, 2, taken={})
    await alone.spool.read()
    assert alone.spool.position == 2
    assert await is_settled(alone)


async def test_workers_are_counted_without_a_record(alone: Worker, outlet: MemoryOutlet) -> None:
    for workers in (1, 3):
        publish(outlet, 1, workers=workers)
        await alone.spool.read()
        assert alone.engine.deciders == workers


# What is ignored


async def test_an_earlier_learners_is_ignored(database: AsyncEngine, outlet: MemoryOutlet) -> None:
    clock = Clock()
    alone = Worker(database, outlet=outlet, clock=clock)
    publish(outlet, 1, epoch=2)
    await alone.spool.read()
    publish(outlet, 5, epoch=1)
    clock.now += 7.0
    await alone.spool.read()
    assert (alone.spool.position, alone.spool.state_seconds) == (1, 7.0)
    assert alone.counters.as_dict() == {"states_of_earlier_learners": 1}
    publish(outlet, 2, epoch=2)
    await alone.spool.read()
    assert (alone.spool.position, alone.spool.state_seconds) == (2, 0.0)


async def test_a_state_of_others_is_ignored(database: AsyncEngine, outlet: MemoryOutlet) -> None:
    clock = Clock()
    alone = Worker(database, build_zoo(policy="paper"), outlet=outlet, clock=clock)
    publish(outlet, 1)
    clock.now += 7.0
    await alone.spool.read()
    assert not alone.spool.has_state.is_set()
    assert (alone.spool.position, alone.spool.state_seconds) == (0, 7.0)
    assert alone.counters.as_dict() == {"states_of_other_settings": 1}


async def test_a_state_that_is_none_is_counted_and_read_again(
    database: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.01)
    worker, learner = Worker(database), outlet_of(database)
    await learner.publish(b"something else", 1)
    async with worker.running():
        await until_it_holds(lambda: "states_unread" in worker.counters.as_dict())
        assert not worker.spool.has_state.is_set()
        await learner.publish(published(build_engine(build_zoo()), 0).pack(), 1)
        await until_it_holds(worker.spool.has_state.is_set)


# Look-ups that wait


@pytest.mark.parametrize("given", ["r1", "litellm-r1", "chatcmpl-r1"])
@pytest.mark.parametrize("by", ["itself", "another worker"])
async def test_who_waits_for_an_id_is_woken(database: AsyncEngine, given: str, by: str) -> None:
    worker = Worker(database)
    async with learning(database), worker.running():
        with worker.spool.arrivals.expecting(given) as arrived:
            if by == "itself":
                await worker.write(request("r1"), served_call("r1"))
            else:
                await put(database, "b", 1, request("r1"), served_call("r1"))
            await arrived.wait()
        assert worker.spool.position >= 1


async def test_ids_that_could_not_be_looked_up_are_with_the_next_reading(
    alone: Worker, outlet: MemoryOutlet, monkeypatch: pytest.MonkeyPatch
) -> None:
    await log.append(alone.database, [request("r0")])
    publish(outlet, 1, workers=2)
    with alone.spool.arrivals.expecting("r0") as arrived:
        with monkeypatch.context() as away:
            away.setattr(module, "arrived_ids", raising)
            with pytest.raises(InterfaceError):
                await alone.spool.read()
        assert alone.followed == []
        await alone.spool.read()
        assert arrived.is_set()
    assert alone.followed == [1]


async def raising(*arguments: Any) -> None:
    raise LOST


# The age of the state


async def test_the_age_of_a_state_is_that_of_the_last_sign_of_life(database: AsyncEngine) -> None:
    clock = Clock()
    outlet = FileOutlet(adjacent_path(database, SUFFIX), clock)
    worker = Worker(database, outlet=outlet, clock=clock)
    clock.now += 4.0
    assert worker.spool.state_seconds == 4.0  # none yet
    learner = outlet_of(database)
    await learner.publish(published(build_engine(build_zoo()), 0).pack(), 1)
    await worker.spool.read()
    assert worker.spool.state_seconds == 0.0
    clock.now += 1.4
    assert not worker.spool.arrivals.is_late()
    clock.now += 4.6
    await worker.spool.read()
    assert worker.spool.state_seconds == 6.0
    assert worker.spool.arrivals.is_late()
    await learner.sign(1)
    await worker.spool.read()
    assert worker.spool.state_seconds == 0.0


# Bounds, and what is dropped


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 4)
    monkeypatch.setattr(backlog, "REMEMBERED", 3)


@pytest.mark.usefixtures("few")
async def test_what_no_learner_takes_is_kept_in_mind_within_a_bound(alone: Worker) -> None:
    for number in range(6):
        decide(alone, f"r{number}")
        await send(alone, request(f"r{number}"), served_call(f"r{number}"))
    assert (len(alone.spool._sent), alone.in_flight) == (2, 2)
    await send(alone, *(request(f"s{number}") for number in range(9)))
    assert (len(alone.spool._sent), alone.spool._in_sent, alone.in_flight) == (0, 0, 0)


@pytest.mark.usefixtures("few")
async def test_nothing_is_sent_about_a_request_that_was_dropped(alone: Worker) -> None:
    decide(alone, "r9")
    alone.spool.dropped(request("r9"))
    assert alone.in_flight == 0
    with pytest.raises(UnloggedRequestError):
        await alone.spool.append([label("r9")], is_durable=True)
    for number in range(3):
        alone.spool.dropped(request(f"r{number}"))
    await send(alone, label("r9"))  # that is long ago


async def test_an_unencodable_record_holds_none_up(alone: Worker, database: AsyncEngine) -> None:
    async with alone.running():
        for record in (request("r1"), request("r9", estimated_cost={"a": object()}), request("r2")):
            alone.journal.write(record)
        with pytest.raises((ValueError, UnloggedRequestError)):
            await alone.journal.write_durably(label("r9"))
    assert alone.counters.as_dict() == {"records_dropped": 2}
    found = [inbox.decode(each.records) for each in await inbox.waiting(database, 10)]
    assert [each.request_id for batch in found for each in batch] == ["r1", "r2"]  # type: ignore[union-attr]


def test_only_the_settings_that_the_fold_depends_on_must_be_equal(database: AsyncEngine) -> None:
    """The promises may differ: the log holds the alpha in force."""
    spool = Worker(database, build_zoo(alpha=0.9)).spool
    assert spool._see(published(build_engine(build_zoo(alpha=0.6)), 1))
