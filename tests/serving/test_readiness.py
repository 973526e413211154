"""While the database is away: whether a worker routes, and its metrics, are told from memory."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.brain import monitoring
from litellm_messplus.brain.access import administrator
from litellm_messplus.brain.brain import Brain
from litellm_messplus.brain.messages import Caller
from litellm_messplus.core.hashed_ngrams import HashedNgrams
from litellm_messplus.serving.composition import Parts
from litellm_messplus.settings.schema import MessplusSettings
from litellm_messplus.store import log
from tests.support.builders import build_engine, request, served_call
from tests.support.in_process import brain_of, inside, running


@asynccontextmanager
async def asking(parts: Parts) -> AsyncIterator[httpx.AsyncClient]:
    """A client who has a key of an administrator where one is asked for."""
    app = brain_of(parts).web.app
    app.dependency_overrides[administrator] = lambda: Caller(None, is_admin=True)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://proxy") as client:
        yield client


async def scraped(client: httpx.AsyncClient) -> dict[str, float]:
    """The metrics without labels of their own, and the names of all counters."""
    answer = await client.get("/messplus/metrics")
    assert answer.status_code == 200
    samples = [
        sample
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    ]
    return {sample.labels.get("name", sample.name): sample.value for sample in samples}


async def test_anybody_may_ask_whether_it_routes_and_learns_nothing_else(tmp_path: Path) -> None:
    async with running(tmp_path) as plugin, asking(plugin.parts) as client:
        answer = await client.get("/messplus/ready")
        found = await scraped(client)
    assert (answer.status_code, answer.text) == (200, "routing")
    assert (found["messplus_up"], found["messplus_degraded"]) == (1.0, 0.0)


async def test_a_log_that_cannot_be_written_is_told_until_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = asyncio.Event()

    async def without_room(*given: Any, **options: Any) -> None:
        tried.set()
        raise OSError("no space left on device")

    async with running(tmp_path) as plugin, asking(plugin.parts) as client:
        with monkeypatch.context() as full:
            full.setattr(log, "append", without_room)
            brain_of(plugin.parts).journal.write(request(zoo="zoo"))
            await tried.wait()
            answer = await client.get("/messplus/ready")
            found = await scraped(client)
        journal = brain_of(plugin.parts).journal
        await journal.flush()
        await journal.write_durably(served_call())  # in a turn after that one
        after = await client.get("/messplus/ready")
    assert (answer.status_code, answer.text) == (200, "degraded")
    assert (found["messplus_up"], found["messplus_degraded"]) == (1.0, 1.0)
    assert after.text == "routing"


@pytest.mark.parametrize("is_hanging", [False, True], ids=["refuses", "hangs"])
async def test_metrics_are_told_from_memory_where_the_log_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_hanging: bool
) -> None:
    async def away(*given: Any, **options: Any) -> None:
        if is_hanging:
            await asyncio.Event().wait()
        raise OSError("connection refused")

    async with running(tmp_path) as plugin, asking(plugin.parts) as client:
        before = await scraped(client)
        monkeypatch.setattr(monitoring, "SCRAPE_SECONDS", 0.01)
        monkeypatch.setattr(monitoring, "read_status", away)
        brain_of(plugin.parts).watch._readings._found.clear()
        plugin.counters.add("routing_failures")
        found = await scraped(client)
    assert found["routing_failures"] == found["readings_given_up"] == 1.0
    assert found["messplus_queue"] == before["messplus_queue"]
    assert "messplus_overall_requests" in before
    assert "messplus_overall_requests" not in found


async def test_a_worker_that_waits_for_its_database_is_absent(database: AsyncEngine) -> None:
    settings = MessplusSettings.model_validate(
        {"database": str(database.url), "zoos": {"zoo": {"alpha": 0.8}}}
    )
    brain = Brain(settings, HashedNgrams(), {"zoo": build_engine()}, database)
    parts = inside(brain, settings)
    async with asking(parts) as client:
        answer = await client.get("/messplus/ready")
        found = await scraped(client)
    await parts.close()
    assert (answer.status_code, answer.text) == (503, "absent")
    assert (found["messplus_up"], found["messplus_degraded"]) == (0.0, 0.0)
