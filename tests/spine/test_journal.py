"""The journal: acknowledged is durable, nothing is lost, and the state is the fold of the log."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
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
from litellm_messplus.core import snapshot
from litellm_messplus.core.engine import Engine, Question
from litellm_messplus.journal import Journal
from litellm_messplus.learning import learner
from litellm_messplus.records import Record, RequestRecord
from litellm_messplus.restore import restore
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.errors import JournalFullError, UnloggedRequestError
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.store import log, snapshots
from litellm_messplus.store.database import create_engine
from litellm_messplus.store.entries import Kinds, read_entries
from litellm_messplus.store.snapshots import Snapshot
from tests.support import failures
from tests.support.builders import build_engine, label, pair, point, request, served_call, traffic
from tests.support.folding import bits, build_journal, fold_all, only_zoo, taught
from tests.support.patience import PATIENT, turns, until_it_holds

AWAY = OperationalError("INSERT", {}, Exception("the database is away"))
Append = Callable[[Sequence[Record]], Awaitable[log.Appended]]


@dataclass
class Worker:
    """One process with a journal: its database, its engine, and what it counted."""

    database: AsyncEngine
    engine: Engine
    patch: pytest.MonkeyPatch
    counters: Counters = field(default_factory=Counters)

    def journal(self, **how: Any) -> Journal:
        return build_journal(self.database, self.engine, self.counters, **how)

    @asynccontextmanager
    async def running(self, journal: Journal | None = None, **how: Any) -> AsyncIterator[Journal]:
        journal = journal or self.journal(**how)
        journal.start()
        try:
            async with asyncio.timeout(PATIENT):
                yield journal
        finally:
            await journal.close()

    def logged(self, table: str) -> list[str]:
        """The primary keys that a connection of another process sees now, in log order."""
        with closing(sqlite3.connect(make_url(str(self.database.url)).database or "")) as other:
            rows = other.execute(f"SELECT * FROM {table} ORDER BY position").fetchall()
        return [row[0] for row in rows]

    async def is_the_fold(self) -> bool:
        return bits(self.engine) == bits(await fold_all(self.database, self.engine.zoo))

    def append_by(self, how: Callable[[Append, Sequence[Record]], Awaitable[log.Appended]]) -> None:
        """Append in another way, which is handed the usual one."""
        real = log.append

        async def append(
            database: AsyncEngine, records: Sequence[Record], **given: Any
        ) -> log.Appended:
            return await how(lambda some: real(database, some, **given), records)

        self.patch.setattr(log, "append", append)

    def fail_appends(self, times: int, error: Exception = AWAY) -> None:
        """Let the database be away for the first few attempts."""
        left = iter(range(times))

        async def away(append: Append, records: Sequence[Record]) -> log.Appended:
            if next(left, None) is not None:
                raise error
            return await append(records)

        self.append_by(away)

    async def newest_snapshot(self) -> Snapshot | None:
        fingerprint = snapshot.fingerprint(self.engine.zoo, self.engine.encoder.name)
        return await snapshots.newest(self.database, self.engine.zoo.name, fingerprint)

    def question(self, request_id: str) -> Question:
        zoo = self.engine.zoo
        return Question(request_id, zoo.levels["default"], point(0, 0), 0, zoo.candidates)


@pytest.fixture
def worker(database: AsyncEngine, zoo: Zoo, monkeypatch: pytest.MonkeyPatch) -> Worker:
    monkeypatch.setattr(learner, "FOLLOW_SECONDS", 0.02)
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(module, "CLOSE_SECONDS", PATIENT)
    return Worker(database, build_engine(zoo), monkeypatch)


async def reached(journal: Journal, position: int) -> None:
    await until_it_holds(lambda: journal.position >= position)


def write(journal: Journal, *records: Record) -> None:
    for record in records:
        journal.write(record)


# Writing


async def test_a_record_is_written_within_the_flush_interval(worker: Worker) -> None:
    async with worker.running() as journal:
        journal.write(request())
        assert worker.logged("requests") == []
        await reached(journal, 1)
        assert worker.logged("requests") == ["r1"]


async def test_records_handed_over_together_share_a_transaction(worker: Worker) -> None:
    batches: list[int] = []

    async def counted(append: Append, records: Sequence[Record]) -> log.Appended:
        batches.append(len(records))
        return await append(records)

    worker.append_by(counted)
    worker.patch.setattr(backlog, "BATCH", 4)
    names = [f"r{number}" for number in range(10)]
    async with worker.running() as journal:
        write(journal, *map(request, names))
        await journal.flush()
    assert batches == [4, 4, 2]
    assert worker.logged("requests") == names


async def test_what_is_written_durably_is_seen_elsewhere_on_return(worker: Worker) -> None:
    # A flush interval of an hour: only the durable write can have brought them in.
    async with worker.running(flush_seconds=3600) as journal:
        write(journal, request(), served_call())
        await journal.write_durably(label(value=0.0))
        found = [*map(worker.logged, ("requests", "calls", "labels"))]
        assert found == [["r1"], ["r1.0"], ["label-r1-0"]]
        assert worker.engine.state.policy.queue("default") == 0.6


async def test_a_durable_write_does_not_return_before_the_commit(worker: Worker) -> None:
    entered, let_go = asyncio.Event(), asyncio.Event()

    async def held(append: Append, records: Sequence[Record]) -> log.Appended:
        entered.set()
        await let_go.wait()
        return await append(records)

    worker.append_by(held)
    async with worker.running() as journal:
        writing = asyncio.create_task(journal.write_durably(request()))
        await entered.wait()
        await turns()
        assert not writing.done()
        assert bits(worker.engine) == bits(build_engine(worker.engine.zoo))
        let_go.set()
        await writing
        assert worker.logged("requests") == ["r1"]


async def test_a_client_that_hangs_up_does_not_take_its_label_along(worker: Worker) -> None:
    async with worker.running() as journal:
        journal.write(request())
        writing = asyncio.create_task(journal.write_durably(label()))
        await asyncio.sleep(0)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        await journal.flush()
    assert worker.logged("labels") == ["label-r1-0"]


async def test_flushing_nothing_returns_at_once(worker: Worker) -> None:
    async with asyncio.timeout(PATIENT):
        await worker.journal().flush()  # not even started


async def test_the_state_is_the_fold_of_the_log(worker: Worker) -> None:
    engine, new = worker.engine, build_engine(worker.engine.zoo)
    async with worker.running() as journal:
        for record in traffic(60):
            journal.write(record)
            if isinstance(record, RequestRecord) and record.request_id.endswith("0"):
                await journal.flush()
        await journal.flush()
        assert journal.position == await log.head(worker.database)
    assert await worker.is_the_fold()
    assert bits(engine) != bits(new)
    assert taught(engine) != taught(new)
    assert engine.state.requests["gold"] + engine.state.requests["default"] == 60


async def test_a_request_counts_once_before_and_after_it_is_written(worker: Worker) -> None:
    question = worker.question("r1")
    async with worker.running() as journal:
        worker.engine.decide(question)
        journal.write(request())
        assert worker.engine.situation(question).t == 2
        await journal.flush()
        assert worker.engine.situation(question).t == 2


# A record that no database takes


@pytest.mark.parametrize(
    "bad",
    [
        request("r9", chosen=None),
        served_call("r2", role=None),
        served_call("r2", completion_tokens=2**63),
        served_call("r2", response_id={"not": "a text"}),
    ],
    ids=["a request without a choice", "a missing value", "out of range", "of another type"],
)
async def test_an_unwritable_record_holds_no_other_up(worker: Worker, bad: Record) -> None:
    """And those who wait for one get an error."""
    async with worker.running() as journal:
        journal.write(request("r1"))
        await journal.flush()
        write(journal, request("r2"), bad, request("r3"), request("r4"))
        await journal.flush()
        assert worker.logged("requests") == ["r1", "r2", "r3", "r4"]
        assert worker.counters.as_dict()["records_dropped"] == 1
        assert await log.head(worker.database) == journal.position == 4
        with pytest.raises((SQLAlchemyError, OverflowError, AttributeError, UnloggedRequestError)):
            await journal.write_durably(bad)
        await journal.write_durably(request("r5"))
    assert worker.logged("requests")[-1] == "r5"
    assert worker.logged("calls") == []
    assert await worker.is_the_fold()


async def test_a_record_that_is_dropped_is_named_in_the_log_and_not_shown(
    worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    async with worker.running() as journal:
        write(journal, request("r1"), request("r9", chosen=None, prompt="what a user wrote"))
        await journal.flush()
    assert "dropped a RequestRecord" in caplog.text
    assert failures.OTHERWISE["records_dropped"] in caplog.text
    assert "what a user wrote" not in caplog.text


async def test_a_log_that_fails_says_so_without_the_words_that_were_to_be_written(
    worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    async with worker.database.begin() as connection:
        await connection.execute(text("ALTER TABLE requests RENAME TO mislaid"))
    async with worker.running() as journal:
        journal.write(request("r1", prompt="what a user wrote"))
        await until_it_holds(lambda: "journal_failures" in worker.counters.as_dict())
        async with worker.database.begin() as connection:
            await connection.execute(text("ALTER TABLE mislaid RENAME TO requests"))
    assert "the log cannot be written" in caplog.text
    assert "what a user wrote" not in caplog.text


class AsyncpgError(Exception):
    """As SQLAlchemy's dialect hands asyncpg's on: a bare error with the server's SQLSTATE."""

    def __init__(self, sqlstate: str) -> None:
        super().__init__(f"error {sqlstate} of the server")
        self.sqlstate = self.pgcode = sqlstate


