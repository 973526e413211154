"""What is folded in without reading it back is what reading it back would give."""

from random import Random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as holds_for
from hypothesis import strategies as st
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.records import LabelRecord, Record
from litellm_messplus.store import log
from litellm_messplus.store.entries import RecentRequests, read_entries
from tests.support.builders import label, request, served_call, traffic
from tests.support.folding import comparable


def batches(records: list[Record], seed: int) -> list[list[Record]]:
    """The first alone, so that one at least is not read back."""
    random, found, start = Random(seed), [records[:1]], 1
    while start < len(records):
        size = random.randint(1, 4)
        found.append(records[start : start + size])
        start += size
    return found


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@holds_for(seed=st.integers(0, 10_000))
async def test_entries_of_records_are_those_of_the_log(database: AsyncEngine, seed: int) -> None:
    """Over a log with labels before and after calls, second verdicts, failures and cache hits."""
    recent, known = RecentRequests(), 0
    records = traffic(12, seed, prefix=f"s{await log.head(database)}-", replaces=True)
    for batch in batches(records, seed):
        appended = await log.append(database, batch)
        entries = recent.entries(batch, appended.before)
        read = [each async for each in read_entries(database, appended.before, appended.last)]
        if entries is None:
            for entry in read:
                recent.saw(entry)
        else:
            known += 1
            assert [*map(comparable, entries)] == [*map(comparable, read)]
    assert known > 0


def test_a_label_is_read_back() -> None:
    assert RecentRequests().entries([request(), label()], 0) is None


def test_a_call_of_a_request_that_is_not_remembered_is_read_back() -> None:
    recent = RecentRequests(remembered=1)
    assert recent.entries([request("r1"), request("r2")], 0) is not None
    assert recent.entries([served_call("r1")], 2) is None
    assert recent.entries([served_call("r2")], 2) is not None


@pytest.mark.parametrize("is_before", [True, False])
async def test_a_label_before_the_end_is_read_back(database: AsyncEngine, is_before: bool) -> None:
    recent, call = RecentRequests(), served_call()
    recent.entries([request()], 0)
    records: list[Record] = [request(), *([] if is_before else [call]), label()]
    await log.append(database, records)
    async for entry in read_entries(database, len(records) - 1, len(records), [LabelRecord]):
        recent.saw(entry)
    assert (recent.entries([call], len(records)) is None) == is_before
