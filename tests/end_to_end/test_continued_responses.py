"""`previous_response_id`: a continued response stays where it is, and stops nothing else."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.proxy import PAPER, Proxy, ask, zoo_config
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, folder: Path) -> Iterator[Proxy]:
    """The largest answers the first request; later ones go to the cheapest."""
    running = Proxy(zoo_config(upstream.url, folder, zoo={**PAPER, "c": 0.0}), folder).start()
    yield running
    running.stop()


@pytest.fixture
def client(proxy: Proxy, upstream: Upstream) -> Iterator[httpx.Client]:
    upstream.script = lambda model, body: Reply(text=f"from {model}")
    with proxy.client() as connected:
        yield connected


def respond(client: httpx.Client, **body: Any) -> httpx.Response:
    answer = client.post("/v1/responses", json={"model": "zoo", "input": "hi", **body})
    assert answer.status_code == 200, answer.text
    return answer


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_continued_response_stays_on_its_deployment_and_is_not_logged(
    client: httpx.Client, proxy: Proxy, upstream: Upstream, stream: bool
) -> None:
    for earlier in (respond(client), respond(client)):
        model = earlier.headers["x-messplus-model"].removeprefix("openai/")
        proxy.wait_for_rows(
            "SELECT * FROM calls WHERE request_id = ? AND role = 'served'",
            1,
            earlier.headers["x-messplus-request-id"],
        )
        requests = proxy.rows("SELECT COUNT(*) AS n FROM requests")
        upstream.requests.clear()

        for _ in range(12):
            answer = respond(client, previous_response_id=earlier.json()["id"], stream=stream)
            assert not [name for name in answer.headers if name.startswith("x-messplus")]

        assert upstream.models_called() == [model] * 12
        assert proxy.rows("SELECT COUNT(*) AS n FROM requests") == requests


def test_a_response_that_continues_a_continued_one_stays_too(
    client: httpx.Client, upstream: Upstream
) -> None:
    first = respond(client)
    upstream.requests.clear()
    identity = first.json()["id"]
    for _ in range(6):
        identity = respond(client, previous_response_id=identity).json()["id"]
    assert len(set(upstream.models_called())) == 1


def test_in_a_chat_completion_it_changes_nothing(
    client: httpx.Client, proxy: Proxy, upstream: Upstream
) -> None:
    identity = respond(client).json()["id"]
    for given in ("anything", identity):
        answer = ask(client, previous_response_id=given)

        assert answer.status_code == 200, answer.text
        assert answer.headers["x-messplus-model"] == "openai/tiny"
        request_id = answer.headers["x-messplus-request-id"]
        proxy.wait_for_rows("SELECT * FROM calls WHERE request_id = ?", 1, request_id)