async def test_a_value_that_postgres_refuses_is_the_records_fault(worker: Worker) -> None:
    """Class 22, such as a text that is too long, comes as a bare DBAPIError from asyncpg."""

    async def postgres(append: Append, records: Sequence[Record]) -> log.Appended:
        requests = (each for each in records if isinstance(each, RequestRecord))
        if any(len(each.asker.litellm_call_id) > 255 for each in requests):
            raise DBAPIError("INSERT", {}, AsyncpgError("22001"))
        return await append(records)

    worker.append_by(postgres)
    async with worker.running() as journal:
        write(journal, request("r1"), request("r2", litellm_call_id="x" * 256), request("r3"))
        await journal.flush()
    assert worker.logged("requests") == ["r1", "r3"]
    assert worker.counters.as_dict() == {"records_dropped": 1}


async def test_a_request_that_was_dropped_gives_its_number_back(worker: Worker) -> None:
    question = worker.question("r9")
    worker.engine.decide(question)
    async with worker.running() as journal:
        with pytest.raises(IntegrityError):
            await journal.write_durably(request("r9", chosen=None))
    assert worker.engine.situation(question).t == 1


async def test_nothing_is_logged_about_a_request_that_was_dropped(worker: Worker) -> None:
    async with worker.running() as journal:
        write(journal, request("r9", chosen=None), served_call("r9"), request("r1"))
        with pytest.raises(UnloggedRequestError):
            await journal.write_durably(label("r9"))
        journal.write(served_call("r9", call_id="r9.1"))  # and of what comes later, nothing either
        await journal.flush()
    assert worker.counters.as_dict() == {"records_dropped": 4}
    found = [*map(worker.logged, ("requests", "calls", "labels"))]
    assert found == [["r1"], [], []]


