"""Traffic, share answered and latency of a promise, as the log has them."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from statistics import median

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.page.charts import NEWEST, STEPS_AT_MOST, Service, read_service, span_of
from litellm_messplus.store.database import create_engine
from litellm_messplus.store.tables import calls
from tests.page.scenes import FAILED, SERVED, WATCHED
from tests.page.seeded import LARGE, ZOO

DAY, NEWEST_ONLY = 1, None


async def service(database: AsyncEngine, days: int | None) -> Service:
    span = None if days is None else span_of(days, datetime.now(UTC))
    async with database.connect() as connection:
        return await read_service(connection, ZOO, "default", span)


@pytest.fixture
async def out(outage_url: str) -> AsyncIterator[AsyncEngine]:
    engine = create_engine(outage_url)
    yield engine
    await engine.dispose()


@pytest.fixture
async def aside(watched_url: str) -> AsyncIterator[AsyncEngine]:
    engine = create_engine(watched_url)
    yield engine
    await engine.dispose()


@pytest.mark.parametrize("days", [NEWEST_ONLY, DAY])
async def test_every_request_of_an_outage_is_in_one_step(
    out: AsyncEngine, days: int | None
) -> None:
    found = await service(out, days)

    assert sum(point.requests for point in found.points) == SERVED + FAILED
    assert sum(point.answered for point in found.points) == SERVED
    assert sum(point.failed for point in found.points) == FAILED
    assert len(found.points) <= STEPS_AT_MOST
    assert sum(each.answers for each in found.latency) == SERVED


async def test_those_served_as_before_are_among_them(aside: AsyncEngine) -> None:
    newest, day = await service(aside, NEWEST_ONLY), await service(aside, DAY)

    assert sum(point.as_before for point in newest.points) == newest.requests == NEWEST
    assert sum(point.as_before for point in day.points) == WATCHED
    assert [each.model for each in newest.latency] == [LARGE]
    assert newest.latency == day.latency


async def test_the_latency_is_that_of_the_calls(out: AsyncEngine) -> None:
    query = select(calls.c.candidate, calls.c.seconds).where(
        calls.c.role == "served", calls.c.status == "success"
    )
    async with out.connect() as connection:
        rows = (await connection.execute(query)).all()
    for each in (await service(out, NEWEST_ONLY)).latency:
        seconds = [row.seconds for row in rows if row.candidate == each.model]
        assert each.answers == len(seconds)
        assert each.median_seconds <= median(seconds)
        assert each.p95_seconds == max(seconds)  # of fewer than twenty


async def test_a_promise_without_requests_has_none(database: AsyncEngine) -> None:
    async with database.connect() as connection:
        found = await read_service(connection, ZOO, "unused", None)

    assert (found.points, found.latency, found.requests) == ([], [], 0)
