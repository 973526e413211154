"""LiteLLM's own routing keeps working within the ranking: replicas, tags, a user's own order."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.proxy import PAPER, Proxy, ask, deployment, zoo_config
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end


@pytest.fixture(scope="module")
def replica() -> Iterator[Upstream]:
    serving = Upstream()
    serving.start()
    yield serving
    serving.stop()


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, replica: Upstream, folder: Path) -> Iterator[Proxy]:
    config = zoo_config(upstream.url, folder, zoo={**PAPER, "c": 0.0})
    config["model_list"] = [
        deployment("zoo", "tiny", upstream.url, 1e-6, tags=["default"], order=1),
        deployment("zoo", "tiny", replica.url, 1e-6, tags=["default"], order=1),
        deployment("zoo", "middle", upstream.url, 1e-5, tags=["paid"], order=1),
        deployment("zoo", "huge", upstream.url, 1e-4, tags=["default"], order=2),
    ]
    config["router_settings"] = {"enable_tag_filtering": True, "num_retries": 0}
    running = Proxy(config, folder).start()
    with running.client() as client:
        ask(client)  # the first request explores, and its other calls may take longer
    running.wait_for_rows("SELECT call_id FROM calls", 2)  # the tags leave two of the three
    yield running
    running.stop()


@pytest.fixture
def client(proxy: Proxy, upstream: Upstream, replica: Upstream) -> Iterator[httpx.Client]:
    for server in (upstream, replica):
        server.script = lambda model, body: Reply()
        server.requests.clear()
    with proxy.client() as connected:
        yield connected


def test_replicas_of_the_chosen_model_share_the_load(
    client: httpx.Client, upstream: Upstream, replica: Upstream
) -> None:
    models = {ask(client).headers["x-messplus-model"] for _ in range(20)}

    assert models == {"openai/tiny"}
    assert len(upstream.requests) + len(replica.requests) == 20
    assert upstream.requests
    assert replica.requests


def test_a_tag_still_decides_what_is_allowed(client: httpx.Client, upstream: Upstream) -> None:
    answer = ask(client, metadata={"tags": ["paid"]})

    assert answer.headers["x-messplus-model"] == "openai/middle"
    assert upstream.models_called() == ["middle"]


def test_a_users_own_order_counts_before_the_ranking(
    client: httpx.Client, proxy: Proxy, upstream: Upstream
) -> None:
    for _ in range(10):  # a debt so large that any price is worth paying
        ruined = ask(client).headers["x-litellm-call-id"]
        client.post("/messplus/feedback", json={"id": ruined, "satisfied": False})

    assert ask(client).headers["x-messplus-model"] == "openai/tiny"


def test_the_users_order_fallback_reaches_the_next_order(
    client: httpx.Client, upstream: Upstream, replica: Upstream
) -> None:
    for server in (upstream, replica):
        server.script = lambda model, body: Reply(status=200 if model == "huge" else 500)

    answer = ask(client)

    assert answer.status_code == 200
    assert answer.headers["x-messplus-model"] == "openai/huge"