async def test_a_verdict_on_a_dropped_request_is_refused(worker: Worker) -> None:
    journal = worker.journal()
    with worker.patch.context() as full:
        full.setattr(backlog, "LONGEST", 1)
        write(journal, request("r1"), request("r2"))
    async with worker.running(journal):
        with pytest.raises(UnloggedRequestError):
            await journal.write_durably(label("r2"))
        await journal.write_durably(label("r1"))
    assert worker.logged("labels") == ["label-r1-0"]


async def test_a_commit_whose_answer_was_lost_is_acknowledged(worker: Worker) -> None:
    """A connection that breaks in the commit: the records are there, and come a second time."""
    broken_commits = iter([InterfaceError("COMMIT", {}, Exception(), connection_invalidated=True)])

    async def broken(append: Append, records: Sequence[Record]) -> log.Appended:
        appended = await append(records)
        for error in broken_commits:
            raise error
        return appended

    worker.append_by(broken)
    async with worker.running() as journal:
        journal.write(request())
        await journal.write_durably(label())
        await journal.write_durably(label(label_id="later"))
        await reached(journal, 3)
    assert worker.counters.as_dict() == {"journal_failures": 1}
    assert worker.logged("labels") == ["label-r1-0", "later"]
    assert await worker.is_the_fold()


