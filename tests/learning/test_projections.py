"""Verdicts, outcomes and sums say what the log says, after whatever was written in whatever
batches; and the total of requests is one number, however it is read."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import asdict, is_dataclass
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import given as drawn
from hypothesis import strategies as st
from sqlalchemy import delete, event, insert, select, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.figures.tally import Tally, tallies
from litellm_messplus.learning import learner
from litellm_messplus.learning.learner import Learner
from litellm_messplus.learning.projections import rules_of, save_rules
from litellm_messplus.records import Record, RequestRecord
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.vocabulary import PRECEDENCE, LabelKind
from litellm_messplus.status import reading as queries
from litellm_messplus.status.labels import all_sources, sources
from litellm_messplus.store import hours, log, pruning
from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.store.hours import REQUESTS
from litellm_messplus.store.tables import metadata, outcomes, requests, snapshots
from tests.support.builders import NOW, label, request, served_call
from tests.support.postgres import Postgres, postgres_server
from tests.support.summing import (
    assert_projections_are_the_logs,
    batches,
    eventful,
    sums,
    write,
)

LEVEL = ("zoo", "service_level")


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
        for table in metadata.tables.values():
            if table.name not in ("log_head", "learner", "worker_counters"):
                await connection.execute(delete(table))
        beginning = "position = 0, start = 0, summed = 0, precedence = '{}'"
        await connection.execute(text(f"UPDATE log_head SET {beginning}"))


def again(database: AsyncEngine) -> AsyncEngine:
    """As another process opens it, or the same one after a restart."""
    return create_engine(database.url.render_as_string(hide_password=False))


# Hours and later requests are what all requests come to.


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=8,
    phases=[Phase.generate],  # a smaller seed is no smaller log
)
@drawn(seed=st.integers(0, 10**6))
async def test_sums_are_what_all_outcomes_come_to(
    summed: AsyncEngine, tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    """Beside a log that is never summed, pruned or opened again."""
    whole = create_engine(f"sqlite+aiosqlite:///{tmp_path_factory.mktemp('whole') / 'log.db'}")
    await migrate(whole)
    await empty(summed)  # of the example before
    random, database = Random(seed), again(summed)
    for batch in batches(with_late_words(eventful(6, seed), random), random):
        taken = await _still_known(database, batch)
        for each in (database, whole):
            await log.append(each, taken)
        head = await log.head(database)
        if random.random() < 0.3:
            await hours.settle(database, random.randint(0, head))
        if random.random() < 0.1:
            await _prune(database, head, random)
        if random.random() < 0.1:
            rule = random.choice(RULES)
            for each in (database, whole):
                await save_rules(each, {"zoo": rule})
        if random.random() < 0.3:
            await database.dispose()
            database = again(summed)

    async with database.connect() as one, whole.connect() as other:
        assert await sums(one) == await sums(other)
        rows = (await other.execute(select(outcomes))).all()
        found = await tallies(one, *LEVEL, source=REQUESTS)
    in_python = {
        key: Tally.of(row for row in rows if (row.zoo, row.service_level) == key)
        for key in {(row.zoo, row.service_level) for row in rows}
    }
    assert plain(found) == plain(in_python)
    for each in (database, whole):
        await each.dispose()


def with_late_words(records: list[Record], random: Random) -> list[Record]:
    """Some records come long after all else about their requests."""
    late = [
        each for each in records if not isinstance(each, RequestRecord) and random.random() < 0.2
    ]
    return [each for each in records if each not in late] + late


async def _still_known(database: AsyncEngine, batch: list[Record]) -> list[Record]:
    """Without the records of pruned requests, which the log refuses."""
    async with database.connect() as connection:
        known = set((await connection.execute(select(requests.c.request_id))).scalars())
    new = {each.request_id for each in batch if isinstance(each, RequestRecord)}
    return [each for each in batch if getattr(each, "request_id", None) in known | new]


async def _prune(database: AsyncEngine, head: int, random: Random) -> None:
    """Delete what is older than some hour, as if snapshots held all of it."""
    row = {"position": head, "fingerprint": "", "created_at": NOW, "state": b""}
    async with database.begin() as connection:
        await connection.execute(delete(snapshots))
        rows = [{**row, "zoo": zoo} for zoo in ("zoo", "other")]
        await connection.execute(insert(snapshots), rows)
    await pruning.delete_some(database, NOW + timedelta(hours=random.randrange(48)), None)


@pytest.mark.parametrize("seed", range(4))
async def test_the_whole_times_status_is_a_full_windows(summed: AsyncEngine, seed: int) -> None:
    """The window asks the log itself, request by request."""
    await write([summed], eventful(25, seed), Random(seed))
    await hours.settle(summed, await log.head(summed) // 2)

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


async def test_it_settles_in_short_steps(
    summed: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other writers wait for each; one that ends between two has lost nothing."""
    monkeypatch.setattr(hours, "AT_ONCE", 7)
    await log.append(summed, [request(f"r{number}") for number in range(20)])
    held: list[str] = []
    event.listen(summed.sync_engine, "commit", lambda _: held.append("commit"))

    await hours.settle(summed, 18)
    await hours.settle(summed, 5)  # as a learner that was slower than another one

    assert len(held) == 4 + 1
    async with summed.connect() as connection:
        numbers = await connection.execute(text("SELECT summed FROM log_head"))
        assert numbers.scalar_one() == 18
        kept = await connection.execute(text("SELECT SUM(requests) FROM hours"))
        assert kept.scalar_one() == 18
    await assert_projections_are_the_logs(summed)


