"""A real Postgres that crashes, or has no connection left, while the proxy serves; and what lies on
the proxy's own disk there."""

import asyncio
import time
from collections.abc import Callable, Iterator

import asyncpg
import pytest

from tests.support.faults import Fault, Row, conclude
from tests.support.load import Load
from tests.support.postgres import Postgres, postgres_server
from tests.support.proxy import Config
from tests.support.warm_start import WarmProxy

pytestmark = pytest.mark.faults

PLUGIN = "messplus"
CONNECTIONS = 30
SOME = 20
AWAY_SECONDS = 3.0
OTHERS = {"application_name": "others"}
END_THE_PROXYS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE usename = current_user AND application_name <> 'others'
"""


@pytest.fixture
def postgres(config: Config) -> Iterator[Postgres]:
    """With a database of the plugin's, which is no superuser: places are reserved for those."""
    with postgres_server(CONNECTIONS) as server:
        server.execute(f"CREATE ROLE {PLUGIN} LOGIN")
        server.execute(f"CREATE DATABASE {PLUGIN} OWNER {PLUGIN}")
        config["messplus"]["database"] = server.url(PLUGIN, PLUGIN)
        yield server


def test_a_postgres_that_is_killed(postgres: Postgres, proxy: WarmProxy, rows: list[Row]) -> None:
    proxy.start()
    with Load(proxy) as load:
        for _ in range(3):
            load.until_acknowledged(SOME)
            postgres.kill()
            time.sleep(AWAY_SECONDS)
            postgres.start()
        load.until_acknowledged(SOME)
    proxy.stop()

    note = f"3 times, {AWAY_SECONDS:g} s away each"
    conclude(rows, Fault.POSTGRES_KILLED, proxy, load, note)


def test_connections_held_by_others(postgres: Postgres, proxy: WarmProxy, rows: list[Row]) -> None:
    proxy.start()
    with Load(proxy) as load:
        load.until_acknowledged(SOME)
        held = asyncio.run(hold_all(postgres, lambda: load.tally.refused > 0))
        load.until_acknowledged(SOME)
    proxy.stop()

    conclude(rows, Fault.NO_CONNECTION, proxy, load, f"others hold {held}, and give them back")


async def hold_all(postgres: Postgres, is_felt: Callable[[], bool]) -> int:
    """Take every connection, the proxy's as well, until it is felt; says how many were held."""
    others: list[asyncpg.Connection] = []
    where = {"host": "127.0.0.1", "port": postgres.port, "user": PLUGIN, "database": PLUGIN}

    async def take() -> None:
        try:
            while True:
                others.append(await asyncpg.connect(**where, server_settings=OTHERS))
        except asyncpg.TooManyConnectionsError:
            pass

    try:
        await take()
        while not is_felt():
            await others[0].execute(END_THE_PROXYS)
            await take()
    finally:
        for other in others:
            await other.close()
    return len(others)
