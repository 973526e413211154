"""A request whose answer was replaced costs what both calls cost, and is what the second was."""

from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.records import Record, replaced_call_id
from litellm_messplus.store import log
from litellm_messplus.store.hours import CALLS
from litellm_messplus.store.tables import outcomes
from tests.support.builders import (
    LARGE,
    SMALL,
    exploration_call,
    label,
    replaced_call,
    request,
    served_call,
)
from tests.support.summing import assert_projections_are_the_logs


async def came_to(database: AsyncEngine, *records: Record, largest: str = LARGE) -> Any:
    await log.append(database, [request(largest=largest), *records])
    await assert_projections_are_the_logs(database)
    async with database.connect() as connection:
        return (await connection.execute(select(outcomes))).one()


async def test_both_calls_were_paid_to_serve(database: AsyncEngine) -> None:
    unseen = exploration_call(cost=0.25)
    found = await came_to(database, replaced_call(cost=1.0), served_call(cost=5.0), unseen)

    assert (found.served, found.served_cost, found.exploration_cost) == (LARGE, 6.0, 0.25)
    assert (found.cost, found.cost_largest) == (6.25, 5.0)
    async with database.connect() as connection:
        by_role = {row.role: row.cost for row in await connection.execute(select(CALLS))}
    assert by_role == {"replaced": 1.0, "served": 5.0, "exploration": 0.25}


async def test_a_first_answer_of_the_largest_tells_its_cost(database: AsyncEngine) -> None:
    found = await came_to(database, replaced_call(cost=1.5), served_call(cost=5.0), largest=SMALL)
    assert found.cost_largest == 1.5


@pytest.mark.parametrize(("priced", "expected"), [(2.5, 2.5), (None, 9.0)])
async def test_the_largests_price_comes_before_an_estimate(
    database: AsyncEngine, priced: float | None, expected: float
) -> None:
    asked = request(largest=LARGE, estimated_cost={SMALL: 1.0, LARGE: 9.0}, is_exploration=False)
    await log.append(database, [asked, served_call(candidate=SMALL, cost_largest=priced)])
    async with database.connect() as connection:
        assert (await connection.execute(select(outcomes.c.cost_largest))).scalar_one() == expected


@pytest.mark.parametrize("replaced", [None, 1.0])
async def test_an_unknown_cost_of_either_is_no_cost_of_serving(
    database: AsyncEngine, replaced: float | None
) -> None:
    served = None if replaced else 5.0
    found = await came_to(database, replaced_call(cost=replaced), served_call(cost=served))

    assert found.served_cost is None
    assert found.cost == (replaced or served)


async def test_the_verdict_is_on_the_answer_that_the_user_saw(database: AsyncEngine) -> None:
    of_first = label(value=0.0, call_id=replaced_call_id("r1"), label_id="first")
    found = await came_to(database, replaced_call(), served_call(), of_first, label(value=1.0))
    assert found.satisfaction == 1.0


async def test_before_the_second_has_ended_no_call_served(database: AsyncEngine) -> None:
    found = await came_to(database, replaced_call(cost=1.0))

    assert (found.served, found.status, found.cost) == (None, None, 1.0)
