"""Reading within a time: what takes too long is ended by the database itself, with an error."""

import time

import pytest
from fastapi import HTTPException
from sqlalchemy import text
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.brain.routes import refusals
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.store import log
from litellm_messplus.store.reading import ReadingTakesTooLongError, one_moment
from tests.support.builders import request

ENDLESS = (
    "WITH RECURSIVE numbers (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers) "
    "SELECT COUNT(*) FROM numbers"
)
LONG = ENDLESS.replace("FROM numbers)", "FROM numbers WHERE number < 1000000)")


async def test_a_reading_that_takes_too_long_is_ended(database: AsyncEngine) -> None:
    async with database.connect() as connection:
        with pytest.raises(ReadingTakesTooLongError, match=r"more than 0\.2 s, and was given up"):
            async with one_moment(connection, 0.2):
                await connection.execute(text(ENDLESS))


async def test_the_connection_has_all_the_time_afterwards(database: AsyncEngine) -> None:
    async with database.connect() as connection:
        async with one_moment(connection, 0.001):
            time.sleep(0.01)  # noqa: ASYNC251  # the time is over, and nothing is being read
        await connection.rollback()
        assert (await connection.execute(text(LONG))).scalar_one() == 1_000_000


async def test_another_error_stays_what_it_is(database: AsyncEngine) -> None:
    async with database.connect() as connection:
        with pytest.raises(OperationalError, match="no such table"):
            async with one_moment(connection):
                await connection.execute(text("SELECT * FROM not_there"))


async def test_what_is_written_meanwhile_is_not_seen(database: AsyncEngine) -> None:
    count = text("SELECT COUNT(*) FROM requests")
    async with database.connect() as connection, one_moment(connection):
        assert (await connection.execute(count)).scalar_one() == 0
        await log.append(database, [request()])
        assert (await connection.execute(count)).scalar_one() == 0


def test_a_client_gets_the_reason() -> None:
    counters = Counters()
    with pytest.raises(HTTPException) as caught, refusals(counters):
        raise ReadingTakesTooLongError(30.0)

    assert caught.value.status_code == 503
    message = "reading the log took more than 30 s, and was given up: try again later"
    assert caught.value.detail == message
    assert counters.as_dict() == {"readings_given_up": 1}
