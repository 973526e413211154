"""Four workers decide at once, each by what it has read of one log on Postgres: every decision can
be computed again from that log, to the bit."""

import asyncio
from collections import Counter
from random import Random

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.records import Record
from litellm_messplus.store import log
from litellm_messplus.store.database import create_engine
from tests.support.builders import build_engine, build_zoo
from tests.support.decided_log import GOLD, LIMITS, NEWEST, Script, Worker, computed, record_of
from tests.support.folding import build_journal

WORKERS, REQUESTS = 4, 150
SETTINGS = {"alpha": 0.7, **LIMITS}


async def decide(worker: int, database_url: str) -> int:
    """Decide requests at random times, and write what comes of them; return how many there were
    with others in flight."""
    database, script, random = create_engine(database_url), Script(worker), Random(worker)
    own = Worker(build_engine(build_zoo(**SETTINGS, **GOLD), seed=5))
    own.engine.deciders = WORKERS
    journal = build_journal(database, own.engine, flush_seconds=0.05)
    journal.start()
    waiting: list[Record] = []
    flying = 0
    for number in range(REQUESTS):
        question, way = script.request(own.engine, WORKERS * number + worker)
        choice = script.choose(own.engine, question, way)
        record = record_of(own.engine, question, choice, way)
        flying += choice.situation.in_flight != 0.0
        journal.write(record)
        waiting += script.outcome(record, choice, 0.0)
        while waiting and random.random() < 0.8:
            journal.write(waiting.pop(0))
        await asyncio.sleep(random.choice((0.0, 0.002, 0.01)))
        if worker == 0 and number == REQUESTS // 2:
            await log.append(database, [NEWEST])
    for each in waiting:
        journal.write(each)
    await journal.close()
    await database.dispose()
    return flying


async def test_what_four_workers_decided_at_once_is_computed_again_to_the_bit(
    database: AsyncEngine, database_url: str
) -> None:
    flying = await asyncio.gather(*(decide(each, database_url) for each in range(WORKERS)))
    assert min(flying) > 20

    found = await computed(database, SETTINGS)

    assert (found.wrong, found.rounded, found.left_out) == ([], 0, Counter())
    assert found.same == WORKERS * REQUESTS
