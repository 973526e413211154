"""Verdicts, outcomes and sums say what the log says, after whatever was written in whatever
batches; and the total of requests is one number, however it is read."""

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import given as drawn
from hypothesis import strategies as st
from sqlalchemy import delete, event, func, select, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.figures.tally import Tally, tallies
from litellm_messplus.learning.logged import MOST_LABELS, Logged, Remembered
from litellm_messplus.learning.outcome import LoggedLabel
from litellm_messplus.learning.projections import save_rules
from litellm_messplus.learning.sums import SUMS
from litellm_messplus.records import Record
from litellm_messplus.rows import rebuilt
from litellm_messplus.runtime.vocabulary import PRECEDENCE, LabelKind
from litellm_messplus.status import reading as queries
from litellm_messplus.status.labels import all_sources, sources
from litellm_messplus.store import log
from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.store.rows import row_of
from litellm_messplus.store.tables import (
    calls,
    gradings,
    label_precedence,
    labels,
    outcomes,
    request_sums,
    requests,
    verdicts,
)
from tests.support.builders import label, request, served_call
from tests.support.postgres import Postgres, postgres_server
from tests.support.summing import assert_projections_are_the_logs, eventful, write

LOGGED = (outcomes, verdicts, requests, calls, labels, gradings, label_precedence)


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres_server() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new database of each kind."""
    if request.param == "sqlite":
        return f"sqlite+aiosqlite:///{tmp_path / 'messplus.db'}"
    found: Postgres = request.getfixturevalue("server")
    return found.database()


@pytest.fixture
async def summed(url: str) -> AsyncIterator[AsyncEngine]:
    """An empty log at this code's version, on each database."""
    engine = create_engine(url)
    await migrate(engine)
    yield engine
    await engine.dispose()


async def empty(database: AsyncEngine) -> None:
    """As it was made."""
    async with database.begin() as connection:
        for table in (*LOGGED, *SUMS):
            await connection.execute(delete(table))
        await connection.execute(text("UPDATE log_head SET position = 0"))


async def test_what_another_process_wrote_between_is_read(summed: AsyncEngine) -> None:
    """A label that was there before its call, and a call that another one made."""
    other = create_engine(summed.url.render_as_string(hide_password=False))
    await log.append(summed, [request("r1"), request("r2")])
    await log.append(other, [label("r1", 0.0), served_call("r2")])
    await log.append(summed, [served_call("r1"), label("r2", 1.0)])
    await log.append(other, [label("r1", 1.0, label_id="second")])
    await other.dispose()

    await assert_projections_are_the_logs(summed)


async def test_what_was_refused_is_not_remembered(summed: AsyncEngine) -> None:
    await log.append(summed, [request("r1")])
    with pytest.raises(IntegrityError):
        await log.append(summed, [served_call("r1"), label("r1"), request("r1")])
    await log.append(summed, [served_call("r1"), label("r1")])

    await assert_projections_are_the_logs(summed)


def test_only_the_newest_requests_are_remembered() -> None:
    recent = Remembered(most=3)
    for number in range(5):
        recent.keep({f"r{number}": Logged({})}, {}, number)

    assert list(recent.take(4)[0]) == ["r2", "r3", "r4"]
    assert not recent.take(4)[0], "who took it may have changed it"


def test_a_request_with_many_labels_is_read_from_the_log() -> None:
    one = rebuilt(LoggedLabel, row_of(label("r1"), 1))
    recent = Remembered()
    recent.keep({"r1": Logged({}, labels=[one] * MOST_LABELS)}, {}, 1)
    assert list(recent.take(1)[0]) == ["r1"]
    recent.keep({"r1": Logged({}, labels=[one] * (MOST_LABELS + 1))}, {}, 2)
    assert len(recent._requests) == 0


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=8,
    phases=[Phase.generate],  # a smaller seed is no smaller log
)
@drawn(seed=st.integers(0, 10**6))
async def test_requests_come_to_one_number_in_any_order(summed: AsyncEngine, seed: int) -> None:
    """Outcomes added up in Python, by the database, and as they came in."""
    await empty(summed)  # of the example before
    other = create_engine(summed.url.render_as_string(hide_password=False))
    await write([summed, other], eventful(6, seed), Random(seed))
    await other.dispose()

    await assert_projections_are_the_logs(summed)
    level = ("zoo", "service_level")
    async with summed.connect() as connection:
        rows = (await connection.execute(select(outcomes))).all()
        in_python = {
            key: Tally.of(row for row in rows if (row.zoo, row.service_level) == key)
            for key in {(row.zoo, row.service_level) for row in rows}
        }
        for source in (outcomes, request_sums):
            assert plain(await tallies(connection, *level, source=source)) == plain(in_python)


