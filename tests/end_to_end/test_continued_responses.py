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
    both = respond(client), respond(client)
    for earlier in both:
        proxy.wait_for_rows(
            "SELECT * FROM calls WHERE request_id = ? AND role = 'served'",
            1,
            earlier.headers["x-messplus-request-id"],
        )
    for earlier in both:
        model = earlier.headers["x-messplus-model"].removeprefix("openai/")
        requests = proxy.rows("SELECT COUNT(*) AS n FROM requests")
        upstream.requests.clear()

        for _ in range(12):
            answer = respond(client, previous_response_id=earlier.json()["id"], stream=stream)
            assert not [name for name in answer.headers if name.startswith("x-messplus")]

        assert upstream.models_called() == [model] * 12
        assert proxy.rows("SELECT COUNT(*) AS n FROM requests") == requests


def test_what_continues_a_continued_one_stays(client: httpx.Client, upstream: Upstream) -> None:
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


@pytest.fixture(scope="module")
def holding(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """A zoo that holds its conversations; two replicas of each model."""
    folder = tmp_path_factory.mktemp("holding")
    config = zoo_config(upstream.url, folder, zoo={"alpha": 0.7})
    config["model_list"] *= 2
    for number, each in enumerate(config["model_list"]):
        each = {**each, "model_info": {**each["model_info"], "id": f"replica-{number}"}}
        config["model_list"][number] = each
    running = Proxy(config, folder).start()
    yield running
    running.stop()


def test_a_continued_response_is_held_and_logged(holding: Proxy, upstream: Upstream) -> None:
    upstream.script = lambda model, body: Reply(text=f"from {model}")
    with holding.client() as client:
        for _ in range(4):
            answer = respond(client)
            given = [answer.headers["x-messplus-request-id"]]
            for _ in range(3):
                answer = respond(client, previous_response_id=answer.json()["id"])
                given.append(answer.headers["x-messplus-request-id"])
            query = (
                "SELECT requests.*, calls.deployment_id FROM requests JOIN calls "
                "ON calls.request_id = requests.request_id WHERE requests.request_id = ?"
            )
            rows = [holding.wait_for_rows(query, 1, each)[0] for each in given]
            assert [row["hold"] for row in rows] == [None, "state", "state", "state"]
            assert len({row["deployment_id"] for row in rows}) == 1
            assert len({row["conversation"] for row in rows}) == 1
        health = client.get("/messplus/health").json()
    assert not {"identity_failures", "holds_unknown", "routing_failures"} & set(health)
