"""The inbox: records come out as they were put in, and each is there or in the log."""

from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.records import Record
from litellm_messplus.rows import columns_of, values_of
from litellm_messplus.store import inbox, log
from litellm_messplus.store.inbox import SILENT, Batch, DeposedError
from tests.support.builders import NOW, label, request, served_call
from tests.support.folding import read
from tests.support.learning import counts, put
from tests.support.records import of_kind, records

PLAIN = {str, int, float, bool, bytes, type(None), dict, list, tuple, datetime}


def enumerations(kind: type[Record]) -> set[type]:
    return {each.base for each in columns_of(kind) if issubclass(each.base, Enum)}


def comparable(record: Record) -> list[Any]:
    """All values; arrays as bytes."""
    return [
        value.tobytes() if isinstance(value, np.ndarray) else value for value in values_of(record)
    ]


@pytest.mark.parametrize("kind", log.TABLE_OF)
@given(data=st.data())
def test_any_record_comes_out_as_it_was_put_in(kind: type[Record], data: st.DataObject) -> None:
    drawn = data.draw(st.lists(of_kind(kind), max_size=3))

    found = inbox.decode(inbox.encode(drawn))

    assert [type(each) for each in found] == [kind] * len(drawn)
    assert [comparable(each) for each in found] == [comparable(each) for each in drawn]
    assert {type(value) for each in found for value in comparable(each)} <= PLAIN | enumerations(
        kind
    )


@given(st.lists(records, max_size=6))
def test_the_order_of_kinds_is_kept(drawn: list[Record]) -> None:
    assert [type(each) for each in inbox.decode(inbox.encode(drawn))] == [*map(type, drawn)]


def test_a_value_of_no_column_is_refused() -> None:
    with pytest.raises(ValueError, match="unmarshal"):
        inbox.encode([label(comment=object())])


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"something else", inbox.encode([request()])[:-3]], ids=repr
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises((ValueError, TypeError, EOFError)):
        inbox.decode(data)


# The tables, on both databases.


async def move(
    database: AsyncEngine, batches: list[Batch], epoch: int, fails: bool = False
) -> None:
    """Move batches into the log, as a learner does; one that ``fails`` raises before the commit."""

    async def also(connection: AsyncConnection) -> None:
        await inbox.take(connection, batches, epoch, NOW)
        if fails:
            raise InterruptedError

    some = [record for batch in batches for record in inbox.decode(batch.records)]
    await log.append(database, some, also=also)


async def test_batches_come_in_their_order_and_in_bounded_number(either: AsyncEngine) -> None:
    for number in range(1, 6):
        await put(either, "ab"[number % 2], number, request(f"r{number}"))

    found = await inbox.waiting(either, 3)

    assert [(each.worker, each.number) for each in found] == [("b", 1), ("a", 2), ("b", 3)]
    assert len(await inbox.waiting(either, 100)) == 5


async def test_a_batch_is_in_the_inbox_or_in_the_log_whatever_fails(either: AsyncEngine) -> None:
    epoch = await inbox.elect(either, "a process", NOW)
    await put(either, "a", 1, request(), served_call(), label())
    await put(either, "b", 1, request("r2"))
    batches = await inbox.waiting(either, 10)

    with pytest.raises(InterruptedError):
        await move(either, batches, epoch, fails=True)

    assert await counts(either) == (2, 0)
    assert await inbox.taken(either, NOW) == {}
    await move(either, batches[:1], epoch)
    assert await counts(either) == (1, 3)
    await move(either, batches[1:], epoch)
    assert await counts(either) == (0, 4)
    assert await inbox.taken(either, NOW) == {"a": 1, "b": 1}


async def test_what_is_moved_folds_as_what_is_appended(either: AsyncEngine) -> None:
    epoch = await inbox.elect(either, "a process", NOW)
    await put(either, "a", 1, request(), served_call(), label(value=0.25))
    await move(either, await inbox.waiting(either, 10), epoch)
    moved = await read(either, 0, 3)
    await log.append(either, [request("r2"), served_call("r2"), label("r2", 0.25)])

    appended = await read(either, 3, 6)

    def unnamed(entries: list[dict[str, Any]]) -> str:
        places = [{**entry, "position": place} for place, entry in enumerate(entries)]
        return str(places).replace("r2", "r1")

    assert unnamed(moved) == unnamed(appended)


async def test_a_deposed_learner_writes_nothing(either: AsyncEngine) -> None:
    first = await inbox.elect(either, "one process", NOW)
    second = await inbox.elect(either, "another", NOW)
    await put(either, "a", 1, request())
    batches = await inbox.waiting(either, 10)

    for some in (batches, []):
        with pytest.raises(DeposedError):
            await move(either, some, first)
    async with either.connect() as connection:
        with pytest.raises(DeposedError):
            await inbox.check(connection, first)
        await inbox.check(connection, second)

    assert (first, second) == (1, 2)
    assert await counts(either) == (1, 0)
    await move(either, batches, second)
    assert await counts(either) == (0, 1)


async def test_a_worker_that_is_silent_for_an_hour_is_forgotten(either: AsyncEngine) -> None:
    epoch = await inbox.elect(either, "a process", NOW)
    await put(either, "gone", 7, request())
    await move(either, await inbox.waiting(either, 10), epoch)
    just = datetime.now(UTC)

    assert await inbox.taken(either, NOW + SILENT) == {"gone": 7}
    assert await inbox.taken(either, NOW + SILENT + timedelta(seconds=1)) == {}
    assert await inbox.taken(either, just) == {}