async def test_a_full_backlog_drops_counts_and_acknowledges_none_on_top(worker: Worker) -> None:
    worker.patch.setattr(backlog, "LONGEST", 2)
    journal = worker.journal()
    write(journal, *(request(f"r{number}") for number in range(5)))
    assert worker.counters.as_dict() == {"records_dropped": 3}
    async with worker.running(journal):
        with pytest.raises(JournalFullError):
            await journal.write_durably(label("r0"))
        await journal.flush()
    assert worker.logged("requests") == ["r0", "r1"]
    assert worker.logged("labels") == []


# The database is away


@pytest.mark.parametrize("times", [1, 4])
@pytest.mark.parametrize(
    "error",
    [
        pytest.param(AWAY, id="SQLite's lock"),
        pytest.param(ConnectionRefusedError(), id="refused"),
        pytest.param(TimeoutError(), id="too slow"),
        pytest.param(DBAPIError("INSERT", {}, AsyncpgError("25006")), id="a read-only standby"),
        pytest.param(DBAPIError("INSERT", {}, AsyncpgError("53100")), id="a full disk"),
        pytest.param(DBAPIError("INSERT", {}, AsyncpgError("40P01")), id="a deadlock"),
        pytest.param(
            InterfaceError("INSERT", {}, Exception("closed"), connection_invalidated=True),
            id="a connection that broke",
        ),
    ],
)
async def test_nothing_is_lost_in_an_outage(worker: Worker, error: Exception, times: int) -> None:
    worker.fail_appends(times, error)
    records = traffic(20)
    async with worker.running() as journal:
        write(journal, *records)
        await journal.write_durably(label("r1", 0.0, label_id="last"))
    assert worker.counters.as_dict() == {"journal_failures": times}
    assert await log.head(worker.database) == len(records) + 1
    assert await worker.is_the_fold()


async def test_nothing_is_lost_while_others_hold_every_connection(worker: Worker) -> None:
    """Clients whose look-ups wait for a database that hangs, each with a connection."""
    pool = worker.database.sync_engine.pool
    async with worker.running() as journal:
        async with AsyncExitStack() as others:
            for _ in range(15):
                await others.enter_async_context(worker.database.connect())
            worker.patch.setattr(pool, "_timeout", 0.01)
            write(journal, request("r1"), request("r2"))
            await until_it_holds(lambda: "journal_failures" in worker.counters.as_dict())
        worker.patch.setattr(pool, "_timeout", 600.0)
        await journal.flush()
    assert worker.logged("requests") == ["r1", "r2"]
    assert "records_dropped" not in worker.counters.as_dict()


async def test_a_state_that_could_not_be_folded_at_once_is_folded_later(worker: Worker) -> None:
    """Written but not read back: the label is acknowledged, for it is durable."""
    failing = iter([AWAY, AWAY])

    async def away(
        database: AsyncEngine, after: int, upto: int, kinds: Kinds
    ) -> AsyncIterator[Any]:
        for error in failing:
            raise error
        async for entry in read_entries(database, after, upto, kinds):
            yield entry

    worker.patch.setattr(learner, "read_entries", away)
    async with worker.running() as journal:
        journal.write(request())
        await journal.write_durably(label(value=0.0))
        assert worker.logged("labels") == ["label-r1-0"]
        await reached(journal, 2)
    assert await worker.is_the_fold()
    assert worker.engine.state.policy.queue("default") == 0.6


