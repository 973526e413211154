"""The points of the charts say what the log says, and are read in a bounded number of rows."""

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import event, func, select, text
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.page.charts import (
    NEWEST,
    POINTS,
    Point,
    read_label_costs,
    read_newest,
    read_points,
    span_of,
)
from litellm_messplus.status.build import read_status
from litellm_messplus.store.tables import requests
from tests.page.seeded import ALPHA, ZOO

RANGES = [1, 7, 30, 90, 365]


async def points_of(database: AsyncEngine, level: str, days: int) -> list[Point]:
    async with database.connect() as connection:
        return await read_points(connection, ZOO, level, span_of(days, datetime.now(UTC)))


async def logged(database: AsyncEngine, level: str, days: int) -> Any:
    """The same sums by the views over the log."""
    span = span_of(days, datetime.now(UTC))
    query = text(
        "SELECT COUNT(*) AS requests, COUNT(satisfaction) AS judged, SUM(outcomes.cost) AS cost,"
        " AVG(requests.queue) AS queue FROM request_outcomes AS outcomes"
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


async def test_the_rate_lies_in_its_interval_and_alpha_is_what_was_promised(
    database: AsyncEngine,
) -> None:
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
            for name, calls in point.served.items():
                found[point.at.date(), name] += calls
    whole = sorted({day for day, _ in by_hour})[1:]

    assert whole
    for (day, name), calls in by_day.items():
        if day in whole:
            assert by_hour[day, name] == calls


async def test_a_range_takes_two_statements_along_primary_keys(database: AsyncEngine) -> None:
    asked: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, given: Any, *_: Any) -> None:
        asked.append((statement, given))

    event.listen(database.sync_engine, "before_cursor_execute", note)
    for days in RANGES:
        asked.clear()
        await points_of(database, "default", days)
        statements = list(asked)
        assert len(statements) == 2
        async with database.connect() as connection:
            for statement, given in statements:
                plan = await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", given)
                steps = [str(row._mapping["detail"]) for row in plan]
                assert not [step for step in steps if step.startswith("SCAN")], steps
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
    window = next(each for each in status.levels if each.service_level == "default").last
    assert sum(point.cost for point in points) == pytest.approx(window.cost.total)
    assert window.savings is not None
    paid_at_largest = sum(point.paid_at_largest for point in points)
    assert paid_at_largest == pytest.approx(window.savings.cost_largest)


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
