"""A pruned log folds into the state of the whole one, to the bit, whatever comes after."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.records import (
    CandidateRecord,
    LabelRecord,
    LessonRecord,
    Record,
    RequestRecord,
)
from litellm_messplus.restore import restore
from litellm_messplus.runtime.errors import ConfigurationError, RequestGoneError
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.status.build import read_status
from litellm_messplus.store import history as histories
from litellm_messplus.store import log, snapshots
from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.store.pruning import ABOUT_REQUESTS, PRUNED
from litellm_messplus.store.tables import labels, requests
from litellm_messplus.upkeep.prune import begin_anew, dry_run, prune
from tests.support.aged_log import HOUR, LONG_AGO, TODAY, history, snapshot_now, state_of, write
from tests.support.builders import (
    PRICES,
    SMALL,
    PairEncoder,
    build_engine,
    build_zoo,
    energy,
    label,
    pair,
    request,
    served_call,
    traffic,
)
from tests.support.folding import bits, fold_all, only_zoo

REQUESTS = 60
ALL_OLD = LONG_AGO + REQUESTS * HOUR


async def forget_snapshots(database: AsyncEngine) -> None:
    async with database.begin() as connection:
        await connection.exec_driver_sql("DELETE FROM snapshots")


async def count(database: AsyncEngine, table: str) -> int:
    async with database.connect() as connection:
        return int((await connection.exec_driver_sql(f"SELECT COUNT(*) FROM {table}")).scalar_one())


def lesson(number: int, batch: str = "files") -> LessonRecord:
    return LessonRecord(
        lesson_id=f"{batch}-{number}.0",
        batch=batch,
        zoo="zoo",
        created_at=LONG_AGO,
        candidate=SMALL,
        encoder=PairEncoder.name,
        features=pair(0.1 * number, -0.3),
        surface=None,
        surface_version=None,
        prompt_characters=40,
        completion_tokens=12.0,
        value=float(number % 2),
    )


def with_late_words(records: list[Record], random: Random) -> list[Record]:
    """Some labels come long after all else about their requests."""
    late = [each for each in records if isinstance(each, LabelRecord) and random.random() < 0.3]
    moved = [each for each in records if each not in late]
    for each in late:
        first = next(
            place
            for place, other in enumerate(moved)
            if getattr(other, "request_id", "") == each.request_id
        )
        moved.insert(random.randint(first + 1, len(moved)), each)
    return moved


@pytest.mark.parametrize("seed", range(6))
async def test_what_comes_after_a_cut_anywhere_folds_as_if_nothing_were_gone(
    tmp_path: Path, zoo: Zoo, seed: int
) -> None:
    """Two databases with the same log, one of them pruned at some time on the way, twice."""
    random = Random(seed)
    records = with_late_words(history(REQUESTS, seed), random)
    kept_at = sorted(random.sample(range(len(records) // 2, len(records)), 2))
    whole = create_engine(f"sqlite+aiosqlite:///{tmp_path / 'whole.db'}")
    pruned = create_engine(f"sqlite+aiosqlite:///{tmp_path / 'pruned.db'}")
    for database in (whole, pruned):
        await migrate(database)
    before = LONG_AGO
    for part in (records[: kept_at[0]], records[kept_at[0] : kept_at[1]]):
        taken = await _still_known(pruned, part)
        for database in (whole, pruned):
            await log.append(database, taken)
        await snapshot_now(pruned, zoo)
        before += random.randrange(5, REQUESTS // 3) * HOUR
        await prune(str(tmp_path / "pruned.db"), before, None)
        await forget_snapshots(pruned)
        assert await state_of(pruned, zoo) == bits(await fold_all(whole, zoo))
    taken = await _still_known(pruned, records[kept_at[1] :])
    for database in (whole, pruned):
        await log.append(database, taken)

    assert await state_of(pruned, zoo) == bits(await fold_all(whole, zoo))
    assert await count(pruned, "requests") < await count(whole, "requests")
    for database in (whole, pruned):
        await database.dispose()


async def _still_known(database: AsyncEngine, records: list[Record]) -> list[Record]:
    """Without the records of pruned requests, which the log refuses."""
    async with database.connect() as connection:
        known = set((await connection.execute(select(requests.c.request_id))).scalars())
    new = {each.request_id for each in records if isinstance(each, RequestRecord)}
    return [
        each
        for each in records
        if not isinstance(each, CandidateRecord) and each.request_id in known | new
    ]


async def test_requests_go_with_all_that_is_said_of_them_and_no_other(
    database: AsyncEngine, database_url: str, zoo: Zoo
) -> None:
    records = history(REQUESTS)
    await log.append(database, records)
    await log.append(
        database, [energy(served_call("r1"), 3.0, None), energy(served_call("r50"), 3.0, None)]
    )
    await snapshot_now(database, zoo)
    found = await prune(database_url, LONG_AGO + 20 * HOUR, None)

    async with database.connect() as connection:
        for table in (requests, *ABOUT_REQUESTS):
            left = set((await connection.execute(select(table.c.request_id))).scalars())
            assert not left & {f"r{number}" for number in range(1, 21)}, table.name
        left = set((await connection.execute(select(requests.c.request_id))).scalars())
    assert left == {f"r{number}" for number in range(21, REQUESTS + 1)}
    assert found.rows["requests"] == 20
    assert found.rows["call_energy"] == 1
    assert sum(found.rows.values()) == len(records) + 2 - sum(
        [await count(database, table.name) for table in PRUNED]
    )


async def test_a_dry_run_says_what_would_go_and_changes_nothing(
    database: AsyncEngine, database_url: str, zoo: Zoo
) -> None:
    await write(database, zoo, history(REQUESTS))
    would = await dry_run(database_url, LONG_AGO + 20 * HOUR)
    assert await count(database, "requests") == REQUESTS
    assert (await log.ends(database)).start == 0
    went = await prune(database_url, LONG_AGO + 20 * HOUR, None)
    assert (would.upto, would.rows) == (went.upto, went.rows)
    assert went.rows["requests"] == 20


async def test_a_request_of_today_is_not_pruned(database: AsyncEngine, database_url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"--before.*at least a day ago"):
        await prune(database_url, TODAY - timedelta(hours=20), None)


async def test_what_no_snapshot_holds_stays(
    database: AsyncEngine, database_url: str, zoo: Zoo
) -> None:
    """A label after the newest snapshot holds its request back, and those after it."""
    await write(database, zoo, history(30))
    await log.append(database, [label("r11", 0.0, label_id="late")])
    found = await prune(database_url, ALL_OLD, None)
    assert list(found.held) == ["zoo"]
    assert await count(database, "requests") == 20
    assert await state_of(database, zoo) == await _as_in_a_whole_log(
        database, zoo, [*history(30), label("r11", 0.0, label_id="late")]
    )
    await snapshot_now(database, zoo)
    assert (await prune(database_url, ALL_OLD, None)).held == {}
    assert await count(database, "requests") == 0


async def _as_in_a_whole_log(database: AsyncEngine, zoo: Zoo, records: list[Record]) -> bytes:
    path = Path(database.url.database or "").with_name("other.db")
    other = create_engine(f"sqlite+aiosqlite:///{path}")
    await migrate(other)
    await log.append(other, records)
    state = bits(await fold_all(other, zoo))
    await other.dispose()
    return state


async def test_a_zoo_without_a_snapshot_holds_the_log_back_until_it_is_forgotten(
    database: AsyncEngine, database_url: str, zoo: Zoo
) -> None:
    await log.append(
        database, [*history(10), *history(5, prefix="s", zoo="removed"), *history(5, 1, "t")]
    )
    await snapshot_now(database, zoo)
    found = await prune(database_url, ALL_OLD, None)
    assert found.held == {"removed": 0}
    assert await count(database, "requests") == 10
    found = await prune(database_url, ALL_OLD, None, ["removed"])
    assert found.held == {}
    assert await count(database, "requests") == 0


async def test_a_snapshot_that_cannot_be_read_is_no_base(
    database: AsyncEngine, database_url: str, zoo: Zoo
) -> None:
    await write(database, zoo, history(20))
    async with database.begin() as connection:
        await connection.exec_driver_sql("UPDATE snapshots SET state = substr(state, 1, 400)")
    assert (await prune(database_url, ALL_OLD, None)).held == {"zoo": 0}
    assert await count(database, "requests") == 20


async def test_a_label_on_a_pruned_request_is_refused_and_on_another_taken(
    database: AsyncEngine, database_url: str, zoo: Zoo
) -> None:
    await write(database, zoo, history(20))
    await prune(database_url, LONG_AGO + 10 * HOUR, None)
    before = await log.head(database)
    with pytest.raises(RequestGoneError):
        await log.append(database, [label("r15", label_id="fine"), label("r3", label_id="late")])
    assert await log.head(database) == before
    await log.append(database, [label("r15", label_id="fine"), *traffic(3, prefix="new")])
    async with database.connect() as connection:
        known = select(func.count()).where(labels.c.label_id == "fine")
        assert (await connection.execute(known)).scalar_one() == 1


async def test_a_pruned_request_is_unknown_while_its_rows_are_still_there(
    database: AsyncEngine, zoo: Zoo
) -> None:
    await log.append(database, history(20))
    async with database.begin() as connection:
        await connection.exec_driver_sql("UPDATE log_head SET start = 1")
    assert await histories.find(database, "r1") is None
    assert await histories.find(database, "litellm-r1", "key") is None
    assert await histories.history(database, "r1") is None
    assert await histories.find(database, "r2") is not None


async def test_under_changed_settings_a_start_names_them_and_the_way_out(
    database: AsyncEngine, database_url: str
) -> None:
    before = build_zoo(policy="paper")
    await write(database, before, history(20))
    await prune(database_url, LONG_AGO + 10 * HOUR, None)
    changed = build_zoo(policy="paper", learning_rate=0.5)
    with pytest.raises(ConfigurationError) as refused:
        await state_of(database, changed)
    assert refused.value.key == "messplus.zoos.zoo.learning_rate"
    assert refused.value.given == "0.5"
    assert "0.06" in refused.value.allowed
    assert "messplus prune --begin-anew zoo" in refused.value.allowed

    assert await begin_anew(database_url, "zoo")
    engine = build_engine(changed)
    await restore(database, only_zoo(engine))
    assert sum(engine.state.requests.values()) == 10
    assert not await begin_anew(database_url, "zoo")


async def test_changed_candidates_are_named(database: AsyncEngine, database_url: str) -> None:
    await write(database, build_zoo(), history(20))
    await prune(database_url, ALL_OLD, None)
    with pytest.raises(
        ConfigurationError, match=r"the candidates of zoo.*small, medium, large, new"
    ):
        await state_of(database, build_zoo({**PRICES, "new": PRICES[SMALL]}))


async def test_a_changed_promise_goes_on_from_the_base(
    database: AsyncEngine, database_url: str
) -> None:
    await write(database, build_zoo(), history(20))
    state = await state_of(database, build_zoo())
    await prune(database_url, ALL_OLD, None)
    await forget_snapshots(database)
    assert await state_of(database, build_zoo(alpha=0.99)) == state


async def test_a_snapshot_of_before_the_base_is_never_gone_on_from(
    database: AsyncEngine, database_url: str, zoo: Zoo
) -> None:
    """The rows between the two are not all there any more."""
    await write(database, zoo, history(20))
    early = await log.head(database)
    await write(database, zoo, history(20, prefix="s"))
    state = await state_of(database, zoo)
    await prune(database_url, ALL_OLD, None)
    async with database.begin() as connection:
        await connection.exec_driver_sql("DELETE FROM snapshots WHERE position > ?", (early,))
    assert len(await snapshots.newest_of_each_zoo(database)) == 1
    assert await state_of(database, zoo) == state


async def test_a_new_zoo_begins_where_the_log_starts(
    database: AsyncEngine, database_url: str, zoo: Zoo
) -> None:
    await write(database, zoo, history(20))
    await prune(database_url, ALL_OLD, None)
    await log.append(database, traffic(3, prefix="n", zoo="new"))
    engines = {"zoo": build_engine(zoo), "new": build_engine(replace(zoo, name="new"))}
    await restore(database, engines)
    assert sum(engines["new"].state.requests.values()) == 3
    assert sum(engines["zoo"].state.requests.values()) == 20


async def test_a_lesson_of_today_is_not_pruned_by_a_date_of_yesterday(
    database: AsyncEngine, database_url: str
) -> None:
    young = replace(lesson(2), created_at=TODAY)
    await write(database, build_zoo(policy="adaptive"), [lesson(1), young, *history(5)])
    await prune(database_url, ALL_OLD, None)
    assert await count(database, "lessons") == 1
    assert await count(database, "requests") == 5


async def test_lessons_in_the_base_still_count(database: AsyncEngine, database_url: str) -> None:
    zoo = build_zoo(policy="adaptive")
    await log.append(database, [lesson(number) for number in range(5)])
    await write(database, zoo, history(10))
    await prune(database_url, ALL_OLD, None)
    await write(database, zoo, [lesson(number, "more") for number in range(3)])
    engine = build_engine(zoo)
    await restore(database, only_zoo(engine))
    assert engine.state.taught == {"files": 5, "more": 3}
    assert await count(database, "lessons") == 3


async def test_a_start_during_a_prune_begins_again(
    database: AsyncEngine, database_url: str, zoo: Zoo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads the log from the beginning, which is being deleted."""
    from litellm_messplus import restore as restoring

    await write(database, zoo, history(20))
    state = await state_of(database, zoo)
    read = restoring._newest_snapshot

    async def prune_meanwhile(*arguments: object) -> None:
        monkeypatch.setattr(restoring, "_newest_snapshot", read)
        await prune(database_url, ALL_OLD, None)

    monkeypatch.setattr(restoring, "_newest_snapshot", prune_meanwhile)
    assert await state_of(database, zoo) == state


