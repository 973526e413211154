"""What the charts of the page show: spans, points that agree with the log, and how requests were
served."""

from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from sqlalchemy import event, func, select, text
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.page import charts
from litellm_messplus.page.charts import (
    DAY,
    HOUR,
    LONGEST_DAYS,
    NEWEST,
    POINTS,
    STEPS_AT_MOST,
    Point,
    Service,
    read_label_costs,
    read_newest,
    read_points,
    read_service,
    span_of,
)
from litellm_messplus.status.build import read_status
from litellm_messplus.store import log
from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.store.tables import calls, metadata, requests
from litellm_messplus.switching.modes import Arm
from tests.page.scenes import FAILED, SERVED, WATCHED
from tests.page.seeded import ALPHA, LARGE, ZOO
from tests.support.builders import request, served_call

NOW = datetime(2026, 3, 5, 14, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("days", "step", "points"),
    [(1, HOUR, 24), (7, 6 * HOUR, 28), (30, DAY, 30), (90, DAY, 90), (365, 7 * DAY, 53)],
)
def test_a_range_has_steps_to_tell_apart(days: int, step: timedelta, points: int) -> None:
    span = span_of(days, NOW)

    assert span.step == step
    assert len(span.starts) == points
    assert span.place(NOW) == points - 1


@pytest.mark.parametrize("days", range(1, LONGEST_DAYS + 1, 9))
def test_every_range_is_bounded_and_ends_soon_after_now(days: int) -> None:
    span = span_of(days, NOW)

    assert 4 <= len(span.starts) <= 120
    assert timedelta(0) < span.end - NOW <= DAY
    assert span.end - span.begin >= timedelta(days=days)


def test_steps_begin_on_the_hour_and_days_at_midnight() -> None:
    assert span_of(1, NOW).end == datetime(2026, 3, 5, 15, tzinfo=UTC)
    assert span_of(30, NOW).end == datetime(2026, 3, 6, tzinfo=UTC)


def test_what_lies_outside_has_no_place() -> None:
    span = span_of(1, NOW)

    assert span.place(span.begin) == 0
    assert span.place(span.begin - timedelta(seconds=1)) is None
    assert span.place(span.end) is None


def test_it_touches_every_day_between() -> None:
    assert [day.day for day in span_of(2, NOW).days] == [3, 4, 5]


@pytest.mark.parametrize("days", [0, -1, LONGEST_DAYS + 1])
def test_other_ranges_are_refused(days: int) -> None:
    with pytest.raises(ValueError, match="allowed: 1 to 366"):
        span_of(days, NOW)


# Points.

RANGES = [1, 7, 30, 90, 365]


async def points_of(database: AsyncEngine, level: str, days: int) -> list[Point]:
    async with database.connect() as connection:
        return await read_points(connection, ZOO, level, span_of(days, datetime.now(UTC)))


async def logged(database: AsyncEngine, level: str, days: int) -> Any:
    """The same sums over the requests themselves."""
    span = span_of(days, datetime.now(UTC))
    query = text(
        "SELECT COUNT(*) AS requests, COUNT(satisfaction) AS judged, SUM(outcomes.cost) AS cost,"
        " AVG(requests.queue) AS queue FROM outcomes"
        " JOIN requests ON requests.request_id = outcomes.request_id"
        " WHERE requests.created_at >= :begin AND requests.zoo = :zoo"
        " AND requests.service_level = :level"
    )
    given = {"begin": f"{span.begin:%Y-%m-%d %H:%M:%S}", "zoo": ZOO, "level": level}
    async with database.connect() as connection:
        return (await connection.execute(query, given)).one()


@pytest.mark.parametrize("level", ALPHA)
@pytest.mark.parametrize("days", RANGES)
async def test_the_points_of_a_range_add_up_to_what_the_log_says(
    database: AsyncEngine, level: str, days: int
) -> None:
    points, expected = await points_of(database, level, days), await logged(database, level, days)

    assert sum(point.requests for point in points) == expected.requests > 0
    assert sum(point.judged for point in points) == expected.judged
    assert sum(point.cost for point in points) == pytest.approx(expected.cost)
    queues = sum((point.queue or 0.0) * point.requests for point in points)
    assert queues / expected.requests == pytest.approx(expected.queue)


async def test_the_rate_is_in_its_interval_and_alpha_as_promised(database: AsyncEngine) -> None:
    for point in await points_of(database, "gold", 30):
        assert point.promised in (ALPHA["gold"], None)
        if point.rate is not None:
            assert point.low is not None
            assert point.high is not None
            assert 0.0 <= point.low <= point.rate <= point.high <= 1.0


