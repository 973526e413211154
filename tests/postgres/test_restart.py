"""A Postgres that is killed and started again: what a worker tells meanwhile, and after it."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from litellm_messplus.brain.access import administrator, administrator_or_page
from litellm_messplus.brain.messages import Caller
from tests.support.in_process import brain_of, running
from tests.support.patience import PATIENT
from tests.support.postgres import Postgres, postgres_server


@pytest.fixture
def own_server() -> Iterator[Postgres]:
    """A server that no other test uses."""
    with postgres_server() as server:
        yield server


@pytest.fixture
async def client(own_server: Postgres, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """An administrator who asks a worker on that server."""
    url = await own_server.new_database()
    async with running(tmp_path, database=url) as plugin:
        app = brain_of(plugin.parts).web.app
        for dependency in (administrator, administrator_or_page):
            app.dependency_overrides[dependency] = lambda: Caller(None, is_admin=True)
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://proxy") as opened:
            yield opened


async def test_metrics_while_it_is_away(own_server: Postgres, client: httpx.AsyncClient) -> None:
    own_server.kill()
    async with asyncio.timeout(PATIENT):  # the log is looked at each second
        while (ready := await client.get("/messplus/ready")).text != "degraded":  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    scraped = await client.get("/messplus/metrics")
    await own_server.start_again()

    assert scraped.status_code == 200
    assert "messplus_up 1.0" in scraped.text
    assert "messplus_degraded 1.0" in scraped.text
    assert (ready.status_code, ready.text) == (200, "degraded")


async def test_the_first_status_after_it(own_server: Postgres, client: httpx.AsyncClient) -> None:
    """By a connection from before it, which was not tried since."""
    assert (await client.get("/messplus/status")).status_code == 200
    own_server.kill()
    await own_server.start_again()
    assert (await client.get("/messplus/status")).status_code == 200
