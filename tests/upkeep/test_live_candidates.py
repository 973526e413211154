"""A log in which models came, were repriced and went while the zoo served is verified as any other:
what a worker has folded, step by step, is the fold of the log."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from litellm_messplus.costs.price import Price
from litellm_messplus.deciding.decider import Engine, fold
from litellm_messplus.records import CandidateRecord, new_id
from litellm_messplus.restore import keep
from litellm_messplus.runtime.vocabulary import Change
from litellm_messplus.state.catalog import plain_price
from litellm_messplus.store import log
from litellm_messplus.store.database import create_engine
from litellm_messplus.store.entries import read_entries
from litellm_messplus.upkeep.prune import prune
from tests.support.builders import LARGE, NOW, SMALL, exploration_call, label, traffic
from tests.support.configured_log import started
from tests.upkeep.test_verify import found, verify

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

    async def keep(self) -> None:
        for engine in self.engines.values():
            await keep(self.database, engine, self.position)


async def live(config: dict[str, Any]) -> None:
    """Write the story of zoo `zoo`, with requests between, and the worker's own snapshot."""
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
    await worker.keep()
    await worker.database.dispose()


@pytest.fixture
def lived(config: Path, stored: Path) -> Path:
    asyncio.run(live(yaml.safe_load(config.read_text())))
    return config


def test_models_that_came_were_repriced_and_went_are_folded_as_a_worker_did(lived: Path) -> None:
    result = verify("--config", lived)

    assert result.exit_code == 0, result.output
    assert {each["outcome"] for each in found("--config", lived)} <= {"sound", "note", "skipped"}
    assert result.output.count("is the fold of the log, to the bit") == 2


def test_a_start_has_the_candidates_that_the_worker_had(lived: Path) -> None:
    engine = asyncio.run(started(yaml.safe_load(lived.read_text())))["zoo"]

    assert engine.zoo.candidates == (SMALL, "medium", LARGE, "new", "newer")
    assert engine.zoo.absent == frozenset()
    assert engine.logged_prices["new"] == Price(1e-6, 8.0)


def test_a_change_that_was_taken_out_by_hand_is_found(lived: Path, damage: Any) -> None:
    damage("DELETE FROM candidate_events WHERE candidate = 'newer'")

    result = verify("--config", lived)

    assert result.exit_code == 1
    assert "is not the fold of the log" in result.output


def test_it_is_sound_once_it_is_pruned(lived: Path) -> None:
    url = yaml.safe_load(lived.read_text())["messplus"]["database"]
    gone = asyncio.run(prune(url, NOW + timedelta(days=1), None))

    assert gone.rows["candidate_events"] == 4
    result = verify("--config", lived)
    assert result.exit_code == 0, result.output
    assert "the fold begins at" in result.output
