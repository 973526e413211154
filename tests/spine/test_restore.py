"""A start goes on exactly where the log ends, from a snapshot or without."""

from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.core import snapshot
from litellm_messplus.core.engine import Engine, Question
from litellm_messplus.restore import keep, restore
from litellm_messplus.runtime.errors import BrokenLogError
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.store import log, snapshots
from tests.support.builders import (
    POLICIES,
    PRICES,
    SMALL,
    build_engine,
    build_zoo,
    label,
    labelled,
    pair,
    point,
    request,
    served_call,
    traffic,
)
from tests.support.folding import bits, fold_all, only_zoo


async def restored(database: AsyncEngine, zoo: Zoo | None = None) -> Engine:
    engine = build_engine(zoo)
    assert await restore(database, only_zoo(engine)) == await log.head(database)
    return engine


async def test_an_empty_log_is_the_empty_state(database: AsyncEngine, zoo: Zoo) -> None:
    assert bits(await restored(database, zoo)) == bits(build_engine(zoo))


async def test_without_a_snapshot_the_whole_log_is_folded(database: AsyncEngine, zoo: Zoo) -> None:
    await log.append(database, traffic(40))
    assert bits(await restored(database, zoo)) == bits(await fold_all(database, zoo))


@pytest.mark.parametrize("cut", [1, 37, 80])
async def test_a_snapshot_is_as_the_whole_log(database: AsyncEngine, zoo: Zoo, cut: int) -> None:
    records = traffic(40)
    await log.append(database, records[:cut])
    await keep(database, await fold_all(database, zoo), cut)
    await log.append(database, records[cut:])
    assert bits(await restored(database, zoo)) == bits(await fold_all(database, zoo))


async def test_a_snapshot_saves_reading_what_it_covers(database: AsyncEngine, zoo: Zoo) -> None:
    """Seen by a snapshot that says something else than the log."""
    await log.append(database, [request(), label(value=0.0)])
    other = build_engine(zoo)
    for _ in range(10):
        other.apply(labelled(0.0, alpha=0.7))
    await keep(database, other, 2)
    await log.append(database, [request("r2"), label("r2", 0.0)])
    engine = await restored(database, zoo)
    assert engine.state.policy.queue("default") == pytest.approx(7.6)
    assert engine.state.requests["default"] == 1


@pytest.mark.parametrize(
    "changed",
    [
        build_zoo(policy="paper", learning_rate=0.5),
        build_zoo({**PRICES, "new": PRICES[SMALL]}, policy="paper"),
        build_zoo(policy="adaptive"),
    ],
    ids=["learning rate", "candidates", "policy"],
)
async def test_changed_settings_fold_the_log_again(database: AsyncEngine, changed: Zoo) -> None:
    await log.append(database, traffic(40))
    before = await fold_all(database, build_zoo(policy="paper"))
    await keep(database, before, await log.head(database))
    engine = await restored(database, changed)
    assert bits(engine) == bits(await fold_all(database, changed))
    assert bits(engine) != bits(before)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"policy": "adaptive"}, {"policy": "adaptive", "alpha": 0.99}),
        ({"policy": "paper"}, {"policy": "paper", "alpha": 0.99, "V": 3.0, "c": 1.0}),
    ],
    ids=POLICIES,
)
async def test_a_changed_promise_goes_on_from_the_snapshot(
    database: AsyncEngine, before: dict[str, Any], after: dict[str, Any]
) -> None:
    """What was promised at the time stays counted; only what comes is held to the new alpha."""
    await log.append(database, traffic(20))
    whole = await fold_all(database, build_zoo(**before))
    await keep(database, whole, await log.head(database))
    assert bits(await restored(database, build_zoo(**after))) == bits(whole)


