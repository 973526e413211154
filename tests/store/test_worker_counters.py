"""What all workers counted: no sum falls, nothing is counted twice, and the rows do not grow."""

import asyncio
import tempfile
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import func, select, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.brain import shared_counters
from litellm_messplus.brain.shared_counters import MEASURED, SharedCounters, below, counters_of
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.tasks import Periodic
from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.store.tables import worker_counters
from litellm_messplus.store.worker_counters import ENDED, SILENT, WorkerCounters, running
from tests.support.patience import PATIENT

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
SECOND = timedelta(seconds=1)


async def workers_known(database: AsyncEngine) -> int:
    query = select(func.count()).where(worker_counters.c.worker != ENDED)
    async with database.connect() as connection:
        return int((await connection.execute(query)).scalar_one())


async def test_those_with_a_sign_of_life_within_a_minute_run(database: AsyncEngine) -> None:
    async with database.connect() as connection:
        assert await running(connection, NOW) == 1  # the one that asks has no row yet
    for worker in ("a", "b", "c"):
        await WorkerCounters(database, worker).exchange({}, NOW)

    async with database.connect() as connection:
        assert await running(connection, NOW) == 3
        assert await running(connection, NOW + SILENT + SECOND) == 1


async def test_the_sum_is_over_all_workers(database: AsyncEngine) -> None:
    first, second = WorkerCounters(database, "first"), WorkerCounters(database, "second")
    await first.exchange({"a": 6}, NOW)
    sums = await second.exchange({"a": 2, "b": 1}, NOW)

    assert sums.everyone == sums.running == {"a": 8, "b": 1}
    assert (await first.exchange({"a": 7}, NOW)).everyone == {"a": 9, "b": 1}


async def test_what_a_worker_counted_that_is_gone_stays_in_the_sum(database: AsyncEngine) -> None:
    killed, stopped, stays = (WorkerCounters(database, name) for name in ("k", "s", "t"))
    await stays.exchange({"a": 1}, NOW)
    await killed.exchange({"a": 10}, NOW)
    await stopped.exchange({"a": 50}, NOW)
    await stopped.end({"a": 100}, NOW)
    later = await stays.exchange({"a": 1}, NOW + SILENT)
    assert (later.everyone, later.running) == ({"a": 111}, {"a": 11})

    much_later = await stays.exchange({"a": 2}, NOW + SILENT + SECOND)
    assert (much_later.everyone, much_later.running) == ({"a": 112}, {"a": 2})


async def test_a_worker_taken_for_gone_is_counted_once(database: AsyncEngine) -> None:
    slow, other = WorkerCounters(database, "slow"), WorkerCounters(database, "other")
    await slow.exchange({"a": 5}, NOW)
    await other.exchange({}, NOW)
    for round_ in range(1, 4):
        moment = NOW + round_ * (SILENT + SECOND)
        assert (await other.exchange({}, moment)).everyone["a"] == 5 + round_ - 1
        assert (await slow.exchange({"a": 5 + round_}, moment)).everyone == {"a": 5 + round_}


async def test_a_start_where_no_worker_runs_begins_at_zero(database: AsyncEngine) -> None:
    """As a proxy of one worker does, without this table."""
    before = WorkerCounters(database, "before")
    await before.exchange({"a": 5}, NOW)
    await before.end({"a": 5}, NOW)

    assert (await WorkerCounters(database, "after").exchange({"b": 1}, NOW)).everyone == {"b": 1}


async def test_workers_that_come_and_go_leave_no_rows(database: AsyncEngine) -> None:
    stays = WorkerCounters(database, "stays")
    for number in range(30):
        moment = NOW + number * SILENT
        await stays.exchange({"a": 1}, moment)
        await WorkerCounters(database, f"killed-{number}").exchange({"a": 1}, moment)

    assert await workers_known(database) <= 3
    assert (await stays.exchange({"a": 1}, NOW + 30 * SILENT)).everyone == {"a": 31}


async def test_savers_at_once_take_turns(database: AsyncEngine, database_url: str) -> None:
    """Each finds the same silent worker, and one of them adds it."""
    engines = [create_engine(database_url) for _ in range(4)]
    await WorkerCounters(database, "stays").exchange({"a": 1}, NOW)
    await WorkerCounters(database, "killed").exchange({"a": 10}, NOW - 2 * SILENT)
    workers = [WorkerCounters(engine, str(n)) for n, engine in enumerate(engines)]
    await asyncio.gather(*(worker.exchange({"a": 100}, NOW) for worker in workers))
    for engine in engines:
        await engine.dispose()

    assert (await WorkerCounters(database, "another").exchange({}, NOW)).everyone == {"a": 411}


