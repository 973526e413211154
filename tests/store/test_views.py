"""The views, and the questions of `docs/sql.md`, say on Postgres what they say on SQLite."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.runtime.vocabulary import CallStatus, Failure
from litellm_messplus.store import log
from litellm_messplus.store.database import create_engine
from litellm_messplus.store.zoo_modes import WAY_BACK
from litellm_messplus.switching.modes import Arm
from tests.support.builders import LARGE, SMALL, label, request, served_call
from tests.support.history import make_history, write_history
from tests.support.postgres import Postgres
from tests.support.questions import questions
from tests.support.switches import change_modes

Rows = list[dict[str, Any]]
AT = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
ADA: dict[str, Any] = {"key_hash": "a", "key_alias": "ada", "team_id": "red", "created_at": AT}
BOB: dict[str, Any] = {"key_hash": "b", "created_at": AT + timedelta(hours=1)}
BEFORE: dict[str, Any] = {"service_level": "gold:before", "arm": Arm.BEFORE}
ANSWERED: tuple[tuple[str, dict[str, Any], float | None, float | None], ...] = (
    ("r1", {**ADA, "tags": ("search", "beta")}, 2.0, 1.0),
    ("r2", {**ADA, "tags": ("search",)}, 1.0, 0.0),
    ("r3", BOB, 3.0, None),
    ("unpriced", BOB, None, None),
    ("before", {**BOB, **BEFORE}, 4.0, None),
)
"""Each with the cost of the small model, which served, and its verdict; the large would have cost
5.0."""
COLUMNS = ("level", "served_by", "outcome", "failure", "judged", "satisfied", "cost", "saved")
EXPECTED: dict[str, tuple[Any, ...]] = {
    "r1": ("default", "router", "answered", None, "feedback", 1.0, 2.0, 3.0),
    "r2": ("default", "router", "answered", None, "feedback", 0.0, 1.0, 4.0),
    "r3": ("default", "router", "answered", None, None, None, 3.0, 2.0),
    "unpriced": ("default", "router", "answered", None, None, None, None, 0.0),
    "before": ("gold", "incumbent", "answered", None, None, None, 4.0, None),
    "failed": ("default", "router", "failed", "upstream", None, None, None, 0.0),
    "left": ("default", "router", "failed", "unknown", None, None, None, 0.0),
    "open": ("default", "router", "open", None, None, None, None, 0.0),
}


async def rows(database: AsyncEngine, query: str) -> Rows:
    async with database.connect() as connection:
        return [dict(row) for row in (await connection.exec_driver_sql(query)).mappings()]


async def test_requests_are_as_logged(either: AsyncEngine) -> None:
    for name, who, cost, value in ANSWERED:
        asked = request(name, chosen=SMALL, largest=LARGE, is_exploration=False, **who)
        await log.append(either, [asked, served_call(name, candidate=SMALL, cost=cost)])
        if value is not None:
            await log.append(either, [label(name, value=value)])
    for name, at in (("failed", AT), ("left", AT), ("open", datetime.now(UTC))):
        await log.append(either, [request(name, is_exploration=False, created_at=at)])
    end = served_call("failed", status=CallStatus.FAILURE, cost=None, failure=Failure.UPSTREAM)
    await log.append(either, [end])

    found = {row["request_id"]: row for row in await rows(either, "SELECT * FROM requests_v")}

    assert {name: tuple(row[each] for each in COLUMNS) for name, row in found.items()} == EXPECTED
    assert (found["r1"]["key_alias"], found["r1"]["team_id"]) == ("ada", "red")
    assert str(found["r1"]["day"]) == "2026-03-01"


async def test_what_happened_stands_by_its_forecast(either: AsyncEngine) -> None:
    await change_modes(either)

    on, canary = await rows(either, "SELECT * FROM forecasts ORDER BY revision")

    assert (on["zoo"], on["revision"], on["mode"], on["ended_by"]) == ("zoo", 2, "on", WAY_BACK)
    assert on["until"] is not None
    assert (on["forecast_requests"], on["requests"]) == (900, 120)
    assert (on["lowest_satisfaction"], on["highest_satisfaction"]) == (0.78, 0.84)
    assert (on["forecast_satisfaction"], on["satisfaction"]) == (0.81, 0.6)
    assert (on["forecast_cost"], on["lowest_cost"], on["cost"]) == (0.3, 0.2, 0.25)
    assert canary["forecast_cost"] is canary["satisfaction"] is canary["until"] is None


async def answers(url: str) -> dict[str, Rows]:
    await write_history(url, make_history(), change_modes)
    engine = create_engine(url)
    asked = questions(engine.dialect.name)
    found = {name: await rows(engine, query) for name, query in asked.items()}
    await engine.dispose()
    return found


def numbers(found: Rows) -> list[list[float]]:
    """The numbers of each row, in one order."""
    kinds = (int, float, Decimal)
    return sorted(
        [float(each) for each in row.values() if isinstance(each, kinds)] for row in found
    )


async def test_answers_are_those_of_sqlite(server: Postgres, tmp_path: Path) -> None:
    there = await answers(await server.new_database())
    here = await answers(f"sqlite+aiosqlite:///{tmp_path / 'messplus.db'}")

    for name, found in here.items():
        assert [[*row] for row in there[name]] == [[*row] for row in found] != [], name
        assert numbers(there[name]) == [*map(pytest.approx, numbers(found))], name
