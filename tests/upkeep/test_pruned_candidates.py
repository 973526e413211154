"""Changes of candidates leave the log with the requests: what is left is one row a model."""

from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.costs.price import Price
from litellm_messplus.records import CandidateRecord, new_id
from litellm_messplus.restore import restore
from litellm_messplus.runtime.vocabulary import Change
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.state.catalog import plain_price
from litellm_messplus.store import log
from litellm_messplus.store.tables import candidate_events
from litellm_messplus.upkeep.integrity import check_positions
from litellm_messplus.upkeep.prune import begin_anew, prune
from tests.support.aged_log import HOUR, LONG_AGO, TODAY, history, snapshot_now, state_of, write
from tests.support.builders import build_engine
from tests.support.folding import fold_all

REQUESTS = 30
BEFORE = TODAY - timedelta(days=2)


def record(
    candidate: str, change: Change, number: int = 0, *, zoo: str = "zoo", hours: int = 0
) -> CandidateRecord:
    price = None if change is Change.GONE else plain_price(Price(0.0, 0.001 * (number + 1)))
    return CandidateRecord(new_id(), zoo, candidate, LONG_AGO + hours * HOUR, change, price)


async def repriced(database: AsyncEngine, candidate: str, times: int) -> None:
    """A model that comes, and whose price changes so often."""
    await log.append_change(database, record(candidate, Change.APPEARED), None)
    for number in range(1, times):
        change = record(candidate, Change.PRICED, number)
        assert await log.append_change(database, change, number) is not None


async def rows(database: AsyncEngine) -> int:
    async with database.connect() as connection:
        query = select(func.count()).select_from(candidate_events)
        return int((await connection.execute(query)).scalar_one())


@pytest.fixture
async def changed(database: AsyncEngine, zoo: Zoo) -> AsyncEngine:
    """A log in which one model is repriced for ever, and models come and go for ever."""
    await log.append(database, history(REQUESTS))
    await repriced(database, "often", 40)
    for number in range(50):
        await log.append_change(database, record(f"passing {number}", Change.APPEARED), None)
        await log.append_change(database, record(f"passing {number}", Change.GONE), 1)
    await log.append(database, history(REQUESTS, prefix="s"))
    return database


async def test_one_row_a_model_that_is_there_is_left(changed: AsyncEngine, zoo: Zoo) -> None:
    await snapshot_now(changed, zoo)
    before = await state_of(changed, zoo)
    assert await rows(changed) == 140

    await prune(str(changed.url), BEFORE, None)

    assert await rows(changed) == 1
    assert await state_of(changed, zoo) == before
    assert (await fold_all(changed, zoo)).zoo.candidates != zoo.candidates


async def test_what_comes_after_is_folded_as_by_a_worker_that_saw_it_all(
    changed: AsyncEngine, zoo: Zoo
) -> None:
    await snapshot_now(changed, zoo)
    await prune(str(changed.url), BEFORE, None)

    assert await log.append_change(changed, record("often", Change.PRICED, 7), 39) is None
    assert await log.append_change(changed, record("often", Change.PRICED, 7), 40) is not None
    assert await log.append_change(changed, record("passing 49", Change.APPEARED), 2) is not None
    assert await log.append_change(changed, record("passing 49", Change.APPEARED), 2) is None
    engine = build_engine(zoo)
    await restore(changed, {"zoo": engine})
    assert engine.state.catalog.standings["often"].changes == 41
    assert engine.state.catalog.standings["passing 49"].changes == 3


async def test_a_zoo_that_has_only_changes_keeps_its_candidates(
    database: AsyncEngine, zoo: Zoo
) -> None:
    """Its models came before the log's start, its first request comes long after."""
    other = Zoo("other", zoo.settings, {})
    for name in ("one", "two"):
        change = record(name, Change.APPEARED, zoo="other")
        await log.append_change(database, change, None)
    await write(database, zoo, history(REQUESTS))
    await snapshot_now(database, other)

    found = await prune(str(database.url), BEFORE, None)

    assert found.upto > 2
    engine = build_engine(other)
    await restore(database, {"other": engine})
    assert engine.zoo.present == ("one", "two")


async def test_changes_that_no_state_holds_hold_the_rest_back(
    database: AsyncEngine, zoo: Zoo
) -> None:
    await log.append_change(database, record("one", Change.APPEARED, zoo="other"), None)
    await write(database, zoo, history(REQUESTS))

    held = await prune(str(database.url), BEFORE, None)
    assert (held.upto, held.held) == (0, {"other": 0})
    assert await rows(database) == 1

    await prune(str(database.url), BEFORE, None, ["other"])
    assert await rows(database) == 0


async def test_a_zoo_that_begins_anew_is_told_anew_who_is_there(
    changed: AsyncEngine, zoo: Zoo
) -> None:
    await snapshot_now(changed, zoo)
    await prune(str(changed.url), BEFORE, None)

    assert await begin_anew(str(changed.url), "zoo")

    assert await rows(changed) == 0
    assert await log.append_change(changed, record("often", Change.APPEARED), None) is not None


async def test_a_pruned_log_with_a_model_that_stays_is_told_to_be_pruned(
    changed: AsyncEngine, zoo: Zoo
) -> None:
    await snapshot_now(changed, zoo)
    await prune(str(changed.url), BEFORE, None)

    text = " ".join(each.told for each in await check_positions(changed))
    assert "are pruned" in text
    assert "still there" not in text


async def test_what_goes_is_in_the_archive(changed: AsyncEngine, zoo: Zoo, tmp_path: Path) -> None:
    pl = pytest.importorskip("polars")
    await snapshot_now(changed, zoo)
    await prune(str(changed.url), BEFORE, tmp_path / "archive")

    (path,) = (tmp_path / "archive" / "candidate_events").glob("*.parquet")
    found = pl.read_parquet(path)
    assert found.columns == [column.name for column in candidate_events.columns]
    assert len(found) == 139
