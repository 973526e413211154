"""A log whose requests are of many days, and the state of each zoo as a proxy would keep it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.records import Record, RequestRecord
from litellm_messplus.restore import keep, restore
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.store import log
from tests.support.builders import build_engine, traffic
from tests.support.folding import bits, only_zoo

TODAY = datetime.now(UTC)
LONG_AGO = TODAY - timedelta(days=40)
HOUR = timedelta(hours=1)


def by_the_hour(records: list[Record], begin: datetime = LONG_AGO) -> list[Record]:
    """The records, with the requests an hour apart."""
    hours = 0
    dated: list[Record] = []
    for record in records:
        if isinstance(record, RequestRecord):
            record = replace(record, created_at=begin + hours * HOUR)
            hours += 1
        dated.append(record)
    return dated


def history(count: int, seed: int = 0, prefix: str = "r", zoo: str = "zoo") -> list[Record]:
    """As `traffic`, the requests an hour apart, from some weeks ago on."""
    return by_the_hour(traffic(count, seed, prefix, zoo, replaces=True))


async def snapshot_now(database: AsyncEngine, zoo: Zoo) -> None:
    """What a proxy writes at its stop."""
    engine = build_engine(zoo)
    await keep(database, engine, await restore(database, only_zoo(engine)))


async def write(database: AsyncEngine, zoo: Zoo, records: Sequence[Record]) -> None:
    """The records, and what a proxy that wrote them writes at its stop."""
    await log.append(database, records)
    await snapshot_now(database, zoo)


async def state_of(database: AsyncEngine, zoo: Zoo) -> bytes:
    """What a start comes to, to the bit."""
    engine = build_engine(zoo)
    assert await restore(database, only_zoo(engine)) == await log.head(database)
    return bits(engine)