RULES = (
    PRECEDENCE,
    (LabelKind.JUDGE, LabelKind.CHECK, LabelKind.FEEDBACK),
    (LabelKind.CHECK,),
)


@pytest.mark.parametrize("rule", RULES[1:])
async def test_another_rule_another_sums(summed: AsyncEngine, rule: tuple[LabelKind, ...]) -> None:
    await write([summed], eventful(20, 1), Random(1))
    before = await answered(summed)

    await save_rules(summed, {"zoo": rule})

    assert await answered(summed) != before
    await assert_projections_are_the_logs(summed)
    await log.append(summed, eventful_after("later"))
    await assert_projections_are_the_logs(summed)
    await save_rules(summed, {"zoo": PRECEDENCE})
    await assert_projections_are_the_logs(summed)


async def test_the_same_rule_reads_no_requests(summed: AsyncEngine) -> None:
    """Which every start writes down."""
    await write([summed], eventful(5, 2), Random(2))
    read: list[str] = []
    event.listen(summed.sync_engine, "before_cursor_execute", lambda *given: read.append(given[2]))

    await save_rules(summed, {"zoo": PRECEDENCE, "other": PRECEDENCE})

    assert not [statement for statement in read if "FROM requests" in statement]


async def test_a_batch_that_is_refused_leaves_the_sums_as_they_were(summed: AsyncEngine) -> None:
    await log.append(summed, [request("r1"), served_call("r1")])
    with pytest.raises(IntegrityError):
        await log.append(summed, [request("r2"), served_call("r2"), request("r1")])

    await assert_projections_are_the_logs(summed)


async def test_what_has_no_request_counts_nowhere(summed: AsyncEngine) -> None:
    orphan = served_call("never")
    await log.append(summed, [request("r1"), orphan, label("never")])

    await assert_projections_are_the_logs(summed)


async def test_rows_that_leave_the_log_stay_in_the_sums(summed: AsyncEngine) -> None:
    """As where old rows are kept elsewhere: totals are of the whole time all the same."""
    await log.append(summed, [request("old"), served_call("old"), label("old", 0.0)])
    before = await answered(summed)
    async with summed.begin() as connection:
        for table in (labels, calls, requests, outcomes, verdicts):
            await connection.execute(delete(table))

    await log.append(summed, [request("new"), served_call("new"), label("new", 1.0)])
    await save_rules(summed, {"zoo": RULES[1]})

    assert before == (1, 1, 0.0)
    assert await answered(summed) == (2, 2, 1.0)


async def test_the_usual_batch_reads_none(database: AsyncEngine) -> None:
    """Requests, and the first calls of those that this process wrote before."""
    await log.append(database, [request(f"r{n}") for n in range(20)])
    sent: list[str] = []
    event.listen(
        database.sync_engine, "before_cursor_execute", lambda *given: sent.append(given[2])
    )

    calls_of_them = [served_call(f"r{n}") for n in range(20)]
    batch: list[Record] = [*(request(f"s{n}") for n in range(20)), *calls_of_them]
    await log.append(database, batch)

    assert sum(statement.startswith("SELECT") for statement in sent) == 0
    assert sum(statement.startswith("INSERT") for statement in sent) == 5


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
    names = ("requests", "judged", "weighted_satisfaction")
    query = select(*(func.sum(request_sums.c[name]) for name in names))
    async with database.connect() as connection:
        found = (await connection.execute(query)).one()
    return int(found[0]), int(found[1]), round(float(found[2]), 9)


@pytest.mark.parametrize("seed", range(4))
async def test_the_whole_times_status_is_a_full_windows(summed: AsyncEngine, seed: int) -> None:
    """The window asks the log itself, request by request."""
    await write([summed], eventful(25, seed), Random(seed))

    async with summed.connect() as connection:
        everything = await queries.window_start(connection, 10_000)
        assert set(everything.values()) == {0}
        pairs: list[tuple[Mapping[Any, Any], Mapping[Any, Any]]] = [
            (await queries.totals(connection), await queries.totals(connection, everything)),
            (await all_sources(connection), await sources(connection, everything)),
        ]
    for of_sums, of_log in pairs:
        assert len(of_log) == 4
        assert plain(of_sums) == plain(of_log)


def plain(found: Mapping[Any, Any]) -> dict[Any, Any]:
    """Numbers but for rounding, in an order of their own."""
    return {key: _near(value) for key, value in found.items()}


def _near(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {name: _near(each) for name, each in asdict(value).items()}
    if isinstance(value, tuple):
        return [_near(each) for each in value]
    return round(value, 9) if isinstance(value, float) else value
