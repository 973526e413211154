"""Each shared figure is one number wherever it is read: what differed once, and must not again."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.figures.tally import Tally, tallies
from litellm_messplus.records import Record
from litellm_messplus.state.entries import Labelled, Rule
from litellm_messplus.store import log
from litellm_messplus.store.entries import read_entries
from litellm_messplus.store.observed import ObservedLog
from litellm_messplus.store.spending import label_costs
from litellm_messplus.store.sum_tables import outcomes, request_sums, verdicts
from litellm_messplus.vocabulary import CallStatus, Failure, LabelKind
from tests.support.builders import (
    LARGE,
    SMALL,
    energy,
    exploration_call,
    label,
    request,
    served_call,
)

COSTS = {SMALL: 1.0, LARGE: 10.0}


def small(request_id: str) -> list[Record]:
    """A request that the small model served for 1, where the largest would have cost 10."""
    asked = request(request_id, largest=LARGE, chosen=SMALL, estimated_cost=COSTS)
    return [
        replace(asked, is_exploration=False),
        served_call(request_id, candidate=SMALL, cost=1.0),
    ]


async def tally(database: AsyncEngine) -> Tally:
    async with database.connect() as connection:
        (found,) = (await tallies(connection, "zoo", source=request_sums)).values()
    return found


async def saved(database: AsyncEngine) -> float:
    """What may be spent on labels is a share of it."""
    today = datetime.now(UTC).date()
    async with database.connect() as connection:
        return (await label_costs(connection, today, today))["zoo"].saved


async def test_what_happened_costs_what_the_energy_was_measured_to_cost(
    database: AsyncEngine,
) -> None:
    for number in range(5):
        served = served_call(f"r{number}", candidate=SMALL, cost=1.0)
        await log.append(database, [*small(f"r{number}"), energy(served, 5.0, 3.0)])

    happened = await ObservedLog(database, "zoo", ["default"]).happened(None)

    assert happened.cost == (await tally(database)).cost_per_request == 3.0


async def test_a_failed_explored_request_saves_nothing(database: AsyncEngine) -> None:
    await log.append(database, small("r1"))
    assert await saved(database) == 9.0

    failed = served_call("r2", candidate=SMALL, cost=1.0, status=CallStatus.FAILURE)
    asked = request("r2", largest=LARGE, chosen=SMALL, estimated_cost=COSTS)
    explored = exploration_call("r2", 1, candidate=LARGE, cost=10.0)
    await log.append(database, [replace(asked, is_exploration=True), failed, explored])

    assert await saved(database) == (await tally(database)).saved == 9.0


async def test_of_two_checks_that_say_the_same_the_fold_and_the_table_take_one(
    database: AsyncEngine,
) -> None:
    """One of them spoke again, so that the other stands before it in the log."""
    said = [("check:a", 1.0), ("check:b", 0.3), ("check:a", 0.5)]
    labels = [
        label("r1", 0.0, label_id=f"l{place}", kind=LabelKind.CHECK, source=source, weight=weight)
        for place, (source, weight) in enumerate(said)
    ]
    await log.append(database, [*small("r1"), *labels])

    entries = [each async for each in read_entries(database, 0, await log.head(database))]
    last = [each for each in entries if isinstance(each, Labelled)][-1]
    learned = Rule().counting((*last.earlier, last.given))
    async with database.connect() as connection:
        found = (await connection.execute(select(verdicts))).one()
        weight = (await connection.execute(select(outcomes.c.satisfaction_weight))).scalar_one()
    assert learned is not None
    assert (found.source, found.weight, weight) == (learned.source, learned.weight, 0.3)


async def test_who_failed_is_counted_apart_and_what_is_under_way_is_no_failure(
    database: AsyncEngine,
) -> None:
    records: list[Record] = [*small("answered"), *small("under way")[:1]]
    for failure in Failure:
        failed = served_call(failure, status=CallStatus.FAILURE)
        records += [small(failure)[0], replace(failed, failure=failure)]
    await log.append(database, records)

    found = await tally(database)

    assert (found.requests, found.succeeded, found.failed) == (7, 1, 5)
    by_whom = [getattr(found, f"failed_{failure.value}") for failure in Failure]
    assert by_whom == [1] * len(Failure)
    assert found.share_answered == pytest.approx(1 / 6)
