"""What the charts of the page show: spans, points that agree with the log, marks, and models."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.figures.figure import Plain
from litellm_messplus.page.charts import (
    DAY,
    HOUR,
    LONGEST_DAYS,
    NEWEST,
    STEPS_OF_NEWEST,
    read_models,
    read_series,
    read_spend,
    read_uses,
    span_of,
)
from litellm_messplus.status.build import read_status
from litellm_messplus.store import log
from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.store.tables import metadata
from litellm_messplus.store.zoo_modes import WAY_BACK, ModeRow, append
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


# Points.

RANGES = [1, 7, 30, 90, 365]


async def charted(database: AsyncEngine, level: str, days: int | None) -> Plain:
    span = None if days is None else span_of(days, datetime.now(UTC))
    async with database.connect() as connection:
        return await read_series(connection, ZOO, level, span)


async def logged(database: AsyncEngine, level: str, days: int) -> Any:
    """The same sums over the requests themselves."""
    span = span_of(days, datetime.now(UTC))
    query = text(
        "SELECT COUNT(*) AS requests, COUNT(satisfaction) AS judged, SUM(outcomes.cost) AS cost"
        " FROM outcomes JOIN requests ON requests.request_id = outcomes.request_id"
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
    points = (await charted(database, level, days))["points"]
    expected = await logged(database, level, days)

    assert sum(point["requests"] for point in points) == expected.requests > 0
    assert sum(point["judged"] for point in points) == expected.judged
    assert sum(point["cost"] for point in points) == pytest.approx(expected.cost)
    assert sum(sum(point["served"].values()) for point in points) == expected.requests


async def test_the_rate_is_in_its_interval_and_alpha_as_promised(database: AsyncEngine) -> None:
    for point in (await charted(database, "gold", 30))["points"]:
        assert point["promised"] in (ALPHA["gold"], None)
        if point["rate"] is not None:
            assert point["low"] is not None
            assert point["high"] is not None
            assert 0.0 <= point["low"] <= point["rate"] <= point["high"] <= 1.0


async def test_a_range_takes_three_statements_along_primary_keys(database: AsyncEngine) -> None:
    executed: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, given: Any, *_: Any) -> None:
        executed.append((statement, given))

    event.listen(database.sync_engine, "before_cursor_execute", note)
    for days in RANGES:
        executed.clear()
        await charted(database, "default", days)
        statements = list(executed)
        assert len(statements) == 3
        async with database.connect() as connection:
            for statement, given in statements:
                plan = await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", given)
                steps = [str(row._mapping["detail"]) for row in plan]
                scanned = {name for name in metadata.tables if f"SCAN {name}" in steps}
                assert scanned <= {"log_head"}, steps  # modes are few, of one zoo
                is_by_day = any("(day=? AND zoo=? AND service_level=?" in step for step in steps)
                assert is_by_day or "zoo_modes" in statement, steps


async def test_a_promise_without_requests_has_points_of_nothing(database: AsyncEngine) -> None:
    found = await charted(database, "silver", 30)

    assert len(found["points"]) == 30
    assert {(point["requests"], point["rate"]) for point in found["points"]} == {(0, None)}


async def test_the_newest_requests_are_points_up_to_the_newest(database: AsyncEngine) -> None:
    found = await charted(database, "default", None)
    points = found["points"]

    assert len(points) == STEPS_OF_NEWEST
    assert sum(point["requests"] for point in points) == NEWEST
    status = await read_status(database, NEWEST, with_calibration=False)
    window = next(each for each in status["levels"] if each["service_level"] == "default")["last"]
    assert sum(point["cost"] for point in points) == pytest.approx(window["cost"]["total"])
    assert window["savings"] is not None
    paid_at_largest = sum(point["paid_at_largest"] for point in points)
    assert paid_at_largest == pytest.approx(window["savings"]["cost_largest"])


# What was served as before, and an outage.


async def of_scene(url: str, days: int | None) -> Plain:
    engine = create_engine(url)
    found = await charted(engine, "default", days)
    await engine.dispose()
    return found


@pytest.mark.parametrize("days", [None, 1])
async def test_every_request_of_an_outage_is_in_a_step(outage_url: str, days: int | None) -> None:
    points = (await of_scene(outage_url, days))["points"]

    assert sum(point["requests"] for point in points) == SERVED + FAILED
    assert sum(point["answered"] for point in points) == SERVED
    assert sum(point["failed"] for point in points) == FAILED
    assert sum(sum(point["served"].values()) for point in points) == SERVED  # not the failed


async def test_an_outage_is_marked_where_it_begins(outage_url: str) -> None:
    (mark,) = (await of_scene(outage_url, None))["marks"]

    assert mark["is_alarm"]
    assert mark["words"].startswith(f"{FAILED} of ")


@pytest.mark.parametrize("days", [None, 1])
async def test_where_nothing_is_routed_it_is_what_was_served_as_before(
    watched_url: str, days: int | None
) -> None:
    found = await of_scene(watched_url, days)

    assert found["is_before"]
    assert sum(each["requests"] for each in found["points"]) == (WATCHED if days else NEWEST)
    assert {name for point in found["points"] for name in point["served"]} == {LARGE}


async def test_changes_of_the_mode_are_marked(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite+aiosqlite:///{tmp_path / 'messplus.db'}")
    await migrate(engine)
    now = datetime.now(UTC)
    await log.append(engine, [request("r0", zoo=ZOO, created_at=now), served_call("r0")])
    known: dict[str, Any] = {"before": "litellm", "at": now, "file_fingerprint": ""}
    for revision, mode, by in ((1, "canary", "file"), (2, "watch", WAY_BACK)):
        row = ModeRow(ZOO, revision, mode, 0.3, by=by, reason="it is time", **known)
        assert await append(engine, row)
    found = await charted(engine, "default", 1)
    await engine.dispose()

    assert [(mark["words"], mark["is_alarm"]) for mark in found["marks"]] == [
        ("canary (30 % routed): it is time", False),
        ("watch: it is time", True),
    ]


# Models and spend.


async def test_a_model_has_its_place_by_its_first_call(tmp_path: Path) -> None:
    """Its colour goes by it: one that comes later, or that is called more, changes none."""
    engine = create_engine(f"sqlite+aiosqlite:///{tmp_path / 'messplus.db'}")
    await migrate(engine)
    begin = datetime(2026, 3, 5, 10, tzinfo=UTC)
    for number, name in enumerate(("zeta", "alpha", "middle", "alpha")):
        at = begin + number * timedelta(hours=1)
        decided = request(f"r{number}", zoo=ZOO, created_at=at, expected_t=number + 1)
        await log.append(engine, [decided, served_call(f"r{number}", candidate=name)])
    async with engine.connect() as connection:
        found = await read_models(connection, ZOO)
    await engine.dispose()

    assert found == ["zeta", "alpha", "middle"]


async def test_the_uses_of_models_are_those_of_the_calls(database: AsyncEngine) -> None:
    query = text(
        "SELECT candidate, COUNT(*) AS calls, SUM(prompt_tokens) AS read, SUM(cost) AS cost"
        " FROM calls JOIN requests USING (request_id) WHERE service_level = 'default'"
        " GROUP BY candidate ORDER BY candidate"
    )
    async with database.connect() as connection:
        span = span_of(365, datetime.now(UTC))
        uses = await read_uses(connection, ZOO, "default", span)
        rows = (await connection.execute(query)).all()

    assert [use["candidate"] for use in uses] == [row.candidate for row in rows] != []
    for use, row in zip(uses, rows, strict=True):
        assert (use["calls"], use["prompt_tokens"]) == (row.calls, row.read)
        assert use["cost"] == pytest.approx(row.cost)
        assert 0.4 <= use["median"] <= use["p95"] <= 2.4


async def test_the_spend_of_keys_is_that_of_their_requests(database: AsyncEngine) -> None:
    async with database.connect() as connection:
        spend = await read_spend(connection, ZOO, "gold")
        query = text("SELECT COUNT(*), SUM(cost) FROM outcomes WHERE service_level = 'gold'")
        count, cost = (await connection.execute(query)).one()

    assert sum(each["requests"] for each in spend) == count
    assert sum(each["cost"] for each in spend) == pytest.approx(cost)
    assert spend == sorted(spend, key=lambda each: -each["cost"])