async def test_an_entry_that_cannot_be_folded_is_counted_and_passed_over(
    worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = request("r1", features=pair(1, 0)[:1])  # of another dimension under the same name
    of_it = served_call("r1"), label("r1", 0.6)
    async with worker.running() as journal:
        write(journal, wrong, *of_it, request("r2"), label("r2", 0.0))
        await journal.flush()
        assert worker.counters.as_dict() == {"fold_failures": len(of_it)}
        assert failures.OTHERWISE["fold_failures"] in caplog.text
        assert journal.position == 5
    assert worker.engine.state.policy.queue("default") == 0.6


async def test_a_zoo_that_is_configured_no_more_is_passed_over(worker: Worker) -> None:
    await log.append(worker.database, traffic(3, zoo="removed"))
    async with worker.running() as journal:
        await journal.write_durably(request("mine"))
        assert journal.position == await log.head(worker.database)
    assert worker.counters.as_dict() == {}
    assert worker.engine.state.requests["default"] == 1


# Other workers on the same database


async def test_two_workers_end_in_the_same_state(worker: Worker, database_url: str) -> None:
    """And in that of a third, which starts afterwards."""
    zoo, both = worker.engine.zoo, asyncio.Barrier(2)
    other = Worker(create_engine(database_url), build_engine(zoo), worker.patch)

    async def work(journal: Journal, prefix: str) -> None:
        for number, record in enumerate(traffic(40, prefix=prefix)):
            journal.write(record)
            if number % 7 == 0:
                await journal.flush()
                await both.wait()  # SQLite's lock is not fair
            elif number % 3 == 0:
                await asyncio.sleep(0)
        await journal.flush()

    async with worker.running() as first, other.running() as second:
        await asyncio.gather(work(first, "a"), work(second, "b"))
        head = await log.head(worker.database)
        await reached(first, head)
        await reached(second, head)
    third = build_engine(zoo)
    assert await restore(worker.database, only_zoo(third)) == head
    assert bits(worker.engine) == bits(other.engine) == bits(third)
    assert await worker.is_the_fold()
    await other.database.dispose()

    order = [request_id[0] for request_id in worker.logged("requests")]
    assert sum(a != b for a, b in pairwise(order)) > 1, "they took no turns"


# Closing, and snapshots


async def test_closing_writes_everything_and_takes_a_snapshot(worker: Worker) -> None:
    records = traffic(20)
    async with worker.running(flush_seconds=3600) as journal:
        write(journal, *records)
    assert await log.head(worker.database) == len(records)
    taken = await worker.newest_snapshot()
    assert taken is not None
    assert (taken.position, taken.state) == (len(records), bits(worker.engine))
    assert await worker.is_the_fold()


async def test_closing_does_not_wait_for_ever_and_says_what_it_leaves(
    worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    worker.patch.setattr(module, "CLOSE_SECONDS", 0.1)
    worker.fail_appends(1_000_000)
    async with asyncio.timeout(PATIENT), worker.running() as journal:
        write(journal, request(), served_call())
    assert "closed with 2 records unwritten" in caplog.text


async def test_a_snapshot_that_cannot_be_taken_does_not_stop_the_shutdown(worker: Worker) -> None:
    """It is a cache: the log is whole without it, and LiteLLM has more to shut down after us."""

    async def away(*_: object) -> None:
        raise AWAY

    worker.patch.setattr(snapshots, "save", away)
    async with worker.running() as journal:
        journal.write(request())
    assert worker.logged("requests") == ["r1"]


async def test_a_snapshot_is_taken_when_enough_was_folded(worker: Worker) -> None:
    async with worker.running(snapshot_every=10) as journal:
        for number in range(9):
            await journal.write_durably(request(f"r{number}"))
        assert await worker.newest_snapshot() is None
        await journal.write_durably(request("r9"))
        while (taken := await worker.newest_snapshot()) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        assert (taken.position, taken.state) == (10, bits(worker.engine))


async def test_a_snapshot_that_another_worker_takes_at_the_same_moment_is_no_failure(
    database: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Postgres, where neither sees, to take it away, what the other has yet to commit."""
    taken = Snapshot("zoo", 7, "print", b"state")
    await snapshots.save(database, taken)
    monkeypatch.setattr(snapshots, "delete", lambda table: delete(table).where(false()))
    await snapshots.save(database, taken)
    assert await snapshots.newest(database, "zoo", "print") == taken


async def test_only_the_newest_snapshots_are_kept(database: AsyncEngine) -> None:
    for position in (3, 1, 7, 5, 7, 9):
        state = f"state at {position}".encode()
        await snapshots.save(database, Snapshot("zoo", position, "print", state))
    await snapshots.save(database, Snapshot("other", 1, "print", b"other"))
    async with database.connect() as connection:
        query = "SELECT zoo, position FROM snapshots ORDER BY 1, 2"
        found = await connection.exec_driver_sql(query)
        assert list(map(tuple, found)) == [("other", 1), ("zoo", 5), ("zoo", 7), ("zoo", 9)]
    taken = await snapshots.newest(database, "zoo", "print")
    assert taken == Snapshot("zoo", 9, "print", b"state at 9")
    assert await snapshots.newest(database, "zoo", "another print") is None
