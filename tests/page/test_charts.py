"""What the charts of the page show: spans, points that agree with the log, marks, and models."""

from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from sqlalchemy import event, select, text
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.figures.figure import LINK
from litellm_messplus.page.charts import (
    DAY,
    HOUR,
    LONGEST_DAYS,
    NEWEST,
    STEPS_AT_MOST,
    Charted,
    Point,
    read_days,
    read_models,
    read_newest,
    span_of,
)
from litellm_messplus.page.data import what_to_do
from litellm_messplus.page.details import read_spend, read_uses
from litellm_messplus.status.alerts import AlertKind
from litellm_messplus.status.build import read_status
from litellm_messplus.store import log
from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.store.tables import calls, metadata
from litellm_messplus.store.zoo_modes import WAY_BACK, ModeRow, append
from tests.page.scenes import FAILED, SERVED, WATCHED
from tests.page.seeded import ALPHA, LARGE, ZOO
from tests.support.builders import request, served_call
from tests.support.markdown import ROOT

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
    return list((await charted(database, level, days)).points)


async def charted(database: AsyncEngine, level: str, days: int | None) -> Charted:
    async with database.connect() as connection:
        if days is None:
            return await read_newest(connection, ZOO, level)
        return await read_days(connection, ZOO, level, span_of(days, datetime.now(UTC)))


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
    points, expected = await points_of(database, level, days), await logged(database, level, days)

    assert sum(point.requests for point in points) == expected.requests > 0
    assert sum(point.judged for point in points) == expected.judged
    assert sum(point.cost for point in points) == pytest.approx(expected.cost)
    assert sum(sum(point.served.values()) for point in points) == expected.requests


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


async def test_a_range_takes_three_statements_along_primary_keys(database: AsyncEngine) -> None:
    executed: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, given: Any, *_: Any) -> None:
        executed.append((statement, given))

    event.listen(database.sync_engine, "before_cursor_execute", note)
    for days in RANGES:
        executed.clear()
        await points_of(database, "default", days)
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

    assert len(found.points) == 30
    assert {(point.requests, point.rate) for point in found.points} == {(0, None)}
    assert not found.is_before
    assert (await charted(database, "silver", None)).points == []


async def test_the_newest_requests_are_points_up_to_the_newest(database: AsyncEngine) -> None:
    found = await charted(database, "default", None)
    points = found.points

    assert len(points) <= STEPS_AT_MOST
    assert sum(point.requests for point in points) == NEWEST
    steps = {(after.at - at.at).total_seconds() for at, after in pairwise(points)}
    assert steps == {found.step_seconds}
    status = await read_status(database, NEWEST, with_calibration=False)
    window = next(each for each in status["levels"] if each["service_level"] == "default")["last"]
    assert sum(point.cost for point in points) == pytest.approx(window["cost"]["total"])
    assert window["savings"] is not None
    paid_at_largest = sum(point.paid_at_largest for point in points)
    assert paid_at_largest == pytest.approx(window["savings"]["cost_largest"])


# What was served as before, and an outage.

A_DAY, NEWEST_ONLY = 1, None


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
    points = (await charted(out, "default", days)).points

    assert sum(point.requests for point in points) == SERVED + FAILED
    assert sum(point.answered for point in points) == SERVED
    assert sum(point.failed for point in points) == FAILED
    assert sum(sum(point.served.values()) for point in points) == SERVED  # not the failed


async def test_an_outage_is_marked_where_it_begins(out: AsyncEngine) -> None:
    (mark,) = (await charted(out, "default", NEWEST_ONLY)).marks

    assert mark.is_alarm
    assert mark.words.startswith(f"{FAILED} of ")


async def test_a_few_failures_are_not_marked(aside: AsyncEngine) -> None:
    assert (await charted(aside, "default", NEWEST_ONLY)).marks == []


