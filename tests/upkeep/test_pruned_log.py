"""A start on a pruned log goes on from the newest snapshot, to the bit, whatever comes after."""

from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.records import (
    CandidateRecord,
    LabelRecord,
    Record,
    RequestRecord,
)
from litellm_messplus.restore import restore
from litellm_messplus.runtime.errors import ConfigurationError, RequestGoneError
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.status.build import read_status
from litellm_messplus.store import log
from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.store.pruning import ABOUT_REQUESTS
from litellm_messplus.store.tables import labels, requests
from litellm_messplus.upkeep.prune import prune
from litellm_messplus.upkeep.verify import verify
from tests.support.aged_log import HOUR, LONG_AGO, TODAY, history, snapshot_now, state_of, write
from tests.support.builders import (
    build_engine,
    build_zoo,
    label,
    request,
    traffic,
)
from tests.support.folding import bits, fold_all, only_zoo
from tests.support.summing import rounded

REQUESTS = 60
ALL_OLD = LONG_AGO + REQUESTS * HOUR


async def count(database: AsyncEngine, table: str) -> int:
    async with database.connect() as connection:
        return int((await connection.exec_driver_sql(f"SELECT COUNT(*) FROM {table}")).scalar_one())


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
async def test_what_follows_any_cut_folds_the_same(tmp_path: Path, zoo: Zoo, seed: int) -> None:
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
        await prune(str(tmp_path / "pruned.db"), before)
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
    await snapshot_now(database, zoo)
    found = await prune(database_url, LONG_AGO + 20 * HOUR)

    async with database.connect() as connection:
        for table in (requests, *ABOUT_REQUESTS):
            left = set((await connection.execute(select(table.c.request_id))).scalars())
            assert not left & {f"r{number}" for number in range(1, 21)}, table.name
        left = set((await connection.execute(select(requests.c.request_id))).scalars())
    assert left == {f"r{number}" for number in range(21, REQUESTS + 1)}
    assert (found.requests, found.held) == (20, 0)
    assert (await verify(database_url)).faults == ()


async def test_a_dry_run_says_what_would_go_and_changes_nothing(
    database: AsyncEngine, database_url: str, zoo: Zoo
) -> None:
    await write(database, zoo, history(REQUESTS))
    would = await prune(database_url, LONG_AGO + 20 * HOUR, is_dry_run=True)
    assert await count(database, "requests") == REQUESTS
    assert (await log.ends(database)).start == 0
    went = await prune(database_url, LONG_AGO + 20 * HOUR)
    assert (would.requests, would.held) == (went.requests, went.held) == (20, 0)


async def test_a_request_of_today_is_not_pruned(database: AsyncEngine, database_url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"--before.*at least a day ago"):
        await prune(database_url, TODAY - timedelta(hours=20))


async def test_no_snapshot_so_it_stays(database: AsyncEngine, database_url: str, zoo: Zoo) -> None:
    """A label after the newest snapshot holds its request back."""
    late = label("r11", 0.0, label_id="late")
    await write(database, zoo, history(30))
    await log.append(database, [late])
    found = await prune(database_url, ALL_OLD)
    assert (found.requests, found.held) == (29, 1)
    assert await state_of(database, zoo) == await _as_in_a_whole_log(
        database, zoo, [*history(30), late]
    )
    await snapshot_now(database, zoo)
    assert (await prune(database_url, ALL_OLD)).held == 0
    assert await count(database, "requests") == 0


async def _as_in_a_whole_log(database: AsyncEngine, zoo: Zoo, records: list[Record]) -> bytes:
    path = Path(database.url.database or "").with_name("other.db")
    other = create_engine(f"sqlite+aiosqlite:///{path}")
    await migrate(other)
    await log.append(other, records)
    state = bits(await fold_all(other, zoo))
    await other.dispose()
    return state


async def test_a_zoo_without_a_snapshot_keeps_its_requests(
    database: AsyncEngine, database_url: str, zoo: Zoo
) -> None:
    await log.append(
        database, [*history(10), *history(5, prefix="s", zoo="removed"), *history(5, 1, "t")]
    )
    await snapshot_now(database, zoo)
    found = await prune(database_url, ALL_OLD)
    assert (found.requests, found.held) == (15, 5)
    assert "5 older ones stay until a snapshot holds all about them" in found.text


async def test_without_a_readable_snapshot_what_is_left_is_folded(
    database: AsyncEngine, database_url: str, zoo: Zoo, caplog: pytest.LogCaptureFixture
) -> None:
    await write(database, zoo, history(20))
    await prune(database_url, LONG_AGO + 10 * HOUR)
    assert "what the log still has" not in caplog.text
    async with database.begin() as connection:
        await connection.exec_driver_sql("UPDATE snapshots SET state = substr(state, 1, 400)")

    engine = build_engine(zoo)
    await restore(database, only_zoo(engine))

    assert sum(engine.state.requests.values()) == 10
    assert "its state is folded from what the log still has" in caplog.text


async def test_changed_settings_fold_the_rest(database: AsyncEngine, database_url: str) -> None:
    await write(database, build_zoo(policy="paper"), history(20))
    await prune(database_url, LONG_AGO + 10 * HOUR)

    engine = build_engine(build_zoo(policy="paper", learning_rate=0.5))
    await restore(database, only_zoo(engine))

    assert sum(engine.state.requests.values()) == 10


async def test_a_label_on_a_pruned_request_is_refused_and_on_another_taken(
    database: AsyncEngine, database_url: str, zoo: Zoo
) -> None:
    await write(database, zoo, history(20))
    await prune(database_url, LONG_AGO + 10 * HOUR)
    before = await log.head(database)
    with pytest.raises(RequestGoneError):
        await log.append(database, [label("r15", label_id="fine"), label("r3", label_id="late")])
    assert await log.head(database) == before
    await log.append(database, [label("r15", label_id="fine"), *traffic(3, prefix="new")])
    async with database.connect() as connection:
        known = select(func.count()).where(labels.c.label_id == "fine")
        assert (await connection.execute(known)).scalar_one() == 1


async def test_numbers_go_on_where_no_request_of_a_level_is_left(
    database: AsyncEngine, database_url: str, zoo: Zoo
) -> None:
    await write(database, zoo, history(REQUESTS))
    await prune(database_url, ALL_OLD + HOUR)
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
    before = [level["overall"] for level in (await read_status(database))["levels"]]
    await prune(database_url, LONG_AGO + 20 * HOUR)

    after = [level["overall"] for level in (await read_status(database))["levels"]]

    assert await count(database, "requests") == REQUESTS - 20
    assert rounded(after, 12) == rounded(before, 12)
    assert sum(overall["satisfaction"]["requests"] for overall in after) == REQUESTS


async def test_the_status_is_read_where_no_request_is_left(
    database: AsyncEngine, database_url: str, zoo: Zoo
) -> None:
    await write(database, zoo, history(REQUESTS))
    await prune(database_url, ALL_OLD + HOUR)

    status = await read_status(database)

    assert (
        sum(level["overall"]["satisfaction"]["requests"] for level in status["levels"]) == REQUESTS
    )
