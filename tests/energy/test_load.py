"""A load is what its cell says, and no two of its prompts begin alike."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from litellm_messplus.energy.measure import Cell, Endpoint, Grid, Usage
from litellm_messplus.energy.meter import EndpointError
from litellm_messplus.runtime.errors import ConfigurationError
from tests.support.patience import PATIENT
from tests.support.upstream import Reply, Upstream


class Scripted:
    """Counts the requests that run at a time; a word is two tokens."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.answer: dict[str, Any] = {}
        self.running = self.most = 0

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        self.bodies.append(body)
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0.001)
        self.running -= 1
        tokens = 2 * len(body["prompt"].split())
        usage = {"prompt_tokens": tokens, "completion_tokens": body["max_tokens"]}
        return httpx.Response(200, json={"usage": usage, **self.answer})


@pytest.fixture
def scripted() -> Scripted:
    return Scripted()


@pytest.fixture
async def endpoint(scripted: Scripted) -> AsyncIterator[Endpoint]:
    async with httpx.AsyncClient(transport=httpx.MockTransport(scripted)) as client:
        yield Endpoint(client, "http://upstream/v1/", "llama-1b")


async def test_a_load_keeps_to_its_cell(endpoint: Endpoint, scripted: Scripted) -> None:
    await endpoint.calibrate()
    scripted.bodies.clear()

    usage = await endpoint.load(Cell(64, 16, 4), seconds=0.02)

    assert scripted.most == 4
    count = len(scripted.bodies)
    assert count >= 4
    assert usage == Usage(count, 64 * count, 16 * count)
    for body in scripted.bodies:
        assert body["max_tokens"] == body["min_tokens"] == 16
        assert body["ignore_eos"] is True
        assert body["model"] == "llama-1b"


async def test_no_two_prompts_begin_alike_nor_in_another_run(scripted: Scripted) -> None:
    """Sixteen tokens, the block of vLLM's prefix cache, are here eight words."""
    async with httpx.AsyncClient(transport=httpx.MockTransport(scripted)) as client:
        for _ in range(2):
            await Endpoint(client, "http://upstream/v1", "m").load(Cell(64, 2, 4), 0.05)

    beginnings = [tuple(body["prompt"].split()[:8]) for body in scripted.bodies]
    assert len(set(beginnings)) == len(beginnings) >= 8


async def test_tokens_out_of_a_cache_are_left_out(endpoint: Endpoint, scripted: Scripted) -> None:
    assert (await endpoint.load(Cell(8, 2, 3), seconds=0.0)).requests == 3
    usage = {"prompt_tokens": 64, "completion_tokens": 2, "prompt_tokens_details": None}
    scripted.answer = {"usage": usage}
    assert (await endpoint.load(Cell(64, 2, 1), 0.0)).prompt_tokens == 64

    scripted.answer = {"usage": {**usage, "prompt_tokens_details": {"cached_tokens": 48}}}
    assert (await endpoint.load(Cell(64, 2, 1), 0.0)).prompt_tokens == 16


@pytest.mark.parametrize("answer", [{"usage": None}, {"usage": {}}, {"usage": "none"}])
async def test_an_endpoint_without_usage_is_refused(
    endpoint: Endpoint, scripted: Scripted, answer: dict[str, Any]
) -> None:
    scripted.answer = answer

    with pytest.raises(EndpointError, match="answers without `usage`"):
        await endpoint.calibrate()


async def test_a_refusal_is_shown_with_what_to_check_and_who_is_not_there_is_named() -> None:
    upstream = Upstream(lambda model, body: Reply(status=400))
    upstream.start()
    try:
        async with httpx.AsyncClient(timeout=PATIENT) as client:
            with pytest.raises(EndpointError, match=r"status 400: .*scripted failure.*--model"):
                await Endpoint(client, upstream.url, "m").load(Cell(8, 2, 3), 0.0)
            with pytest.raises(EndpointError, match=r"--url: http://127.0.0.1:9/v1 does not ans"):
                await Endpoint(client, "http://127.0.0.1:9/v1", "m").calibrate()
    finally:
        upstream.stop()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"prompt_tokens": (64,)}, "--prompt-tokens: given '64'; allowed: at least 2"),
        ({"completion_tokens": (16, 16)}, "--completion-tokens: given '16,16'"),
        ({"concurrency": (0,)}, "--concurrency: given '0'"),
        ({"concurrency": ()}, "--concurrency: given ''"),
        ({"serving_concurrency": 2}, "--serving-concurrency: given 2; allowed: one of .*1, 4, 16"),
        ({"seconds": 0.0}, "--seconds: given 0.0"),
        ({"repeats": 0}, "--repeats: given 0"),
        ({"idle_windows": 2}, "--idle-windows: given 2"),
    ],
)
def test_a_grid_without_a_fit_is_refused_by_option(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Grid(**changed)


def test_a_grid_holds_for_the_middle_concurrency_by_default() -> None:
    assert Grid(concurrency=(16, 1, 4)).served == 4
    assert Grid(concurrency=(1, 16)).served == 16
    assert Grid(serving_concurrency=1).served == 1
    cells = Grid((10, 20), (1, 2, 3), (1, 4), repeats=3).cells()
    assert len(cells) == 2 * 3 * 2 * 3
    assert all(cells.count(each) == 3 for each in cells)
