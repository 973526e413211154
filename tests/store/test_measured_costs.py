"""Measured energy in the log: calls stay as written, and every figure of cost counts it."""

from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.records import Record
from litellm_messplus.state import snapshot
from litellm_messplus.store import log
from litellm_messplus.store.history import history
from tests.support.builders import SMALL, energy, exploration_call, request, served_call
from tests.support.folding import fold_all

SERVED, EXPLORED = served_call(), exploration_call()
"""By the largest at 5, and by a small one at 1."""


async def rows(database: AsyncEngine, query: str) -> list[dict[str, Any]]:
    async with database.connect() as connection:
        return [dict(row) for row in (await connection.execute(text(query))).mappings()]


async def outcome(database: AsyncEngine, *records: Record) -> dict[str, Any]:
    await log.append(database, [request(), *records])
    (found,) = await rows(database, "SELECT * FROM request_outcomes")
    return found


async def test_a_request_costs_what_its_calls_were_measured_to_cost(database: AsyncEngine) -> None:
    found = await outcome(
        database, SERVED, EXPLORED, energy(SERVED, 700.0, 7.0), energy(EXPLORED, 200.0, 2.0)
    )

    assert (found["served_cost"], found["exploration_cost"], found["cost"]) == (7.0, 2.0, 9.0)
    assert (found["cost_largest"], found["is_measured"]) == (7.0, 1)
    per_model = await rows(database, "SELECT role, cost FROM calls_per_model ORDER BY role")
    assert per_model == [{"role": "exploration", "cost": 2.0}, {"role": "served", "cost": 7.0}]
    (saved,) = await rows(database, "SELECT cost, cost_largest FROM savings")
    assert saved == {"cost": 9.0, "cost_largest": 7.0}


async def test_what_was_not_measured_costs_what_was_estimated(database: AsyncEngine) -> None:
    found = await outcome(database, SERVED, EXPLORED, energy(EXPLORED, 200.0, 2.0))

    assert (found["served_cost"], found["exploration_cost"], found["is_measured"]) == (5.0, 2.0, 0)


async def test_a_price_in_dollars_stands_next_to_measured_joules(database: AsyncEngine) -> None:
    found = await outcome(database, SERVED, energy(SERVED, 700.0, None))

    assert (found["cost"], found["is_measured"]) == (5.0, 1)
    assert await rows(database, "SELECT joules, cost FROM call_energy") == [
        {"joules": 700.0, "cost": None}
    ]


async def test_the_largest_is_measured_where_it_was_explored(database: AsyncEngine) -> None:
    small, large = served_call(candidate=SMALL, cost=1.0), exploration_call(candidate="large")
    found = await outcome(database, small, large, energy(large, 600.0, 6.0))

    assert (found["cost"], found["cost_largest"]) == (7.0, 6.0)


async def test_what_the_cache_answered_saves_nothing(database: AsyncEngine) -> None:
    """It would have answered in place of the largest too."""
    hit = served_call(candidate=SMALL, is_cache_hit=True, cost=0.0)
    found = await outcome(database, hit)

    assert (found["cost"], found["cost_largest"]) == (0.0, 0.0)


async def test_the_calls_stay_as_written_and_the_state_knows_nothing_of_it(
    database: AsyncEngine,
) -> None:
    await log.append(database, [request(), SERVED, EXPLORED])
    calls = await rows(database, "SELECT * FROM calls ORDER BY position")
    state = snapshot.dump((await fold_all(database)).state)

    await log.append(database, [energy(SERVED, 700.0, 7.0)])

    assert await rows(database, "SELECT * FROM calls ORDER BY position") == calls
    assert snapshot.dump((await fold_all(database)).state) == state
    assert await log.head(database) == 4


async def test_the_history_of_a_request_says_whether_it_was_measured(
    database: AsyncEngine,
) -> None:
    await log.append(database, [request(), SERVED, energy(SERVED, 700.0, 7.0), request("r2")])

    found = [await history(database, name) for name in ("r1", "r2")]

    assert [each.outcome["is_measured"] for each in found if each] == [True, False]
    assert type(found[0].outcome["is_measured"] if found[0] else None) is bool
