"""What became of the candidates is in the log once, and every start folds the same zoo of it."""

from datetime import timedelta

import pytest
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.core.catalog import plain_price
from litellm_messplus.costs.price import Price
from litellm_messplus.records import CandidateRecord, new_id
from litellm_messplus.restore import keep
from litellm_messplus.runtime.vocabulary import Change
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.store import history, log
from litellm_messplus.store.tables import candidate_events
from tests.spine.test_restore import restored
from tests.support.builders import LARGE, NOW, SMALL, exploration_call, label, traffic
from tests.support.folding import bits, fold_all


def record(
    candidate: str = "new", change: Change = Change.APPEARED, at: float = 0.0
) -> CandidateRecord:
    price = None if change is Change.GONE else plain_price(Price(0.0, 0.002))
    return CandidateRecord(new_id(), "zoo", candidate, NOW + timedelta(seconds=at), change, price)


async def rows(database: AsyncEngine) -> int:
    async with database.connect() as connection:
        query = select(func.count()).select_from(candidate_events)
        return int((await connection.execute(query)).scalar_one())


async def test_of_two_workers_that_report_the_same_one_writes_it(database: AsyncEngine) -> None:
    assert await log.append_change(database, record(), None) == 1
    assert await log.append_change(database, record(), None) is None
    assert await log.append_change(database, record(change=Change.GONE), 1) == 2
    assert await log.append_change(database, record(change=Change.GONE), 1) is None
    assert await rows(database) == 2
    assert await log.head(database) == 2


async def test_who_knows_no_change_reports_what_is_gone_as_back(database: AsyncEngine) -> None:
    """As of a candidate that was forgotten, so that no number of it is known any more."""
    await log.append_change(database, record(), None)
    await log.append_change(database, record(change=Change.GONE), 1)
    assert await log.append_change(database, record(), None) == 3


async def written(database: AsyncEngine) -> None:
    """A log in which a model comes, is judged, goes and comes again."""
    await log.append(database, traffic(20))
    await log.append_change(database, record(), None)
    await log.append(database, traffic(20, prefix="s"))
    for number in range(12):
        request_id = f"s{number + 1}"
        await log.append(
            database,
            [
                exploration_call(request_id, 7, candidate="new"),
                label(request_id, float(number % 3 > 0), 7),
            ],
        )
    await log.append_change(database, record(SMALL, Change.GONE), 0)
    await log.append(database, traffic(20, prefix="t"))
    await log.append_change(database, record(change=Change.PRICED), 1)


async def test_a_start_without_a_snapshot_folds_the_log(database: AsyncEngine, zoo: Zoo) -> None:
    await written(database)
    engine = await restored(database, zoo)
    assert engine.zoo.candidates == (*zoo.candidates, "new")
    assert engine.zoo.present == tuple(name for name in engine.zoo.candidates if name != SMALL)
    assert engine.zoo.largest == LARGE
    assert bits(engine) == bits(await fold_all(database, zoo))


@pytest.mark.parametrize("further", [0, 10])
async def test_a_snapshots_start_goes_on(database: AsyncEngine, zoo: Zoo, further: int) -> None:
    await written(database)
    await keep(database, await fold_all(database, zoo), await log.head(database))
    await log.append(database, traffic(further, prefix="u"))
    await log.append_change(database, record("newest"), None)
    assert bits(await restored(database, zoo)) == bits(await fold_all(database, zoo))


async def test_the_newest_changes_are_shown_first(database: AsyncEngine) -> None:
    await log.append_change(database, record("a"), None)
    await log.append_change(database, record("b", at=1.0), None)
    async with database.connect() as connection:
        found = await history.newest_changes(connection)
        (newest,) = await history.newest_changes(connection, limit=1)
    assert [each.candidate for each in found] == ["b", "a"]
    assert newest == found[0]
