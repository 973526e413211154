"""The learner's loop: whatever fails, each batch is logged once, and the state is the fold."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import insert, select
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.learning import loop as module
from litellm_messplus.learning.loop import LearnerLoop
from litellm_messplus.records import Record
from litellm_messplus.store import inbox, log, snapshots
from litellm_messplus.store.inbox import DeposedError
from litellm_messplus.store.tables import deciders, labels, requests, worker_counters
from litellm_messplus.store.tables import inbox as table
from tests.support.builders import build_zoo, label, request, served_call, traffic
from tests.support.folding import bits, fold_all
from tests.support.learning import MemoryOutlet, counts, elected, learning, put
from tests.support.patience import until_it_holds

AWAY = OperationalError("INSERT", {}, Exception("the database is away"))
LOST = InterfaceError("COMMIT", {}, Exception(), connection_invalidated=True)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.01)


async def logged(database: AsyncEngine) -> list[str]:
    """The requests and labels in the log, each in its order."""
    async with database.connect() as connection:
        found = [
            (await connection.execute(select(column).order_by(column.table.c.position))).scalars()
            for column in (requests.c.request_id, labels.c.label_id)
        ]
        return [*found[0], *found[1]]


async def published(outlet: MemoryOutlet, **taken: int) -> None:
    """Until a state with all these batches is published."""
    await until_it_holds(lambda: outlet.published[-1].taken == taken)


async def is_the_fold(loop: LearnerLoop) -> bool:
    (engine,) = loop._engines.values()
    return bits(engine) == bits(await fold_all(loop._database, engine.zoo))


async def test_two_workers_batches_are_moved_folded_and_published(either: AsyncEngine) -> None:
    outlet = MemoryOutlet()
    async with learning(either, outlet=outlet) as loop:
        for number, record in enumerate(traffic(30), start=1):
            await put(either, "a", number, record)
            await put(either, "b", number, request(f"b{number}"))
        await published(outlet, a=number, b=number)

        assert await is_the_fold(loop)
        assert outlet.published[-1].position == await log.head(either) == 2 * number
        assert loop.counters.as_dict() == {}
    positions = [each.position for each in outlet.published]
    assert positions == sorted(positions)
    assert {each.epoch for each in outlet.published} == {1}


async def test_what_waits_at_a_start_and_at_a_stop_is_moved(either: AsyncEngine) -> None:
    await put(either, "a", 1, request("r1"))
    loop = await elected(either)
    await loop.begin()
    loop.stop()
    await loop.run()
    await loop.close()

    assert await counts(either) == (0, 1)


async def test_a_batch_whose_take_fails_is_moved_later_and_once(
    either: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is appended to in the same transaction, which is undone."""
    real, left = inbox.take, iter([AWAY, LOST])

    async def take(*arguments: Any) -> None:
        await real(*arguments)
        for error in left:
            raise error

    monkeypatch.setattr(inbox, "take", take)
    outlet = MemoryOutlet()
    async with learning(either, outlet=outlet) as loop:
        await put(either, "a", 1, request(), served_call(), label())
        await published(outlet, a=1)
        assert loop.counters.as_dict() == {"journal_failures": 2}
        assert await is_the_fold(loop)
    assert await logged(either) == ["r1", "label-r1-0"]


@pytest.mark.parametrize("when", ["commit", "fold"])
async def test_what_fails_after_the_commit_is_logged_once_and_published_as_taken(
    either: AsyncEngine, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """The answer to a commit is lost, or what was committed could not be read back."""
    outlet, left = MemoryOutlet(), iter([LOST])
    append = log.append

    async def broken_commit(*arguments: Any, **how: Any) -> log.Appended:
        appended = await append(*arguments, **how)
        if arguments[1]:
            for error in left:
                raise error
        return appended

    async with learning(either, outlet=outlet) as loop:
        if when == "commit":
            monkeypatch.setattr(log, "append", broken_commit)
        else:
            fold = loop.learner.fold_written

            async def broken_fold(*arguments: Any) -> None:
                for error in left:
                    raise error
                await fold(*arguments)

            monkeypatch.setattr(loop.learner, "fold_written", broken_fold)
        await put(either, "a", 1, request(), served_call(), label())
        await published(outlet, a=1)

        assert outlet.published[-1].position == 3
        assert await is_the_fold(loop)
    assert await logged(either) == ["r1", "label-r1-0"]
    assert loop.counters.as_dict() == {"journal_failures": 1}


@pytest.mark.parametrize("apart", [False, True], ids=["in one transaction", "in two"])
async def test_a_batch_sent_twice_is_logged_once(either: AsyncEngine, *, apart: bool) -> None:
    """Its commit's answer was lost at the worker, which sent it again with a later record."""
    outlet = MemoryOutlet()
    first: list[Record] = [request(), served_call(), label()]
    await put(either, "a", 1, *first)
    if not apart:
        await put(either, "a", 2, *first, request("r2"))
    async with learning(either, outlet=outlet) as loop:
        if apart:
            await published(outlet, a=1)
            await put(either, "a", 2, *first, request("r2"))
        await published(outlet, a=2)
        assert await is_the_fold(loop)
    assert await logged(either) == ["r1", "r2", "label-r1-0"]
    assert loop.counters.as_dict() == {}


async def test_what_cannot_be_written_is_dropped_and_the_rest_goes_on(either: AsyncEngine) -> None:
    outlet = MemoryOutlet()
    await put(either, "a", 1, request("r1"), request("r9", chosen=None), request("r2"))
    async with either.begin() as connection:
        await connection.execute(
            insert(table), [{"worker": "b", "number": 7, "records": b"not a batch"}]
        )
    await put(either, "a", 2, served_call("r1", completion_tokens=2**63), label("r9"))
    await put(either, "a", 3, request("r3"))
    async with learning(either, outlet=outlet) as loop:
        await published(outlet, a=3, b=7)
        assert await is_the_fold(loop)
        (engine,) = loop._engines.values()
        assert engine.state.requests["default"] == 3
    assert await logged(either) == ["r1", "r2", "r3"]
    assert loop.counters.as_dict() == {"records_dropped": 4}


async def test_a_batch_of_nothing_is_published_as_taken(either: AsyncEngine) -> None:
    """Though the position stays: its requests are in flight until then."""
    outlet = MemoryOutlet()
    async with learning(either, outlet=outlet):
        await put(either, "a", 1, request("r9", chosen=None))
        await published(outlet, a=1)
    assert outlet.published[-1].position == 0


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "with a batch"])
async def test_a_deposed_learner_ends_and_writes_nothing(
    either: AsyncEngine, monkeypatch: pytest.MonkeyPatch, *, busy: bool
) -> None:
    if not busy:
        monkeypatch.setattr(module, "COUNT_SECONDS", 0.0)
    loop = await elected(either, outlet=MemoryOutlet())
    await loop.begin()
    await inbox.elect(either, "another process", datetime.now(UTC))
    if busy:
        await put(either, "a", 1, request())

    with pytest.raises(DeposedError):
        await loop.run()

    await loop._tasks.close()
    await loop.learner.close(is_written=False)
    assert await counts(either) == (int(busy), 0)


