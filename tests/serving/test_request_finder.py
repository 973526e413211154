"""Whose request an id is: remembered by this worker, in the log, or about to be."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from time import perf_counter

import pytest
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus import backlog
from litellm_messplus.backlog import Arrivals
from litellm_messplus.brain import feedback as module
from litellm_messplus.brain.feedback import RequestFinder
from litellm_messplus.brain.messages import Caller
from litellm_messplus.brain.pending import Pending, PendingRequests
from litellm_messplus.journal import Journal
from litellm_messplus.records import RequestRecord
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.errors import TooOftenError, UnknownRequestError
from litellm_messplus.store import log
from litellm_messplus.store.database import create_engine
from tests.support.builders import build_engine, request, served_call
from tests.support.folding import build_journal
from tests.support.patience import PATIENT, until_it_holds

REPEATED = "litellm-chosen-by-the-client"
ALICE, CAROL = Caller("alice", is_admin=False), Caller("carol", is_admin=False)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.3)


@pytest.fixture
def endless(short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found, or refused, is so before the wait is over."""
    monkeypatch.setattr(module, "WAIT_SECONDS", 2 * PATIENT)


def asked(request_id: str, key: str) -> RequestRecord:
    return request(request_id, key_hash=key, litellm_call_id=REPEATED)


def finder_of(
    database: AsyncEngine, *remembered: RequestRecord, arrivals: Arrivals | None = None
) -> RequestFinder:
    """Of a brain that has decided these lately."""
    pending = PendingRequests(lambda record: None)
    for record in remembered:
        pending.add(Pending(record, build_engine()))
    return RequestFinder(database, pending.opened, arrivals or Arrivals(), Counters())


@pytest.fixture
async def journal(database: AsyncEngine) -> AsyncIterator[Journal]:
    built = build_journal(database)
    built.start()
    yield built
    await built.close()


async def test_an_id_used_by_others_still_finds_ones_own_request(database: AsyncEngine) -> None:
    """It was decided by another worker, or before a restart."""
    await log.append(database, [asked("mine", "alice")])
    finder = finder_of(database, asked("theirs", "bob"))

    assert (await finder.find(REPEATED, ALICE)).request_id == "mine"


async def test_a_request_that_is_remembered_here_needs_no_log(database: AsyncEngine) -> None:
    finder = finder_of(database, asked("mine", "alice"), asked("theirs", "bob"))

    assert (await finder.find(REPEATED, ALICE)).request_id == "mine"


async def test_anothers_id_and_an_unknown_one_look_alike(database: AsyncEngine) -> None:
    await log.append(database, [request("logged", key_hash="alice")])
    finder = finder_of(database, asked("theirs", "bob"))
    for given in ("logged", REPEATED, "nobody's"):
        began = perf_counter()
        with pytest.raises(UnknownRequestError) as refused:
            await finder.find(given, CAROL)
        assert str(refused.value) == given
        assert perf_counter() - began > 0.29


async def test_whoever_runs_the_proxy_finds_all(database: AsyncEngine) -> None:
    await log.append(database, [request("logged", key_hash="alice")])
    found = await finder_of(database).find("logged", Caller("root", is_admin=True))
    assert found.key_hash == "alice"


async def test_a_caller_without_a_key_owns_nothing(database: AsyncEngine) -> None:
    await log.append(database, [request("keyless", key_hash=None)])
    with pytest.raises(UnknownRequestError):
        await finder_of(database).find("keyless", Caller(None, is_admin=False))


@pytest.mark.parametrize("given", ["late", "litellm-late", "chatcmpl-late"])
async def test_an_id_that_is_a_little_early_is_found_as_soon_as_it_is_written(
    database: AsyncEngine, journal: Journal, endless: None, given: str
) -> None:
    finder = finder_of(database, arrivals=journal.arrivals)
    finding = asyncio.create_task(finder.find(given, ALICE))
    await until_it_holds(lambda: bool(journal.arrivals._waiting))
    journal.write(request("late", key_hash="alice"))
    journal.write(served_call("late"))

    async with asyncio.timeout(PATIENT):
        assert (await finding).request_id == "late"


class WrittenByAnother(Arrivals):
    """As soon as somebody waits, another worker writes a record, of which nothing tells."""

    def __init__(self, url: str, record: RequestRecord) -> None:
        super().__init__()
        self._url, self._record = url, record

    @contextmanager
    def waiting(self, who: str | None) -> Iterator[None]:
        with super().waiting(who):
            another = threading.Thread(target=lambda: asyncio.run(self._write()))
            another.start()
            another.join()
            yield

    async def _write(self) -> None:
        database = create_engine(self._url)
        await log.append(database, [self._record])
        await database.dispose()


async def test_anothers_late_write_is_found(database: AsyncEngine, database_url: str) -> None:
    another = WrittenByAnother(database_url, request("late", key_hash="alice"))
    assert (await finder_of(database, arrivals=another).find("late", ALICE)).request_id == "late"


async def test_an_unknown_id_is_looked_up_twice(database: AsyncEngine) -> None:
    looks = 0

    def looking(*_: object) -> None:
        nonlocal looks
        looks += 1

    event.listen(database.sync_engine, "before_cursor_execute", looking)
    with pytest.raises(UnknownRequestError):
        await finder_of(database).find("nobody's", ALICE)
    assert looks == 2


async def test_others_requests_that_come_under_the_same_id_are_looked_at_once(
    database: AsyncEngine, journal: Journal, endless: None
) -> None:
    looks = 0

    def looking(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        nonlocal looks
        looks += "litellm_call_id = " in statement

    event.listen(database.sync_engine, "before_cursor_execute", looking)
    finding = asyncio.create_task(finder_of(database, arrivals=journal.arrivals).find("x", ALICE))
    await until_it_holds(lambda: bool(journal.arrivals._waiting))
    for number in range(6):
        journal.write(request(f"r{number}", litellm_call_id="x", key_hash="bob"))
        await journal.flush()
        await until_it_holds(lambda: looks > 1)
    finding.cancel()
    assert looks == 2  # at once, and when the first came


@pytest.mark.parametrize(
    ("keys", "waiting"), [(["alice"] * 8, 3), ([f"key-{n}" for n in range(8)], 5)]
)
async def test_only_so_many_may_wait_of_one_key_and_of_all(
    database: AsyncEngine, endless: None, keys: list[str], waiting: int
) -> None:
    place = Arrivals(most=5, most_of_one=3)
    finder = finder_of(database, arrivals=place)
    asked = [
        asyncio.create_task(finder.find(f"unknown-{n}", Caller(key, is_admin=False)))
        for n, key in enumerate(keys)
    ]
    refused = len(keys) - waiting
    await until_it_holds(lambda: sum(each.done() for each in asked) == refused)
    assert place._waiting.total() == waiting
    for each in asked:
        each.cancel()
    found = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(each) for each in found].count(TooOftenError) == refused
    assert finder.counters.as_dict() == {"lookups_refused": refused}
    assert not place._waiting
    assert not place._expected


def test_the_bounds_leave_room_for_many_keys() -> None:
    assert backlog.MOST_WAITING >= 10 * backlog.MOST_OF_ONE