@pytest.mark.parametrize("kept", [0, 20, 300], ids=["empty", "cut very short", "cut short"])
async def test_an_unreadable_snapshot_costs_time_and_nothing_else(
    database: AsyncEngine, zoo: Zoo, kept: int, caplog: pytest.LogCaptureFixture
) -> None:
    await log.append(database, traffic(20))
    whole = await fold_all(database, zoo)
    await keep(database, whole, await log.head(database))
    async with database.begin() as connection:
        await connection.exec_driver_sql(
            "UPDATE snapshots SET state = substr(state, 1, ?)", (kept,)
        )
    assert bits(await restored(database, zoo)) == bits(whole)
    assert "unreadable" in caplog.text


@pytest.mark.parametrize("policy", POLICIES)
async def test_each_zoo_goes_on_from_its_own_snapshot(database: AsyncEngine, policy: str) -> None:
    zoos = {name: build_zoo(name=name, policy=policy) for name in ("zoo", "second", "new")}
    await log.append(database, [*traffic(10), *traffic(10, prefix="s", zoo="second")])
    early = await log.head(database)
    await keep(database, await fold_all(database, zoos["second"]), early)
    await log.append(database, traffic(5, prefix="t", zoo="second"))
    await keep(database, await fold_all(database, zoos["zoo"]), await log.head(database))
    await log.append(database, [*traffic(5, prefix="u"), *traffic(3, prefix="gone", zoo="removed")])
    engines = {name: build_engine(zoo) for name, zoo in zoos.items()}
    assert await restore(database, engines) == await log.head(database)
    for name, zoo in zoos.items():
        assert bits(engines[name]) == bits(await fold_all(database, zoo))
    assert engines["second"].state.requests
    assert not engines["new"].state.requests


async def test_numbering_goes_on_after_a_restart(database: AsyncEngine, zoo: Zoo) -> None:
    await log.append(database, [request("r1"), request("r2"), request("g1", service_level="gold")])
    engine = await restored(database, zoo)
    level = engine.zoo.levels["default"]
    assert engine.situation(Question("r3", level, point(0, 0), 0, engine.zoo.candidates)).t == 3


async def test_an_entry_that_does_not_fold_stops_no_start(database: AsyncEngine, zoo: Zoo) -> None:
    """The journal counts such an entry and passes it over; a restart must end where it did."""
    wrong = request("r1", features=pair(1, 0)[:1])  # of another dimension under the same name
    await log.append(database, [wrong, served_call("r1"), label("r1", 0.6)])
    await log.append(database, [request("r2"), label("r2", 0.0)])
    engine = await restored(database, zoo)
    assert engine.state.requests["default"] == 2
    assert engine.state.policy.queue("default") == 0.6


async def test_a_snapshot_ahead_of_the_log_is_dropped_and_the_log_folded(
    database: AsyncEngine, zoo: Zoo, caplog: pytest.LogCaptureFixture
) -> None:
    """An older copy of the log was put back, and the snapshots were not."""
    await log.append(database, traffic(20))
    whole = await fold_all(database, zoo)
    head = await log.head(database)
    elsewhere = build_engine(zoo)
    elsewhere.apply(labelled(0.0))
    for ahead in (1, 2, 3):
        await keep(database, elsewhere, head + ahead)
    assert bits(await restored(database, zoo)) == bits(whole)
    assert "ahead of the log" in caplog.text
    await keep(database, whole, head)  # which is not pushed out by the dropped ones
    fingerprint = snapshot.fingerprint(whole.zoo, whole.encoder.name)
    kept = await snapshots.newest(database, zoo.name, fingerprint)
    assert kept is not None
    assert kept.position == head


async def test_a_log_without_its_head_says_what_to_do(database: AsyncEngine, zoo: Zoo) -> None:
    async with database.begin() as connection:
        await connection.exec_driver_sql("DELETE FROM log_head")
    with pytest.raises(BrokenLogError, match="restore the database from a backup"):
        await restored(database, zoo)
    with pytest.raises(BrokenLogError):
        await log.append(database, [request()])
