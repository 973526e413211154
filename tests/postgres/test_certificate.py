"""The certificate on Postgres is the one on SQLite, and so is what its statement gives."""

from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.certificate.claim import certificate_of
from litellm_messplus.store import log
from litellm_messplus.store.database import create_engine, migrate
from tests.support.history import DAYS, FIRST_DAY, ZOO, make_history

LATER = FIRST_DAY + timedelta(days=DAYS + 1)


async def test_it_is_the_certificate_of_sqlite(
    database: AsyncEngine, database_url: str, tmp_path: Path
) -> None:
    other_url = f"sqlite+aiosqlite:///{tmp_path / 'log.db'}"
    other, history = create_engine(other_url), make_history()
    await migrate(other)
    for engine in (database, other):
        await log.append(engine, history.records())
    await other.dispose()
    cut: dict[str, Any] = {"now": LATER - timedelta(days=2), "window": 7}
    for given in ({"now": LATER}, cut):
        here, there = [await certificate_of(url, ZOO, **given) for url in (database_url, other_url)]

        assert here.promises == there.promises
        assert sum(each.since.told for each in here.promises) > 0

    rows = [tuple(each.values()) for each in await _rows(database, here.sql)]
    assert [row[1:] for row in rows if row[0] == here.promises[0].service_level] == [
        tuple(asdict(each).values()) for each in here.promises[0].since.said
    ]


async def _rows(database: AsyncEngine, statement: str) -> list[dict[str, Any]]:
    async with database.connect() as connection:
        return [dict(row) for row in (await connection.exec_driver_sql(statement)).mappings()]