async def test_hours_and_days_count_the_same_calls(database: AsyncEngine) -> None:
    """Of the days that a week of hours covers whole."""
    by_hour: Counter[Any] = Counter()
    by_day: Counter[Any] = Counter()
    for found, days in ((by_hour, 7), (by_day, 30)):
        for point in await points_of(database, "default", days):
            for name, count in point.served.items():
                found[point.at.date(), name] += count
    whole = sorted({day for day, _ in by_hour})[1:]

    assert whole
    for (day, name), count in by_day.items():
        if day in whole:
            assert by_hour[day, name] == count


async def test_a_range_takes_two_statements_along_primary_keys(database: AsyncEngine) -> None:
    executed: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, given: Any, *_: Any) -> None:
        executed.append((statement, given))

    event.listen(database.sync_engine, "before_cursor_execute", note)
    for days in RANGES:
        executed.clear()
        await points_of(database, "default", days)
        statements = list(executed)
        assert len(statements) == 2
        async with database.connect() as connection:
            for statement, given in statements:
                plan = await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", given)
                steps = [str(row._mapping["detail"]) for row in plan]
                scanned = {name for name in metadata.tables if f"SCAN {name}" in steps}
                assert scanned <= {"log_head"}, steps
                assert any("(day=? AND zoo=? AND service_level=?" in step for step in steps), steps


async def test_a_promise_without_requests_has_points_of_nothing(database: AsyncEngine) -> None:
    points = await points_of(database, "silver", 30)

    assert len(points) == 30
    assert {(point.requests, point.rate, point.queue) for point in points} == {(0, None, None)}


async def test_the_newest_requests_are_points_up_to_the_newest(database: AsyncEngine) -> None:
    async with database.connect() as connection:
        points = await read_newest(connection, ZOO, "default")
        newest = select(func.max(requests.c.t)).where(requests.c.service_level == "default")
        last = (await connection.execute(newest)).scalar_one()

    assert len(points) == POINTS
    assert sum(point.requests for point in points) == NEWEST
    assert points[-1].number == last
    status = await read_status(database, NEWEST, with_calibration=False)
    window = next(each for each in status["levels"] if each["service_level"] == "default")["last"]
    assert sum(point.cost for point in points) == pytest.approx(window["cost"]["total"])
    assert window["savings"] is not None
    paid_at_largest = sum(point.paid_at_largest for point in points)
    assert paid_at_largest == pytest.approx(window["savings"]["cost_largest"])


async def test_few_newest_requests_are_a_point_each(database: AsyncEngine) -> None:
    async with database.connect() as connection:
        assert await read_newest(connection, ZOO, "silver") == []


async def test_what_labels_cost_is_what_the_gradings_say(database: AsyncEngine) -> None:
    async with database.connect() as connection:
        found = await read_label_costs(connection, ZOO, span_of(365, datetime.now(UTC)))
        query = text("SELECT COUNT(*) AS gradings, SUM(cost) AS cost FROM gradings")
        expected = (await connection.execute(query)).one()

    assert sum(each.gradings for each in found) == expected.gradings
    assert sum(each.cost or 0.0 for each in found) == pytest.approx(expected.cost)


# Traffic, share answered and latency of a promise.

A_DAY, NEWEST_ONLY = 1, None


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


@pytest.mark.parametrize("days", [NEWEST_ONLY, A_DAY])
async def test_every_request_of_an_outage_is_in_a_step(out: AsyncEngine, days: int | None) -> None:
    found = await service(out, days)

    assert sum(point.requests for point in found.points) == SERVED + FAILED
    assert sum(point.answered for point in found.points) == SERVED
    assert sum(point.failed for point in found.points) == FAILED
    assert len(found.points) <= STEPS_AT_MOST
    assert sum(each.answers for each in found.latency) == SERVED


async def test_those_served_as_before_are_among_them(aside: AsyncEngine) -> None:
    newest, day = await service(aside, NEWEST_ONLY), await service(aside, A_DAY)

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


async def test_the_newest_of_both_streams_are_in_it_and_what_a_cache_repeated_took_no_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charts, "NEWEST", 3)
    engine = create_engine(f"sqlite+aiosqlite:///{tmp_path / 'messplus.db'}")
    await migrate(engine)
    now = datetime.now(UTC)
    for number, level in enumerate(("default", "default:before", "default", "default:before")):
        name, is_cached = f"r{number}", number == 2
        arm = Arm.BEFORE if number % 2 else Arm.ROUTED
        own = {"service_level": level, "arm": arm, "expected_t": number + 1}
        decided = request(name, zoo=ZOO, created_at=now, **own)
        await log.append(engine, [decided, served_call(name, is_cache_hit=is_cached)])
    newest, day = await service(engine, NEWEST_ONLY), await service(engine, A_DAY)
    await engine.dispose()

    assert sum(point.requests for point in day.points) == 4
    assert sum(point.as_before for point in day.points) == 2
    assert (newest.requests, sum(point.as_before for point in newest.points)) == (3, 2)
    assert [each.answers for each in newest.latency] == [2]