@pytest.mark.parametrize("days", [NEWEST_ONLY, A_DAY])
async def test_where_nothing_is_routed_it_is_what_was_served_as_before(
    aside: AsyncEngine, days: int | None
) -> None:
    found = await charted(aside, "default", days)

    assert found.is_before
    expected = WATCHED if days else NEWEST
    assert sum(point.requests for point in found.points) == expected
    assert {name for point in found.points for name in point.served} == {LARGE}


async def test_changes_of_the_mode_are_marked(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite+aiosqlite:///{tmp_path / 'messplus.db'}")
    await migrate(engine)
    now = datetime.now(UTC)
    await log.append(engine, [request("r0", zoo=ZOO, created_at=now), served_call("r0")])
    known: dict[str, Any] = {"before": "litellm", "at": now, "file_fingerprint": ""}
    for revision, mode, by in ((1, "canary", "file"), (2, "watch", WAY_BACK)):
        row = ModeRow(ZOO, revision, mode, 0.3, by=by, reason="it is time", **known)
        assert await append(engine, row)
    found = await charted(engine, "default", A_DAY)
    await engine.dispose()

    assert [(mark.words, mark.is_alarm) for mark in found.marks] == [
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
        " GROUP BY candidate"
    )
    async with database.connect() as connection:
        span = span_of(365, datetime.now(UTC))
        uses = await read_uses(connection, ZOO, "default", span)
        rows = (await connection.execute(query)).all()

    assert {row.candidate for row in rows} == set(uses) != set()
    for row in rows:
        use = uses[row.candidate]
        assert use.calls + use.unseen == row.calls
        assert use.prompt_tokens == row.read
        assert use.cost == pytest.approx(row.cost)


async def test_the_seconds_are_those_of_the_newest_answers(out: AsyncEngine) -> None:
    query = select(calls.c.candidate, calls.c.seconds).where(
        calls.c.role == "served", calls.c.status == "success"
    )
    async with out.connect() as connection:
        rows = (await connection.execute(query)).all()
        uses = await read_uses(connection, ZOO, "default", span_of(1, datetime.now(UTC)))
    for name in {row.candidate for row in rows}:
        seconds = [row.seconds for row in rows if row.candidate == name]
        assert uses[name].p95_seconds == max(seconds)  # of fewer than twenty
        assert (uses[name].median_seconds or 0.0) <= median(seconds)


async def test_what_a_cache_repeated_took_no_time(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite+aiosqlite:///{tmp_path / 'messplus.db'}")
    await migrate(engine)
    now = datetime.now(UTC)
    decided = request("r0", zoo=ZOO, created_at=now)
    await log.append(engine, [decided, served_call("r0", is_cache_hit=True)])
    async with engine.connect() as connection:
        (use,) = (await read_uses(connection, ZOO, "default", span_of(1, now))).values()
    await engine.dispose()

    assert (use.calls, use.median_seconds) == (1, None)


async def test_the_spend_of_keys_is_that_of_their_requests(database: AsyncEngine) -> None:
    async with database.connect() as connection:
        spend = await read_spend(connection, ZOO, "gold")
        query = text("SELECT COUNT(*), SUM(cost) FROM outcomes WHERE service_level = 'gold'")
        count, cost = (await connection.execute(query)).one()

    assert sum(each["requests"] for each in spend) == count
    assert sum(each["cost"] for each in spend) == pytest.approx(cost)
    assert spend == sorted(spend, key=lambda each: -each["cost"])


# What to do about an alert.


@pytest.mark.parametrize("kind", AlertKind)
def test_what_to_do_is_a_line_of_the_runbook(kind: AlertKind) -> None:
    section = (ROOT / "docs" / "runbook.md").read_text().split(f"\n## {kind}\n")[1]
    own = " ".join(LINK.sub(r"\1", section.partition("\n## ")[0]).split())

    assert what_to_do({"kind": kind, "zoo": "llama"}) in own
