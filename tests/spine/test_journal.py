"""The journal: acknowledged is durable, nothing is lost, and the state is the fold of the log."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from sqlalchemy import delete, false, make_url, text
from sqlalchemy.exc import (
    DBAPIError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    SQLAlchemyError,
)
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus import backlog
from litellm_messplus import journal as module
from litellm_messplus.deciding.decider import Engine, Question
from litellm_messplus.errors import JournalFullError, UnloggedRequestError
from litellm_messplus.journal import Journal
from litellm_messplus.records import Record, RequestRecord
from litellm_messplus.restore import keep, restore
from litellm_messplus.runtime import Counters
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.state import snapshot
from litellm_messplus.store import log, notices, snapshots
from litellm_messplus.store import pruning as pruning
from litellm_messplus.store.database import create_engine
from litellm_messplus.store.entries import Kinds, decided, read_entries
from tests.support import failures
from tests.support.builders import build_engine, label, pair, point, request, served_call, traffic
from tests.support.folding import bits, fold_all, only_zoo, taught
from tests.support.patience import PATIENT, turns, until_it_holds

Append = Callable[[AsyncEngine, Sequence[Record]], Any]


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notices, "FOLLOW_SECONDS", 0.02)
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(module, "CLOSE_SECONDS", PATIENT)


@pytest.fixture
def counters() -> Counters:
    return Counters()


@pytest.fixture
def engine(zoo: Zoo) -> Engine:
    return build_engine(zoo)


def build(
    database: AsyncEngine,
    engine: Engine,
    counters: Counters | None = None,
    flush_seconds: float = 0.01,
    snapshot_every: int = 1_000_000,
    position: int = 0,
) -> Journal:
    return Journal(
        database,
        only_zoo(engine),
        counters or Counters(),
        store_text=False,
        flush_seconds=flush_seconds,
        snapshot_every=snapshot_every,
        position=position,
    )


@asynccontextmanager
async def running(journal: Journal) -> AsyncIterator[Journal]:
    journal.start()
    try:
        yield journal
    finally:
        await journal.close()


def seen_by_others(database: AsyncEngine, table: str) -> list[str]:
    """The primary keys that a connection of another process sees now, in log order."""
    path = make_url(str(database.url)).database
    assert path is not None
    connection = sqlite3.connect(path)
    try:
        rows = connection.execute(f"SELECT * FROM {table} ORDER BY position").fetchall()
        return [row[0] for row in rows]
    finally:
        connection.close()


async def reached(journal: Journal, position: int) -> None:
    await until_it_holds(lambda: journal.position >= position)


class AsyncpgError(Exception):
    """As SQLAlchemy's dialect hands asyncpg's on: a bare error with the server's SQLSTATE."""

    def __init__(self, sqlstate: str) -> None:
        super().__init__(f"error {sqlstate} of the server")
        self.sqlstate = self.pgcode = sqlstate


AWAY = OperationalError("INSERT", {}, Exception("the database is away"))


def failing(times: int, error: Exception = AWAY) -> Append:
    """An append to a database that is away for the first few attempts."""
    append, left = log.append, times

    async def away(database: AsyncEngine, records: Sequence[Record], **how: Any) -> log.Appended:
        nonlocal left
        if left > 0:
            left -= 1
            raise error
        return await append(database, records, **how)

    return away


# Writing


async def test_a_record_is_written_within_the_flush_interval(
    database: AsyncEngine, engine: Engine
) -> None:
    async with running(build(database, engine)) as journal:
        journal.write(request())
        assert seen_by_others(database, "requests") == []
        await reached(journal, 1)
        assert seen_by_others(database, "requests") == ["r1"]


