"""What is folded in without reading it back is what reading it back would give."""

from random import Random

from hypothesis import HealthCheck, settings
from hypothesis import given as holds_for
from hypothesis import strategies as st
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.records import Record
from litellm_messplus.store import log
from litellm_messplus.store.entries import RecentRequests, read_entries
from tests.support.builders import label, request, served_call, traffic
from tests.support.folding import comparable


def batches(records: list[Record], seed: int) -> list[list[Record]]:
    random, found, start = Random(seed), list[list[Record]](), 0
    while start < len(records):
        size = random.randint(1, 4)
        found.append(records[start : start + size])
        start += size
    return found


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@holds_for(seed=st.integers(0, 10_000))
async def test_entries_of_records_are_those_of_the_log(database: AsyncEngine, seed: int) -> None:
    """Over a log with labels before and after calls, second verdicts, failures and cache hits."""
    recent = RecentRequests()
    records = traffic(12, seed, prefix=f"s{await log.head(database)}-", replaces=True)
    for batch in batches(records, seed):
        appended = await log.append(database, batch)
        entries = recent.entries(batch, appended.before)
        read = [each async for each in read_entries(database, appended.before, appended.last)]
        assert entries is not None
        assert [*map(comparable, entries)] == [*map(comparable, read)]


def test_what_is_about_a_request_that_is_not_remembered_is_read_back() -> None:
    recent = RecentRequests(remembered=1)
    assert recent.entries([request("r1"), request("r2")], 0) is not None
    for record in (served_call("r1"), label("r1")):
        assert recent.entries([record], 2) is None
    assert recent.entries([served_call("r2"), label("r2")], 2) is not None


def test_a_record_that_is_read_back_leaves_the_others_known() -> None:
    recent = RecentRequests()
    assert recent.entries([label("r0"), request("r1"), served_call("r1")], 0) is None
    assert recent.entries([label("r1")], 3) is not None


async def test_what_another_process_labels_is_read_back(database: AsyncEngine) -> None:
    recent, call = RecentRequests(), served_call()
    recent.entries([request()], 0)
    await log.append(database, [request(), label()])
    async for entry in read_entries(database, 1, 2):
        recent.forget(entry)
    assert recent.entries([call], 2) is None