async def test_numbers_go_on_where_no_request_of_a_level_is_left(
    database: AsyncEngine, database_url: str, zoo: Zoo
) -> None:
    await write(database, zoo, history(REQUESTS))
    await prune(database_url, ALL_OLD + HOUR, None)
    assert await count(database, "requests") == 0

    restarted = create_engine(database_url)
    await log.append(
        restarted,
        [request(name, expected_t=REQUESTS + place) for place, name in enumerate("ab", start=1)],
    )
    await restarted.dispose()

    async with database.connect() as connection:
        numbers = (await connection.execute(select(requests.c.t))).scalars().all()
    assert numbers == [REQUESTS + 1, REQUESTS + 2]


async def test_the_status_of_the_whole_time_still_counts_what_is_gone(
    database: AsyncEngine, database_url: str, zoo: Zoo
) -> None:
    await write(database, zoo, history(REQUESTS))
    before = [level.overall for level in (await read_status(database)).levels]
    await prune(database_url, LONG_AGO + 20 * HOUR, None)

    after = [level.overall for level in (await read_status(database)).levels]

    assert await count(database, "requests") == REQUESTS - 20
    assert after == before
    assert sum(overall.satisfaction.requests for overall in after) == REQUESTS


async def test_the_status_is_read_where_no_request_is_left(
    database: AsyncEngine, database_url: str, zoo: Zoo
) -> None:
    await write(database, zoo, history(REQUESTS))
    await prune(database_url, ALL_OLD + HOUR, None)

    status = await read_status(database)

    assert sum(level.overall.satisfaction.requests for level in status.levels) == REQUESTS
