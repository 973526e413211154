"""The backlog: verdicts that somebody waits for go first, and the records of a request in order."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.exc import OperationalError

from litellm_messplus import backlog as module
from litellm_messplus.backlog import Backlog, Waiting
from litellm_messplus.core.entries import Entry
from litellm_messplus.journal import SETTLE_SECONDS, Journal
from litellm_messplus.learning import learner
from litellm_messplus.records import LabelRecord, Record, RequestRecord
from litellm_messplus.runtime.errors import NotWrittenError, UnsettledError
from litellm_messplus.store.log import Appended
from tests.support import virtual_time
from tests.support.builders import label, request, served_call
from tests.support.folding import build_journal

PATIENCE = 5.0
LONG = 3 * module.BATCH + 7
SMALL = 6
"""Records of a batch, where many batches are looked at."""


def queued(records: Sequence[Record], durable: Callable[[Record], bool]) -> Backlog:
    found, loop = Backlog(), asyncio.get_running_loop()
    for each in records:
        found.add(each, loop.create_future() if durable(each) else None)
    return found


def is_verdict(record: Record) -> bool:
    return isinstance(record, LabelRecord)


def written(waiting: Backlog) -> list[list[Waiting]]:
    """All that waits, in the batches in which it is written."""
    batches = []
    while waiting:
        with waiting.batch(waiting.newest) as batch:
            batches.append(list(batch))
            for each in batch:
                each.is_committed = True
    return batches


async def test_a_verdict_does_not_wait_for_a_long_backlog() -> None:
    records: list[Record] = [request(f"r{number}") for number in range(LONG)]
    first, *_ = batches = written(queued([*records, label(f"r{LONG - 1}")], is_verdict))
    assert [type(each.record) for each in first[-2:]] == [RequestRecord, LabelRecord]
    assert [each.number for each in first[:-2]] == list(range(1, module.BATCH - 1))
    assert sum(map(len, batches)) == LONG + 1


async def test_without_verdicts_the_oldest_go_first() -> None:
    records: list[Record] = [request(f"r{number}") for number in range(LONG)]
    batches = written(queued(records, is_verdict))
    assert [each.number for batch in batches for each in batch] == list(range(1, LONG + 1))
    assert {len(batch) for batch in batches[:-1]} == {module.BATCH}


async def test_what_comes_while_a_flush_writes_waits_for_the_next_one() -> None:
    waiting = queued([request(f"r{number}") for number in range(10)], is_verdict)
    upto = waiting.newest
    waiting.add(request("later"), None)
    with waiting.batch(upto) as batch:
        assert [each.number for each in batch] == list(range(1, upto + 1))


RECORDS = st.lists(
    st.tuples(st.sampled_from(["request", "turn", "call", "label"]), st.integers(0, 7)),
    max_size=60,
)


@given(RECORDS)
def test_records_stay_in_order_and_batches_small_enough(wanted: list[tuple[str, int]]) -> None:
    async def write() -> list[list[Waiting]]:
        return written(queued([made(*each) for each in wanted], is_verdict))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BATCH", SMALL)
        batches = virtual_time.run(write())
    assert all(0 < len(batch) <= SMALL for batch in batches)
    orders = defaultdict(list)
    for each in (each for batch in batches for each in batch):
        orders[each.record.request_id].append(each.number)  # type: ignore[union-attr]
    assert sum(map(len, orders.values())) == len(wanted)
    assert all(order == sorted(order) for order in orders.values())


def made(kind: str, number: int) -> Record:
    match kind:
        case "request":
            return request(f"r{number}")
        case "call":
            return served_call(f"r{number}")
        case _:
            return label(f"r{number}")


# A database that stalls: the answer to a client about its verdict is true.


class StalledLog:
    """In the place of the log: each append takes its seconds, and then fails or is committed."""

    def __init__(self, appends: Sequence[tuple[float, bool]]) -> None:
        self._appends = list(appends)
        self.committed: list[Record] = []

    async def append(self, _: Any, records: Sequence[Record], **how: Any) -> Appended:
        seconds, fails = self._appends.pop(0) if self._appends else (0.0, False)
        await asyncio.sleep(seconds)
        if fails:
            raise OperationalError("INSERT", {}, Exception("the database is locked"))
        before = len(self.committed)
        self.committed += records
        return Appended(before, len(self.committed))

    async def head(self, _: Any) -> int:
        return len(self.committed)


async def nothing(*_: Any) -> AsyncIterator[Entry]:
    entries: tuple[Entry, ...] = ()
    for each in entries:
        yield each


async def kept(*_: Any) -> None:
    return None


def verdicts_on(
    appends: Sequence[tuple[float, bool]], gaps: Sequence[float], patience: float = PATIENCE
) -> tuple[list[tuple[str, float]], list[str]]:
    """What each of some verdicts met and after how long, and the ids of the labels in the log."""
    stalled = StalledLog(appends)

    async def verdict(writer: Journal, number: int) -> tuple[str, float]:
        started = asyncio.get_running_loop().time()
        outcome = "written"
        try:
            await writer.write_durably(label(f"r{number}", label_id=f"{number}"), patience)
        except (NotWrittenError, UnsettledError) as error:
            outcome = type(error).__name__
        return outcome, asyncio.get_running_loop().time() - started

    async def run() -> list[tuple[str, float]]:
        database: Any = SimpleNamespace(dialect=SimpleNamespace(name="sqlite"))
        writer = build_journal(database, flush_seconds=0.5)
        writer.start()
        running = []
        for number, gap in enumerate(gaps):
            await asyncio.sleep(gap)
            writer.write(request(f"r{number}"))
            running.append(asyncio.create_task(verdict(writer, number)))
        outcomes = list(await asyncio.gather(*running))
        await writer.flush()
        await writer.close()
        return outcomes

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learner, "log", stalled)
        patch.setattr(learner, "read_entries", nothing)
        patch.setattr(learner, "keep", kept)
        outcomes = virtual_time.run(run())
    return outcomes, [each.label_id for each in stalled.committed if isinstance(each, LabelRecord)]


@given(
    st.lists(st.tuples(st.floats(0.0, 20.0), st.booleans()), max_size=6),
    st.lists(st.floats(0.0, 4.0), min_size=1, max_size=8),
)
def test_a_client_gets_the_truth(appends: list[tuple[float, bool]], gaps: list[float]) -> None:
    outcomes, logged = verdicts_on(appends, gaps)
    for number, (outcome, seconds) in enumerate(outcomes):
        assert seconds <= PATIENCE + SETTLE_SECONDS + 1e-6
        if outcome == "written":
            assert logged.count(str(number)) == 1
        if outcome == "NotWrittenError":
            assert str(number) not in logged
    assert len(logged) == len(set(logged))


def test_a_verdict_that_is_being_written_is_waited_for() -> None:
    outcomes, logged = verdicts_on([(9.0, False)], [0.0])
    assert outcomes == [("written", 9.0)]
    assert logged == ["0"]


def test_one_whose_transaction_fails_is_withdrawn_with_it() -> None:
    outcomes, logged = verdicts_on([(9.0, True)], [0.0])
    assert outcomes == [("NotWrittenError", 9.0)]
    assert logged == []


def test_one_that_waits_behind_it_is_withdrawn_at_once() -> None:
    outcomes, logged = verdicts_on([(9.0, False)], [0.0, 1.0])
    assert outcomes[1] == ("NotWrittenError", PATIENCE)
    assert logged == ["0"]


def test_of_one_whose_transaction_does_not_end_nothing_is_claimed() -> None:
    outcomes, _ = verdicts_on([(60.0, False)], [0.0])
    assert outcomes == [("UnsettledError", PATIENCE + SETTLE_SECONDS)]


def test_who_waits_for_ever_is_written_at_last() -> None:
    outcomes, logged = verdicts_on([(60.0, True), (60.0, False)], [0.0], patience=1e9)
    assert [outcome for outcome, _ in outcomes] == ["written"]
    assert logged == ["0"]