@given(
    steps=st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(["count", "kill", "stop", "wait"])),
        max_size=25,
    )
)
def test_no_sum_falls_and_none_is_more_than_was_counted(steps: list[tuple[int, str]]) -> None:
    asyncio.run(_lives(steps))


async def _lives(steps: list[tuple[int, str]]) -> None:
    """Of three workers and one that stays: each counts, is replaced, or is silent for long."""
    with tempfile.TemporaryDirectory() as folder:
        database = create_engine(f"sqlite+aiosqlite:///{folder}/messplus.db")
        await migrate(database)
        stays = WorkerCounters(database, "stays")
        await stays.exchange({}, NOW)
        moment, born, shown, counted = NOW, 3, 0.0, 0
        workers = [WorkerCounters(database, str(n)) for n in range(3)]
        own = [0, 0, 0]
        for place, step in steps:
            moment += SECOND
            if step == "count":
                own[place] += 1
                counted += 1
                await workers[place].exchange({"a": own[place]}, moment)
            elif step == "wait":
                moment += SILENT
            else:
                if step == "stop":
                    await workers[place].end({"a": own[place]}, moment)
                workers[place], own[place] = WorkerCounters(database, str(born)), 0
                born += 1
            now = (await stays.exchange({}, moment)).everyone.get("a", 0)
            assert shown <= now == counted
            shown = now
        await database.dispose()


# In the proxy


class Running(SharedCounters):
    """The counters of a worker that runs, with the job that saves them."""

    def __init__(self, database: AsyncEngine, own: Counters) -> None:
        super().__init__(database, own, lambda: {"prompts": 2.0})
        self._jobs = Periodic(own)
        self.start(self._jobs)

    async def close(self) -> None:
        await self._jobs.close()
        await super().close()


def counted(times: int) -> Counters:
    own = Counters()
    for _ in range(times):
        own.add("features_late")
    return own


async def test_each_worker_shows_what_all_counted_up_to_now(
    database: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_counters, "SAVE_SECONDS", 3600.0)  # only who asks saves
    owns = [counted(6), counted(2)]
    workers = [Running(database, own) for own in owns]
    shown = [0]
    for turn in range(6):
        shown.append(counters_of((await workers[turn % 2].sums()).everyone)["features_late"])
        owns[turn % 2].add("features_late")
    for worker in workers:
        shown.append(counters_of((await worker.sums()).everyone)["features_late"])
        await worker.close()

    assert shown == sorted(shown)
    assert shown[-1] == 6 + 2 + 6


async def test_what_the_encoders_did_is_a_sum_too(database: AsyncEngine) -> None:
    workers = [Running(database, Counters()) for _ in range(2)]
    for worker in workers:
        await worker.sums()
    assert below((await workers[0].sums()).everyone, MEASURED) == {"prompts": 4.0}
    for worker in workers:
        await worker.close()


async def test_without_a_database_a_worker_shows_its_own_and_what_it_knew(
    database: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_counters, "SAVE_SECONDS", 3600.0)
    here, there = Running(database, own := counted(1)), Running(database, counted(2))
    await there.sums()
    assert (await here.sums()).everyone["features_late"] == 3

    async def away(*arguments: object) -> None:
        raise OperationalError("UPDATE", {}, Exception("the database is away"))

    monkeypatch.setattr(WorkerCounters, "exchange", away)
    own.add("features_late")
    found = counters_of((await here.sums()).everyone)
    assert found == {"counters_unsaved": 1, "features_late": 4}
    monkeypatch.undo()
    await here.close()
    await there.close()


async def test_a_database_that_hangs_delays_nothing(
    database: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_counters, "ANSWER_SECONDS", 0.05)

    async def hanging(*arguments: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(WorkerCounters, "exchange", hanging)
    worker = Running(database, counted(1))
    found = await asyncio.gather(*(worker.sums() for _ in range(5)))
    assert all(counters_of(each.everyone)["features_late"] == 1 for each in found)
    await worker.close()


async def test_a_worker_whose_database_is_awaited_shows_its_own(database: AsyncEngine) -> None:
    waiting = SharedCounters(database, counted(3), dict)
    assert counters_of((await waiting.sums()).everyone) == {"features_late": 3}
    await waiting.close()
    assert await workers_known(database) == 0


async def test_what_is_counted_is_saved_without_a_query(
    database: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_counters, "SAVE_SECONDS", 0.02)
    worker = Running(database, own := counted(1))
    for expected in (1, 2):
        async with asyncio.timeout(PATIENT):
            while await saved(database) != expected:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0.01)
        own.add("features_late")
    await worker.close()


async def saved(database: AsyncEngine) -> int | None:
    query = text("SELECT counts ->> 'features_late' FROM worker_counters WHERE worker <> 'ended'")
    async with database.connect() as connection:
        return (await connection.execute(query)).scalar_one_or_none()