async def test_records_handed_over_together_share_a_transaction(
    database: AsyncEngine, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[int] = []
    append = log.append

    async def counted(database: AsyncEngine, records: Sequence[Record], **how: Any) -> log.Appended:
        batches.append(len(records))
        return await append(database, records, **how)

    monkeypatch.setattr(log, "append", counted)
    monkeypatch.setattr(backlog, "BATCH", 4)
    async with running(build(database, engine)) as journal:
        for number in range(10):
            journal.write(request(f"r{number}"))
        await journal.flush()
    assert batches == [4, 4, 2]
    assert seen_by_others(database, "requests") == [f"r{number}" for number in range(10)]


async def test_what_is_written_durably_is_seen_by_another_connection_on_return(
    database: AsyncEngine, engine: Engine
) -> None:
    # A flush interval of an hour: only the durable write can have brought them in.
    async with running(build(database, engine, flush_seconds=3600)) as journal:
        journal.write(request())
        journal.write(served_call())
        async with asyncio.timeout(PATIENT):
            await journal.write_durably(label(value=0.0))
        assert seen_by_others(database, "requests") == ["r1"]
        assert seen_by_others(database, "calls") == ["r1.0"]
        assert seen_by_others(database, "labels") == ["label-r1-0"]
        assert engine.state.policy.queue("default") == 0.6


async def test_a_durable_write_does_not_return_before_the_commit(
    database: AsyncEngine, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, entered, let_go = log.append, asyncio.Event(), asyncio.Event()

    async def held(database: AsyncEngine, records: Sequence[Record], **how: Any) -> log.Appended:
        entered.set()
        await let_go.wait()
        return await append(database, records, **how)

    monkeypatch.setattr(log, "append", held)
    async with running(build(database, engine)) as journal:
        writing = asyncio.create_task(journal.write_durably(request()))
        async with asyncio.timeout(PATIENT):
            await entered.wait()
            await turns()
            assert not writing.done()
            assert bits(engine) == bits(build_engine(engine.zoo))
            let_go.set()
            await writing
        assert seen_by_others(database, "requests") == ["r1"]


async def test_a_client_that_hangs_up_does_not_take_its_label_along(
    database: AsyncEngine, engine: Engine
) -> None:
    async with running(build(database, engine)) as journal:
        journal.write(request())
        writing = asyncio.create_task(journal.write_durably(label()))
        await asyncio.sleep(0)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        await journal.flush()
    assert seen_by_others(database, "labels") == ["label-r1-0"]


async def test_flushing_nothing_returns_at_once(database: AsyncEngine, engine: Engine) -> None:
    async with asyncio.timeout(PATIENT):
        await build(database, engine).flush()  # not even started


async def test_the_state_is_the_fold_of_the_log(database: AsyncEngine, engine: Engine) -> None:
    async with running(build(database, engine)) as journal:
        for record in traffic(60):
            journal.write(record)
            if isinstance(record, RequestRecord) and record.request_id.endswith("0"):
                await journal.flush()
        await journal.flush()
        assert journal.position == await log.head(database)
    assert bits(engine) == bits(await fold_all(database, engine.zoo))
    assert bits(engine) != bits(build_engine(engine.zoo))
    assert taught(engine) != taught(build_engine(engine.zoo))
    assert engine.state.requests["gold"] + engine.state.requests["default"] == 60


async def test_a_request_counts_once_before_and_after_it_is_written(
    database: AsyncEngine, engine: Engine
) -> None:
    question = Question("r1", engine.zoo.levels["default"], point(0, 0), 0, engine.zoo.candidates)

    def t() -> int:
        return engine.situation(question).t

    async with running(build(database, engine)) as journal:
        engine.decide(question)
        journal.write(request())
        assert t() == 2
        await journal.flush()
        assert t() == 2


# A record that no database takes

UNWRITABLE = pytest.mark.parametrize(
    "bad",
    [
        request("r9", chosen=None),
        served_call("r2", role=None),
        served_call("r2", completion_tokens=2**63),
        served_call("r2", response_id={"not": "a text"}),
    ],
    ids=[
        "a request without a choice",
        "a missing value",
        "a number out of range",
        "a value of another type",
    ],
)


@UNWRITABLE
async def test_a_record_that_cannot_be_written_is_dropped_and_does_not_hold_up_the_others(
    database: AsyncEngine, engine: Engine, counters: Counters, bad: Record
) -> None:
    async with running(build(database, engine, counters)) as journal:
        journal.write(request("r1"))
        await journal.flush()
        for record in (request("r2"), bad, request("r3"), request("r4")):
            journal.write(record)
        async with asyncio.timeout(PATIENT):
            await journal.flush()
        assert seen_by_others(database, "requests") == ["r1", "r2", "r3", "r4"]
        assert seen_by_others(database, "calls") == []
        assert counters.as_dict()["records_dropped"] == 1
        assert await log.head(database) == journal.position == 4
    assert bits(engine) == bits(await fold_all(database, engine.zoo))


@UNWRITABLE
async def test_whoever_waits_for_a_record_that_cannot_be_written_is_told(
    database: AsyncEngine, engine: Engine, bad: Record
) -> None:
    async with running(build(database, engine)) as journal:
        journal.write(request("r1"))
        async with asyncio.timeout(PATIENT):
            with pytest.raises((SQLAlchemyError, OverflowError, AttributeError)):
                await journal.write_durably(bad)
            await journal.write_durably(request("r5"))
    assert seen_by_others(database, "requests") == ["r1", "r5"]


async def test_a_record_that_is_dropped_is_named_in_the_log_and_not_shown(
    database: AsyncEngine, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(build(database, engine)) as journal:
        for record in (request("r1"), request("r9", chosen=None, prompt="what a user wrote")):
            journal.write(record)
        await journal.flush()
    assert "dropped a RequestRecord" in caplog.text
    assert failures.OTHERWISE["records_dropped"] in caplog.text
    assert "what a user wrote" not in caplog.text


async def test_a_log_that_fails_says_so_without_the_words_that_were_to_be_written(
    database: AsyncEngine, engine: Engine, counters: Counters, caplog: pytest.LogCaptureFixture
) -> None:
    async with database.begin() as connection:
        await connection.execute(text("ALTER TABLE requests RENAME TO mislaid"))
    async with running(build(database, engine, counters)) as journal:
        journal.write(request("r1", prompt="what a user wrote"))
        await until_it_holds(lambda: "journal_failures" in counters.as_dict())
        async with database.begin() as connection:
            await connection.execute(text("ALTER TABLE mislaid RENAME TO requests"))
    assert "the log cannot be written" in caplog.text
    assert "what a user wrote" not in caplog.text


async def test_a_value_that_postgres_refuses_is_the_records_fault(
    database: AsyncEngine, engine: Engine, counters: Counters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Class 22, such as a text that is too long, comes as a bare DBAPIError from asyncpg."""
    append = log.append

    async def postgres(
        database: AsyncEngine, records: Sequence[Record], **how: Any
    ) -> log.Appended:
        requests = (each for each in records if isinstance(each, RequestRecord))
        if any(len(each.asker.litellm_call_id) > 255 for each in requests):
            raise DBAPIError("INSERT", {}, AsyncpgError("22001"))
        return await append(database, records, **how)

    monkeypatch.setattr(log, "append", postgres)
    async with running(build(database, engine, counters)) as journal:
        for record in (request("r1"), request("r2", litellm_call_id="x" * 256), request("r3")):
            journal.write(record)
        async with asyncio.timeout(PATIENT):
            await journal.flush()
    assert seen_by_others(database, "requests") == ["r1", "r3"]
    assert counters.as_dict() == {"records_dropped": 1}


async def test_a_request_that_was_dropped_gives_its_number_back(
    database: AsyncEngine, engine: Engine
) -> None:
    question = Question("r9", engine.zoo.levels["default"], point(0, 0), 0, engine.zoo.candidates)
    engine.decide(question)
    async with running(build(database, engine)) as journal:
        with pytest.raises(IntegrityError):
            await journal.write_durably(request("r9", chosen=None))
    assert engine.situation(question).t == 1


async def test_nothing_is_logged_about_a_request_that_was_dropped(
    database: AsyncEngine, engine: Engine, counters: Counters
) -> None:
    async with running(build(database, engine, counters)) as journal:
        journal.write(request("r9", chosen=None))
        journal.write(served_call("r9"))
        journal.write(request("r1"))
        with pytest.raises(UnloggedRequestError):
            await journal.write_durably(label("r9"))
        journal.write(served_call("r9", call_id="r9.1"))  # and of what comes later, nothing either
        await journal.flush()
    assert counters.as_dict() == {"records_dropped": 4}
    assert seen_by_others(database, "requests") == ["r1"]
    assert seen_by_others(database, "calls") == seen_by_others(database, "labels") == []


async def test_a_verdict_on_a_request_that_the_full_backlog_dropped_is_refused(
    database: AsyncEngine, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = build(database, engine)
    with monkeypatch.context() as full:
        full.setattr(backlog, "LONGEST", 1)
        journal.write(request("r1"))
        journal.write(request("r2"))
    async with running(journal):
        with pytest.raises(UnloggedRequestError):
            await journal.write_durably(label("r2"))
        await journal.write_durably(label("r1"))
    assert seen_by_others(database, "labels") == ["label-r1-0"]


async def test_the_requests_that_were_dropped_are_remembered_within_a_bound(
    database: AsyncEngine, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "LONGEST", 0)
    monkeypatch.setattr(module, "REMEMBERED", 3)
    journal = build(database, engine)
    for number in range(10):
        journal.write(request(f"r{number}"))
    assert list(journal._unlogged) == ["r7", "r8", "r9"]


async def test_what_was_committed_though_the_answer_was_lost_is_acknowledged(
    database: AsyncEngine, engine: Engine, counters: Counters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that breaks in the commit: the records are there, and come a second time."""
    append, broken_commits = log.append, 1

    async def broken(database: AsyncEngine, records: Sequence[Record], **how: Any) -> log.Appended:
        nonlocal broken_commits
        appended = await append(database, records, **how)
        if broken_commits:
            broken_commits -= 1
            raise InterfaceError("COMMIT", {}, Exception("closed"), connection_invalidated=True)
        return appended

    monkeypatch.setattr(log, "append", broken)
    async with running(build(database, engine, counters)) as journal:
        journal.write(request())
        await journal.write_durably(label())
        await journal.write_durably(label(label_id="later"))
        await reached(journal, 3)
    assert counters.as_dict() == {"journal_failures": 1}
    assert seen_by_others(database, "labels") == ["label-r1-0", "later"]
    assert bits(engine) == bits(await fold_all(database, engine.zoo))


async def test_a_full_backlog_drops_and_counts_what_comes_on_top(
    database: AsyncEngine, engine: Engine, counters: Counters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "LONGEST", 2)
    journal = build(database, engine, counters)
    for number in range(5):
        journal.write(request(f"r{number}"))
    assert counters.as_dict() == {"records_dropped": 3}
    async with running(journal):
        await journal.flush()
        assert seen_by_others(database, "requests") == ["r0", "r1"]


async def test_a_label_that_the_full_backlog_drops_is_not_acknowledged(
    database: AsyncEngine, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "LONGEST", 1)
    async with running(build(database, engine)) as journal:
        journal.write(request())
        async with asyncio.timeout(PATIENT):
            with pytest.raises(JournalFullError):
                await journal.write_durably(label())
    assert seen_by_others(database, "labels") == []


# The database is away


@pytest.mark.parametrize("times", [1, 4])
@pytest.mark.parametrize(
    "error",
    [
        AWAY,
        ConnectionRefusedError(),
        TimeoutError(),
        DBAPIError("INSERT", {}, AsyncpgError("25006")),
        DBAPIError("INSERT", {}, AsyncpgError("53100")),
        DBAPIError("INSERT", {}, AsyncpgError("40P01")),
        InterfaceError("INSERT", {}, Exception("closed"), connection_invalidated=True),
    ],
    ids=[
        "SQLite's lock",
        "refused",
        "too slow",
        "a Postgres standby that is read-only",
        "a Postgres with a full disk",
        "a Postgres deadlock",
        "a connection that broke",
    ],
)
async def test_nothing_is_lost_while_the_database_is_away(
    database: AsyncEngine,
    engine: Engine,
    counters: Counters,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    times: int,
) -> None:
    monkeypatch.setattr(log, "append", failing(times, error))
    records = traffic(20)
    async with running(build(database, engine, counters)) as journal:
        for record in records:
            journal.write(record)
        async with asyncio.timeout(PATIENT):
            await journal.write_durably(label("r1", 0.0, label_id="last"))
    assert counters.as_dict() == {"journal_failures": times}
    assert await log.head(database) == len(records) + 1
    assert bits(engine) == bits(await fold_all(database, engine.zoo))


async def test_nothing_is_lost_while_others_hold_every_connection(
    database: AsyncEngine,
    engine: Engine,
    counters: Counters,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Clients whose look-ups wait for a database that hangs, each with a connection."""
    monkeypatch.setattr(database.sync_engine.pool, "_timeout", 0.01)
    async with running(build(database, engine, counters)) as journal:
        async with AsyncExitStack() as others:
            for _ in range(15):
                await others.enter_async_context(database.connect())
            journal.write(request("r1"))
            journal.write(request("r2"))
            await until_it_holds(lambda: "journal_failures" in counters.as_dict())
        async with asyncio.timeout(PATIENT):
            await journal.flush()
    assert seen_by_others(database, "requests") == ["r1", "r2"]
    assert "records_dropped" not in counters.as_dict()


async def test_a_state_that_could_not_be_folded_at_once_is_folded_later(
    database: AsyncEngine, engine: Engine, counters: Counters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written but not read back: the label is acknowledged, for it is durable."""
    times = 0

    async def away(
        database: AsyncEngine, after: int, upto: int, kinds: Kinds
    ) -> AsyncIterator[Any]:
        nonlocal times
        times += 1
        if times <= 2:
            raise OperationalError("SELECT", {}, Exception("the database is away"))
        async for entry in read_entries(database, after, upto, kinds):
            yield entry

    monkeypatch.setattr(module, "read_entries", away)
    async with running(build(database, engine, counters)) as journal:
        journal.write(request())
        async with asyncio.timeout(PATIENT):
            await journal.write_durably(label(value=0.0))
        assert seen_by_others(database, "labels") == ["label-r1-0"]
        await reached(journal, 2)
    assert bits(engine) == bits(await fold_all(database, engine.zoo))
    assert engine.state.policy.queue("default") == 0.6


async def test_an_entry_that_cannot_be_folded_is_counted_and_passed_over(
    database: AsyncEngine, engine: Engine, counters: Counters, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = request("r1", features=pair(1, 0)[:1])  # of another dimension under the same name
    async with running(build(database, engine, counters)) as journal:
        for record in (wrong, served_call("r1"), label("r1", 0.6), request("r2"), label("r2", 0.0)):
            journal.write(record)
        await journal.flush()
        assert counters.as_dict() == {"fold_failures": 2}  # its call and its label
        assert failures.OTHERWISE["fold_failures"] in caplog.text
        assert journal.position == 5
    assert engine.state.policy.queue("default") == 0.6


async def test_a_zoo_that_is_configured_no_more_is_passed_over(
    database: AsyncEngine, engine: Engine, counters: Counters
) -> None:
    await log.append(database, traffic(3, zoo="removed"))
    async with running(build(database, engine, counters)) as journal:
        await journal.write_durably(request("mine"))
        assert journal.position == await log.head(database)
    assert counters.as_dict() == {}
    assert engine.state.requests["default"] == 1


# Two workers on one database


async def test_two_workers_end_in_the_same_state(
    database: AsyncEngine, database_url: str, zoo: Zoo
) -> None:
    """And in that of a third, which starts afterwards."""
    databases = [database, create_engine(database_url)]
    engines = [build_engine(zoo), build_engine(zoo)]
    both = asyncio.Barrier(2)

    async def work(journal: Journal, prefix: str) -> None:
        for number, record in enumerate(traffic(40, prefix=prefix)):
            journal.write(record)
            if number % 7 == 0:
                await journal.flush()
                await both.wait()  # SQLite's lock is not fair
            elif number % 3 == 0:
                await asyncio.sleep(0)
        await journal.flush()

    first, second = (build(*each) for each in zip(databases, engines, strict=True))
    async with running(first), running(second):
        await asyncio.gather(work(first, "a"), work(second, "b"))
        head = await log.head(database)
        await reached(first, head)
        await reached(second, head)
    third = build_engine(zoo)
    assert await restore(database, only_zoo(third)) == head
    assert bits(engines[0]) == bits(engines[1]) == bits(third)
    assert bits(third) == bits(await fold_all(database, zoo))
    await databases[1].dispose()

    order = [request_id[0] for request_id in seen_by_others(database, "requests")]
    assert sum(a != b for a, b in pairwise(order)) > 1, "they took no turns"


async def test_an_idle_worker_follows_what_others_write(
    database: AsyncEngine, engine: Engine
) -> None:
    async with running(build(database, engine)) as journal:
        await log.append(database, [request(), label(value=0.0)])
        await reached(journal, 2)
        assert engine.state.policy.queue("default") == 0.6
        assert engine.state.requests["default"] == 1


# Closing, and snapshots


async def test_closing_writes_everything_and_takes_a_snapshot(
    database: AsyncEngine, engine: Engine
) -> None:
    journal = build(database, engine, flush_seconds=3600)
    journal.start()
    records = traffic(20)
    for record in records:
        journal.write(record)
    async with asyncio.timeout(PATIENT):
        await journal.close()
    assert await log.head(database) == len(records)
    taken = await newest_snapshot(database, engine)
    assert taken is not None
    assert taken.position == len(records)
    assert taken.state == bits(engine) == bits(await fold_all(database, engine.zoo))


async def test_closing_waits_for_a_database_that_comes_back(
    database: AsyncEngine, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "append", failing(3))
    async with running(build(database, engine)) as journal:
        journal.write(request())
    assert seen_by_others(database, "requests") == ["r1"]


async def test_closing_does_not_wait_for_ever_and_says_what_it_leaves(
    database: AsyncEngine,
    engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(module, "CLOSE_SECONDS", 0.1)
    monkeypatch.setattr(log, "append", failing(1_000_000))
    async with asyncio.timeout(PATIENT), running(build(database, engine)) as journal:
        journal.write(request())
        journal.write(served_call())
    assert "closed with 2 records unwritten" in caplog.text


async def test_a_snapshot_that_cannot_be_taken_does_not_stop_the_shutdown(
    database: AsyncEngine, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a cache: the log is whole without it, and LiteLLM has more to shut down after us."""

    async def away(*_: object) -> None:
        raise OperationalError("INSERT", {}, Exception("the database is away"))

    monkeypatch.setattr(snapshots, "save", away)
    journal = build(database, engine)
    journal.start()
    journal.write(request())
    await journal.close()
    assert seen_by_others(database, "requests") == ["r1"]


async def test_a_snapshot_is_taken_when_enough_was_folded(
    database: AsyncEngine, engine: Engine
) -> None:
    async with running(build(database, engine, snapshot_every=10)) as journal:
        for number in range(9):
            await journal.write_durably(request(f"r{number}"))
        assert await newest_snapshot(database, engine) is None
        await journal.write_durably(request("r9"))
        async with asyncio.timeout(PATIENT):
            while (taken := await newest_snapshot(database, engine)) is None:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        assert taken.position == 10
        assert taken.state == bits(engine)


async def test_a_snapshot_that_another_worker_takes_at_the_same_moment_is_no_failure(
    database: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Postgres, where neither sees, to take it away, what the other has yet to commit."""
    taken = snapshots.Snapshot("zoo", 7, "print", b"state")
    await snapshots.save(database, taken)
    monkeypatch.setattr(snapshots, "delete", lambda table: delete(table).where(false()))
    await snapshots.save(database, taken)
    assert await snapshots.newest(database, "zoo", "print") == taken


async def test_only_the_newest_snapshots_are_kept(database: AsyncEngine, engine: Engine) -> None:
    for position in (3, 1, 7, 5, 7, 9):
        state = f"state at {position}".encode()
        await snapshots.save(database, snapshots.Snapshot("zoo", position, "print", state))
    await snapshots.save(database, snapshots.Snapshot("other", 1, "print", b"other"))
    async with database.connect() as connection:
        found = await connection.exec_driver_sql(
            "SELECT zoo, position FROM snapshots ORDER BY 1, 2"
        )
        assert list(map(tuple, found)) == [("other", 1), ("zoo", 5), ("zoo", 7), ("zoo", 9)]
    taken = await snapshots.newest(database, "zoo", "print")
    assert taken == snapshots.Snapshot("zoo", 9, "print", b"state at 9")
    assert await snapshots.newest(database, "zoo", "another print") is None


async def newest_snapshot(database: AsyncEngine, engine: Engine) -> snapshots.Snapshot | None:
    fingerprint = snapshot.fingerprint(engine.zoo, engine.encoder.name)
    return await snapshots.newest(database, engine.zoo.name, fingerprint)


async def test_a_worker_that_a_prune_has_overtaken_goes_on_from_the_base(
    database: AsyncEngine, database_url: str, zoo: Zoo, counters: Counters
) -> None:
    """It was away while others wrote, and what it had yet to read is gone."""
    engine, ahead = build_engine(zoo), build_engine(zoo)
    await log.append(database, traffic(20))
    position = await restore(database, only_zoo(ahead))
    await keep(database, ahead, position)
    await pruning.move_start(database, await pruning.find_cut(database, datetime.now(UTC)))
    async with database.begin() as connection:
        for table in ("requests", "calls", "labels", "snapshots"):
            await connection.exec_driver_sql(f"DELETE FROM {table}")
    async with running(build(database, engine, counters)) as journal:
        journal.write(request("new", expected_t=21))
        await journal.flush()
        ahead.apply(decided(request("new", expected_t=21), position + 1))
        assert bits(engine) == bits(ahead)
        assert journal.position == position + 1
    assert counters.as_dict() == {"restored_after_pruning": 1}
