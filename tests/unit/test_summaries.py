"""The tables of sums say what the log says, after whatever was written in whatever batches."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as drawn
from hypothesis import strategies as st
from sqlalchemy import delete, event, func, select, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.label_kind import PRECEDENCE, LabelKind
from litellm_messplus.records import Record
from litellm_messplus.store import log, precedence
from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.store.summaries import SUMS
from litellm_messplus.store.tables import (
    call_energy,
    calls,
    gradings,
    label_precedence,
    labels,
    request_sums,
    requests,
)
from tests.unit.builders import energy, label, request, served_call
from tests.unit.summing import assert_sums_are_the_logs, eventful, write

POSTGRES = "MESSPLUS_TEST_POSTGRES"
"""Names a URL of an empty Postgres database, where there is one to test on."""
LOGGED = (requests, calls, labels, gradings, call_energy, label_precedence)


@pytest.fixture(params=["sqlite", "postgres"])
async def summed(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AsyncEngine]:
    """An empty log at this code's version, on each database."""
    url = f"sqlite+aiosqlite:///{tmp_path / 'messplus.db'}"
    if request.param == "postgres":
        given = os.environ.get(POSTGRES)
        if given is None:
            pytest.skip(f"{POSTGRES} names no database")
        url = given
    engine = create_engine(url)
    await migrate(engine)
    await empty(engine)
    yield engine
    await engine.dispose()


async def empty(database: AsyncEngine) -> None:
    """As it was made."""
    async with database.begin() as connection:
        for table in (*LOGGED, *SUMS):
            await connection.execute(delete(table))
        await connection.execute(text("UPDATE log_head SET position = 0"))


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # it empties what it is given
@drawn(seed=st.integers(0, 10**6))
async def test_the_sums_are_the_logs_after_any_sequence(summed: AsyncEngine, seed: int) -> None:
    await empty(summed)
    await write(summed, eventful(8, seed), Random(seed))

    await assert_sums_are_the_logs(summed)


RULES = (
    PRECEDENCE,
    (LabelKind.IMPLICIT, LabelKind.JUDGE, LabelKind.CHECK, LabelKind.FEEDBACK),
    (LabelKind.CHECK,),
)


@pytest.mark.parametrize("rule", RULES[1:])
async def test_another_rule_makes_other_sums(
    summed: AsyncEngine, rule: tuple[LabelKind, ...]
) -> None:
    await write(summed, eventful(20, 1), Random(1))
    before = await answered(summed)

    await precedence.save(summed, {"zoo": rule})

    assert await answered(summed) != before
    await assert_sums_are_the_logs(summed)
    await log.append(summed, eventful_after("later"))
    await assert_sums_are_the_logs(summed)
    await precedence.save(summed, {"zoo": PRECEDENCE})
    await assert_sums_are_the_logs(summed)


async def test_the_same_rule_reads_no_requests(summed: AsyncEngine) -> None:
    """Which every start writes down."""
    await write(summed, eventful(5, 2), Random(2))
    read: list[str] = []
    event.listen(summed.sync_engine, "before_cursor_execute", lambda *given: read.append(given[2]))

    await precedence.save(summed, {"zoo": PRECEDENCE, "other": PRECEDENCE})

    assert not [statement for statement in read if "FROM requests" in statement]


async def test_a_batch_that_is_refused_leaves_the_sums_as_they_were(summed: AsyncEngine) -> None:
    await log.append(summed, [request("r1"), served_call("r1")])
    with pytest.raises(IntegrityError):
        await log.append(summed, [request("r2"), served_call("r2"), request("r1")])

    await assert_sums_are_the_logs(summed)


async def test_what_has_no_request_counts_nowhere(summed: AsyncEngine) -> None:
    orphan = served_call("never")
    await log.append(summed, [request("r1"), orphan, energy(orphan, 3.0, 0.5), label("never")])

    await assert_sums_are_the_logs(summed)


async def test_rows_that_leave_the_log_stay_in_the_sums(summed: AsyncEngine) -> None:
    """As where old rows are kept elsewhere: totals are of the whole time all the same."""
    await log.append(summed, [request("old"), served_call("old"), label("old", 0.0)])
    before = await answered(summed)
    async with summed.begin() as connection:
        for table in (labels, calls, requests):
            await connection.execute(delete(table))

    await log.append(summed, [request("new"), served_call("new"), label("new", 1.0)])
    await precedence.save(summed, {"zoo": RULES[1]})

    assert before == (1, 1, 0.0)
    assert await answered(summed) == (2, 2, 1.0)


async def test_a_call_writes_without_reading_calls_and_labels_one_by_one(
    database: AsyncEngine,
) -> None:
    """The usual batch: requests, and the first calls of earlier ones. One statement reads."""
    await log.append(database, [request(f"r{n}") for n in range(20)])
    sent: list[str] = []
    event.listen(
        database.sync_engine, "before_cursor_execute", lambda *given: sent.append(given[2])
    )

    calls_of_them = [served_call(f"r{n}") for n in range(20)]
    await log.append(database, [*(request(f"s{n}") for n in range(20)), *calls_of_them])

    assert sum(statement.startswith("SELECT") for statement in sent) == 1
    assert sum(statement.startswith("INSERT") for statement in sent) == 4


def eventful_after(prefix: str) -> list[Record]:
    """One request with two labels of different kinds that say different things."""
    return [
        request(prefix),
        served_call(prefix),
        label(prefix, 1.0, label_id=f"{prefix}-user"),
        label(prefix, 0.0, label_id=f"{prefix}-check", kind=LabelKind.CHECK, source="check:json"),
    ]


async def answered(database: AsyncEngine) -> tuple[int, int, float]:
    """Requests, those with a verdict, and the sum of satisfaction by weight, of all."""
    names = ("requests", "answered", "weighted_satisfaction")
    query = select(*(func.sum(request_sums.c[name]) for name in names))
    async with database.connect() as connection:
        found = (await connection.execute(query)).one()
    return int(found[0]), int(found[1]), round(float(found[2]), 9)
