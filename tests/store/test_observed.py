"""The newest requests of a stream that were decided aside, in a reading that has a bound."""

from datetime import timedelta

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.runtime.vocabulary import WARM_UP
from litellm_messplus.store import observed
from litellm_messplus.store.log import append
from litellm_messplus.store.observed import ObservedLog
from litellm_messplus.switching.modes import Arm
from tests.support.builders import LARGE, NOW, SMALL, request

EVERY = 5
"""One of so many is decided."""


async def watched(database: AsyncEngine, count: int) -> ObservedLog:
    """A zoo of which so many requests were served as before, a fifth of them decided."""
    records = [
        request(
            f"r{number}",
            created_at=NOW + timedelta(seconds=number),
            service_level="default:before",
            expected_t=number,
            arm=Arm.BEFORE,
            chosen=LARGE,
            would_choose=SMALL if number % EVERY == 0 else None,
            would_cost=1.0,
            estimated_cost={SMALL: float(number), LARGE: 1.0},
            estimated_satisfaction={SMALL: 0.5, LARGE: 0.9},
        )
        for number in range(1, count + 1)
    ]
    await append(database, records)
    return ObservedLog(database, "zoo", ["default"])


async def test_those_that_were_not_decided_take_no_place(database: AsyncEngine) -> None:
    log = await watched(database, WARM_UP + 100)
    found = await log.aside(most=10)
    newest = range(WARM_UP + 100 - 9 * EVERY, WARM_UP + 101, EVERY)
    assert [each.expected_cost for each in found] == [float(number) for number in newest]


async def test_the_first_are_left_out(database: AsyncEngine) -> None:
    found = await (await watched(database, WARM_UP + 100)).aside()
    assert len(found) == 100 // EVERY
    assert min(each.expected_cost for each in found) > WARM_UP


async def test_they_are_looked_for_among_a_bounded_number(
    database: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observed, "FARTHEST", 50)
    found = await (await watched(database, WARM_UP + 100)).aside()
    assert len(found) == 50 // EVERY
