"""Models that came, were repriced and went while the zoo served: what a worker has folded, step by
step, is the fold of the log."""

import asyncio
from pathlib import Path
from typing import Any

import yaml

from litellm_messplus.core.catalog import plain_price
from litellm_messplus.core.engine import Engine
from litellm_messplus.costs.price import Price
from litellm_messplus.records import CandidateRecord, new_id
from litellm_messplus.restore import fold
from litellm_messplus.runtime.vocabulary import Change
from litellm_messplus.store import log
from litellm_messplus.store.database import create_engine
from litellm_messplus.store.entries import read_entries
from tests.support.builders import LARGE, NOW, SMALL, exploration_call, label, traffic
from tests.support.configured_log import started
from tests.support.folding import bits
from tests.upkeep.conftest import Damage

STORY = (
    (("new", Change.APPEARED, None),),
    (("new", Change.PRICED, 1), (SMALL, Change.GONE, 0)),
    (("newer", Change.APPEARED, None), ("new", Change.GONE, 2)),
    (("new", Change.APPEARED, 3), (LARGE, Change.PRICED, 0), (SMALL, Change.APPEARED, 1)),
)
"""What became of the candidates, between the requests."""


class Worker:
    """A worker that serves meanwhile: it folds in what has become durable, batch by batch."""

    def __init__(self, engines: dict[str, Engine], url: str, position: int) -> None:
        self.engines, self.position, self.database = engines, position, create_engine(url)

    async def follow(self) -> None:
        head = await log.head(self.database)
        async for entry in read_entries(self.database, self.position, head):
            assert fold(self.engines, entry)
        self.position = head


async def live(config: dict[str, Any]) -> bytes:
    """Write the story of zoo `zoo`, with requests between; return the worker's own state."""
    url = config["messplus"]["database"]
    engines = await started(config)
    worker = Worker(engines, url, 0)
    worker.position = await log.head(worker.database)
    for number, changes in enumerate(STORY):
        for candidate, change, after in changes:
            price = None if change is Change.GONE else plain_price(Price(1e-6, 2.0**number))
            record = CandidateRecord(new_id(), "zoo", candidate, NOW, change, price)
            assert await log.append_change(worker.database, record, after) is not None
        records = traffic(15, seed=number, prefix=f"{number}-")
        await log.append(worker.database, records)
        await log.append(
            worker.database,
            [
                record
                for place in range(1, 8)
                for record in (
                    exploration_call(f"{number}-{place}", 7, candidate="new"),
                    label(f"{number}-{place}", float(place % 2), 7),
                )
            ],
        )
        await worker.follow()
    await worker.database.dispose()
    return bits(engines["zoo"])


def test_the_whole_log_folds_into_what_a_worker_has(config: Path, damage: Damage) -> None:
    given = yaml.safe_load(config.read_text())
    lived = asyncio.run(live(given))
    damage("DELETE FROM snapshots")

    engine = asyncio.run(started(given))["zoo"]

    assert bits(engine) == lived
    assert engine.zoo.candidates == (SMALL, "medium", LARGE, "new", "newer")
    assert engine.zoo.absent == frozenset()
    assert engine.logged_prices["new"] == Price(1e-6, 8.0)
