"""A pooler before Postgres: whichever session serves a transaction, nothing is lost or mixed up."""

import asyncio

import pytest
from sqlalchemy import text

from litellm_messplus.brain.lease import lease_of
from litellm_messplus.store import log
from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.store.postgres import is_pooled
from tests.support.builders import request
from tests.support.postgres import Postgres, pooler

CLIENTS = 12


async def test_transactions_of_any_session_agree(server: Postgres) -> None:
    with pooler(server) as through:
        database = create_engine(through(await server.new_database()))
        await migrate(database)
        assert is_pooled(database)

        async def work(client: int) -> None:
            for number in range(10):
                async with database.begin() as connection:
                    given = {"a": client, "b": str(number)}
                    found = await connection.execute(text("SELECT :a + 1, :b || 'x'"), given)
                    assert tuple(found.one()) == (client + 1, f"{number}x")

        await asyncio.gather(*map(work, range(CLIENTS)))
        await log.append(database, [request("a"), request("b")])
        assert (await log.ends(database)).head == 2
        await database.dispose()


async def test_one_learner_at_a_time_though_its_session_is_shared(server: Postgres) -> None:
    with pooler(server) as through:
        database = create_engine(through(await server.new_database()))
        one, two = lease_of(database), lease_of(database)
        assert [await one.take(), await two.take(), await one.take()] == [True, False, True]
        await one.release()
        assert await two.take()
        await two.release()
        await database.dispose()


SHOWN = {
    "application_name=here": ("application_name", "here"),
    "options=-c%20lock_timeout%3D7s": ("lock_timeout", "7s"),
    "sslmode=prefer&connect_timeout=9": ("ssl", "off"),
    "statement_cache_size=0&prepared_statement_cache_size=0": ("jit", "on"),
    "pgbouncer=true": ("jit", "on"),
}


@pytest.mark.parametrize("options", SHOWN)
async def test_the_options_of_a_url_reach_the_server(server: Postgres, options: str) -> None:
    name, value = SHOWN[options]
    url = f"{await server.new_database()}?{options}".replace("+asyncpg", "")
    database = create_engine(url)
    for _ in range(2):  # the first one also looks for a pooler
        async with database.connect() as connection:
            assert (await connection.execute(text(f"SHOW {name}"))).scalar_one() == value
    assert is_pooled(database) == ("pgbouncer" in options)
    await database.dispose()
