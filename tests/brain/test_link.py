"""Workers and their brain, over a real socket: what crosses, and what holds while one is gone."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from litellm_messplus.brain import listener
from litellm_messplus.brain.place import BrainSettings
from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.runtime.stand_ins import replace
from litellm_messplus.serving.composition import BrainApart
from litellm_messplus.serving.link import RemoteRoad, reach
from litellm_messplus.store.tables import calls, requests
from tests.support.apart import Apart
from tests.support.in_process import written
from tests.support.journey import BROKEN, Journey
from tests.support.patience import until_it_holds

LARGE = "openai/large"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "LOOK_SECONDS", 0.02)


def link_of(worker: Journey) -> RemoteRoad:
    way = worker.plugin.parts.way
    assert isinstance(way, BrainApart)
    return way.link


async def asked(worker: Journey, **given: Any) -> None:
    found = await worker.ask(**given)
    await worker.answers(found)


async def test_requests_of_two_workers_are_one_log(tmp_path: Path) -> None:
    apart = Apart(tmp_path)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(apart.brain())
        workers = [await stack.enter_async_context(apart.worker()) for _ in range(2)]
        for worker in workers:
            await link_of(worker).connected()
        for number in range(6):
            await asked(workers[number % 2], call_id=f"call-{number}")
    rows = await written(tmp_path, requests)
    assert [row.t for row in rows] == [1, 2, 3, 4, 5, 6]
    assert len(await written(tmp_path, calls)) >= 6
    assert [worker.counters for worker in workers] == [{}, {}]


async def test_odd_texts_and_objects_cross(tmp_path: Path) -> None:
    """A lone surrogate, and an object that LiteLLM put among the metadata."""
    apart = Apart(tmp_path)
    async with apart.brain(), apart.worker() as worker:
        await link_of(worker).connected()
        arguments = worker.request(metadata={"user_api_key_hash": "key", "own": object()})
        found = await worker.ask("half of a pair: \ud83d", arguments)
        await worker.answers(found)
    assert len(await written(tmp_path, requests)) == 1
    assert worker.counters == {}


async def test_while_no_brain_answers_what_holds_serves(tmp_path: Path) -> None:
    async with Apart(tmp_path).worker() as worker:
        found = await worker.ask()
        assert found.ids == ["large"]
        assert worker.counters == {"brain_away": 1}


async def test_what_served_before_goes_on_without_a_brain(tmp_path: Path) -> None:
    before = {"mode": "watch", "before": "openai/small", "watch": {"sample": 0.0}}
    async with Apart(tmp_path, before).worker() as worker:
        assert (await worker.ask()).ids == ["small"]


async def test_calls_that_end_without_a_brain_are_written_later(tmp_path: Path) -> None:
    """Those of requests that it had ordered, and not yet written, with the requests."""
    apart = Apart(tmp_path)
    async with apart.worker() as worker:
        async with apart.brain() as brain:
            await link_of(worker).connected()
            brain.road.journal.write = lambda record: None  # type: ignore[method-assign]
            answered, failed = await worker.ask(), await worker.ask()
        await until_it_holds(lambda: not link_of(worker).is_connected)
        await worker.answers(answered)
        await worker.fails(failed, BROKEN)
        async with apart.brain():
            await link_of(worker).connected()
            await until_it_holds(lambda: not link_of(worker)._unwritten)
    assert len(await written(tmp_path, requests)) == 2
    assert sorted(row.status for row in await written(tmp_path, calls)) == ["failure", "success"]


async def test_ended_calls_are_kept_in_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("litellm_messplus.serving.link.MOST", 3)
    apart = Apart(tmp_path)
    async with apart.worker() as worker:
        async with apart.brain():
            await link_of(worker).connected()
            open_ones = [await worker.ask() for _ in range(5)]
        await until_it_holds(lambda: not link_of(worker).is_connected)
        for each in open_ones:
            await worker.answers(each)
        assert len(link_of(worker)._unwritten) == 3
        assert worker.counters["records_dropped"] == 2


async def test_counts_of_workers_add_up(tmp_path: Path) -> None:
    """Also of those that are gone."""
    apart = Apart(tmp_path)
    async with apart.brain() as brain:
        sums = brain.workers.sums
        for number in (1, 2):
            async with apart.worker() as worker:
                await link_of(worker).connected()
                worker.plugin.counters.add("routing_failures")
                link_of(worker)._tell_counts({})
                await until_it_holds(lambda: "routing_failures" in sums().running)
            await until_it_holds(lambda: "routing_failures" not in sums().running)
            assert sums().everyone["routing_failures"] == number


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"token": "another"}, "the token is another one"),
        ({"zoos": {}}, "other settings than this worker"),
    ],
)
async def test_another_worker_is_refused(
    tmp_path: Path, changed: dict[str, Any], reason: str
) -> None:
    apart = Apart(tmp_path)
    apart.given = replace(apart.given, token="secret")
    other: BrainSettings = replace(apart.given, **changed)
    async with apart.brain() as brain:
        with pytest.raises(ConfigurationError, match=reason):
            await reach(other, 0.0)
        assert await reach(apart.given, 0.0) == 0
        assert brain.workers.first_started is None


async def test_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apart = Apart(tmp_path)
    async with apart.brain():
        monkeypatch.setattr("litellm_messplus.serving.link.version", lambda: "0.0.1")
        with pytest.raises(ConfigurationError, match=r"the worker of 0\.0\.1"):
            await reach(apart.given, 0.0)


async def test_nobody_listens(tmp_path: Path) -> None:
    assert await reach(Apart(tmp_path).given, 0.0) is None


async def test_a_slow_brain_holds_no_request_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart = Apart(tmp_path)
    async with apart.brain() as brain, apart.worker() as worker:
        await link_of(worker).connected()
        monkeypatch.setattr(link_of(worker), "_seconds", 0.05)

        async def never(*given: object) -> None:
            await asyncio.Event().wait()

        monkeypatch.setattr(brain.road, "route", never)
        assert (await worker.ask()).ids == ["large"]
        assert worker.counters == {"brain_away": 1}