async def test_the_learner_moves_the_sums_on(
    database: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a restart to where it began, then to where the log was a while ago."""
    monkeypatch.setattr(learner, "SUM_SECONDS", 0.0)
    await log.append(database, [request("r1"), request("r2")])
    restarted = Learner(database, {}, Counters(), position=1)

    await restarted.look()
    assert (await log.ends(database)).summed == 1
    await log.append(database, [request("r3")])
    await restarted.look()
    assert (await log.ends(database)).summed == 2


# What is derived in the transaction that appends.


async def test_what_another_process_wrote_between_is_read(summed: AsyncEngine) -> None:
    """A label that was there before its call, and a call that another one made."""
    other = again(summed)
    await log.append(summed, [request("r1"), request("r2")])
    await log.append(other, [label("r1", 0.0), served_call("r2")])
    await log.append(summed, [served_call("r1"), label("r2", 1.0)])
    await log.append(other, [label("r1", 1.0, label_id="second")])
    await other.dispose()

    await assert_projections_are_the_logs(summed)


async def test_a_refused_batch_changes_nothing(summed: AsyncEngine) -> None:
    """Nor is it remembered."""
    await log.append(summed, [request("r1")])
    await hours.settle(summed, 1)
    with pytest.raises(IntegrityError):
        await log.append(summed, [served_call("r1"), label("r1"), request("r1")])
    await assert_projections_are_the_logs(summed)

    await log.append(summed, [served_call("r1"), label("r1")])
    await assert_projections_are_the_logs(summed)


RULES = (
    PRECEDENCE,
    (LabelKind.JUDGE, LabelKind.CHECK, LabelKind.FEEDBACK),
    (LabelKind.CHECK,),
)


@pytest.mark.parametrize("rule", RULES[1:])
async def test_another_rule_another_sums(summed: AsyncEngine, rule: tuple[LabelKind, ...]) -> None:
    await write([summed], eventful(20, 1), Random(1))
    await hours.settle(summed, await log.head(summed) // 2)
    async with summed.connect() as connection:
        before = await sums(connection)

    await save_rules(summed, {"zoo": rule})

    async with summed.connect() as connection:
        assert await sums(connection) != before
    await assert_projections_are_the_logs(summed)
    await save_rules(summed, {"zoo": PRECEDENCE})
    async with summed.connect() as connection:
        assert await sums(connection) == before


async def test_workers_that_start_together_write_one_rule(summed: AsyncEngine) -> None:
    """And leave that of other zoos."""
    await save_rules(summed, {"zoo": PRECEDENCE, "other": (LabelKind.JUDGE,)})
    await asyncio.gather(*(save_rules(summed, {"zoo": (LabelKind.CHECK,)}) for _ in range(4)))
    async with summed.connect() as connection:
        assert await rules_of(connection) == {"zoo": ["check"], "other": ["judge"]}


async def test_the_same_rule_reads_no_requests(summed: AsyncEngine) -> None:
    """Which every start writes down."""
    await write([summed], eventful(5, 2), Random(2))
    read: list[str] = []
    event.listen(summed.sync_engine, "before_cursor_execute", lambda *given: read.append(given[2]))

    await save_rules(summed, {"zoo": PRECEDENCE, "other": PRECEDENCE})

    assert not [statement for statement in read if "FROM requests" in statement]


async def test_what_has_no_request_counts_nowhere(summed: AsyncEngine) -> None:
    orphan = served_call("never")
    await log.append(summed, [request("r1"), orphan, label("never")])

    await assert_projections_are_the_logs(summed)


async def test_the_usual_batch_reads_none(database: AsyncEngine) -> None:
    """Requests, and the first calls of those that this process wrote before: no sum changes."""
    await log.append(database, [request(f"r{n}") for n in range(20)])
    sent: list[str] = []
    event.listen(
        database.sync_engine, "before_cursor_execute", lambda *given: sent.append(given[2])
    )

    calls_of_them = [served_call(f"r{n}") for n in range(20)]
    batch: list[Record] = [*(request(f"s{n}") for n in range(20)), *calls_of_them]
    await log.append(database, batch)

    written = [" ".join(statement.split()[:3]) for statement in sent if "PRAGMA" not in statement]
    assert written == [
        "UPDATE log_head SET",
        *(f"INSERT INTO {table}" for table in ("requests", "calls", "outcomes")),
    ]


def plain(found: Mapping[Any, Any]) -> dict[Any, Any]:
    """Numbers but for rounding, in an order of their own."""
    return {key: _near(value) for key, value in found.items()}


def _near(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {name: _near(each) for name, each in asdict(value).items()}
    if isinstance(value, tuple):
        return [_near(each) for each in value]
    return round(value, 9) + 0.0 if isinstance(value, float) else value