async def test_a_state_that_cannot_be_published_is_published_later(either: AsyncEngine) -> None:
    outlet = MemoryOutlet()
    async with learning(either, outlet=outlet) as loop:
        outlet.fail = OSError(28, "No space left on device")
        await put(either, "a", 1, request())
        await until_it_holds(lambda: "journal_failures" in loop.counters.as_dict())
        assert await counts(either) == (0, 1)
        outlet.fail = None
        await published(outlet, a=1)


async def test_it_gives_signs_of_life_and_publishes_again_what_is_gone(
    database: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SIGN_SECONDS", 0.01)
    outlet = MemoryOutlet()
    async with learning(database, outlet=outlet):
        await until_it_holds(lambda: outlet.signs > 3)
        assert len(outlet.published) == 1
        outlet.is_gone = True
        await until_it_holds(lambda: len(outlet.published) == 2)


async def test_a_worker_that_comes_is_published_without_a_record(
    database: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "COUNT_SECONDS", 0.01)
    outlet = MemoryOutlet()
    now = datetime.now(UTC)
    async with learning(database, outlet=outlet):
        rows = [
            {"worker": each, "started_at": now, "updated_at": now, "counts": {}} for each in "abc"
        ]
        async with database.begin() as connection:
            await connection.execute(insert(worker_counters), rows)
        await until_it_holds(lambda: outlet.published[-1].workers == 3)


# Bounds


async def test_a_transaction_has_a_bounded_number_of_batches(
    database: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCHES", 3)
    appended: list[int] = []
    real = log.append

    async def append(engine: AsyncEngine, records: Sequence[Record], **how: Any) -> log.Appended:
        appended.append(len(records))
        return await real(engine, records, **how)

    for number in range(1, 9):
        await put(database, "a", number, request(f"r{number}"))
    monkeypatch.setattr(log, "append", append)
    outlet = MemoryOutlet()
    async with learning(database, outlet=outlet):
        await published(outlet, a=8)
    assert appended == [3, 3, 2]


async def test_a_stop_ends_it_however_many_batches_arrive(
    database: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What arrives after the stop is left to the next learner."""
    monkeypatch.setattr(module, "ROUNDS", 4)
    real, number = inbox.waiting, 0

    async def waiting(engine: AsyncEngine, most: int) -> list[inbox.Batch]:
        nonlocal number
        number += 1
        await put(engine, "busy", number, request(f"r{number}"))
        return await real(engine, most)

    monkeypatch.setattr(inbox, "waiting", waiting)
    loop = await elected(database)
    await loop.begin()
    loop.stop()
    await loop.run()
    await loop.close()

    assert await counts(database) == (0, 4)


async def test_workers_that_are_gone_are_forgotten_while_it_runs(
    database: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FORGET_SECONDS", 0.0)
    outlet = MemoryOutlet()
    long_ago = datetime(2020, 1, 1, tzinfo=UTC)
    async with learning(database, outlet=outlet):
        await put(database, "a", 5, request())
        await published(outlet, a=5)
        async with database.begin() as connection:
            await connection.execute(deciders.update().values(seen_at=long_ago))
        await published(outlet)


async def test_snapshots_are_kept_at_intervals_and_at_the_stop(
    database: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SNAPSHOT_SECONDS", 0.0)
    outlet, zoo = MemoryOutlet(), build_zoo()
    saved: list[int] = []
    real = snapshots.save

    async def save(engine: AsyncEngine, taken: snapshots.Snapshot) -> None:
        await real(engine, taken)
        saved.append(taken.position)

    monkeypatch.setattr(snapshots, "save", save)
    async with learning(database, zoo, outlet=outlet):
        await put(database, "a", 1, request())
        await until_it_holds(lambda: saved == [1])
        monkeypatch.setattr(module, "SNAPSHOT_SECONDS", 3600.0)
        await put(database, "a", 2, request("r2"))
        await published(outlet, a=2)
    assert saved == [1, 2]
