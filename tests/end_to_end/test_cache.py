"""LiteLLM's response cache: a repeated answer is nobody's new call, and belongs to who wrote it."""

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.proxy import PAPER, Config, Proxy, deployment, zoo_config
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end

PRICES = {"tiny": 1e-6, "middle": 1e-5, "huge": 1e-4}
CALLS = "SELECT * FROM calls WHERE request_id = ? ORDER BY call_id"
SURFACES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "/v1/chat/completions": ("messages", lambda text: [{"role": "user", "content": text}]),
    "/v1/completions": ("prompt", lambda text: text),
    "/v1/responses": ("input", lambda text: text),
    "/v1/messages": ("messages", lambda text: [{"role": "user", "content": text}]),
}


HITS = {
    (path, stream): f"hits-{number}"
    for number, (path, stream) in enumerate(product(SURFACES, (False, True)))
}
"""A zoo for each case, since the largest serves the first request of a zoo."""


def body_of(path: str, text: str) -> Config:
    """A request of one surface."""
    name, spelled = SURFACES[path]
    return {name: spelled(text), "max_tokens": 9} if "messages" in path else {name: spelled(text)}


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, folder: Path) -> Iterator[Proxy]:
    """`explored` explores every request, the others explore their first only."""
    once = {**PAPER, "c": 0.0}
    zoos = {"explored": {**PAPER, "c": 1e9}, **dict.fromkeys(HITS.values(), once)}
    config = zoo_config(upstream.url, folder, zoo=once)
    for group in zoos:
        config["model_list"] += [
            deployment(group, name, upstream.url, price) for name, price in PRICES.items()
        ]
    config["messplus"]["zoos"] |= zoos
    config["litellm_settings"] |= {"cache": True, "cache_params": {"type": "local"}}
    running = Proxy(config, folder).start()
    yield running
    running.stop()


@pytest.fixture
def client(proxy: Proxy, upstream: Upstream) -> Iterator[httpx.Client]:
    upstream.script = lambda model, body: Reply(text=f"from {model}")
    upstream.requests.clear()
    with proxy.client() as connected:
        yield connected


def send(client: httpx.Client, path: str, text: str, model: str = "zoo") -> httpx.Response:
    answer = client.post(path, json={"model": model, **body_of(path, text)})
    assert answer.status_code == 200, answer.text
    return answer


@pytest.mark.parametrize("path", SURFACES)
def test_explorations_are_real_calls_on_every_surface(
    client: httpx.Client, proxy: Proxy, upstream: Upstream, path: str
) -> None:
    """The second request is answered by the cache; its explorations reach the models."""
    for calls in ({"tiny", "middle", "huge"}, {"tiny", "middle"}):
        upstream.requests.clear()
        answer = send(client, path, f"once and again on {path}", model="explored")

        request_id = answer.headers["x-messplus-request-id"]
        rows = proxy.wait_for_rows(CALLS, 3, request_id)
        assert [(row["status"], row["error"]) for row in rows] == [("success", None)] * 3
        assert sorted(upstream.models_called()) == sorted(calls)
        real = {row["candidate"] for row in rows if not row["is_cache_hit"]}
        assert real == {f"openai/{name}" for name in calls}
        bodies = [{**body, "model": "any"} for body in upstream.requests]
        assert all(body == bodies[0] for body in bodies)


def test_no_user_gets_an_explorations_answer(client: httpx.Client, upstream: Upstream) -> None:
    path = "/v1/chat/completions"
    texts = [
        send(client, path, "who answers?", model="explored").json()["choices"][0]["message"]
        for _ in range(3)
    ]
    assert {text["content"] for text in texts} == {"from huge"}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("path", SURFACES)
def test_a_hit_belongs_to_who_wrote_the_answer(
    client: httpx.Client, proxy: Proxy, upstream: Upstream, path: str, stream: bool
) -> None:
    """The largest answers first, then the cheapest is chosen, and the cache answers in its place:
    with what the largest wrote."""
    body = {"model": HITS[path, stream], "stream": stream, **body_of(path, f"{path} {stream}")}
    first = client.post(path, json=body)
    assert first.headers["x-messplus-model"] == "openai/huge"
    earlier = proxy.wait_for_rows(CALLS, 3, first.headers["x-messplus-request-id"])[0]
    assert earlier["candidate"] == "openai/huge"
    upstream.requests.clear()

    for _ in range(2):  # the second repeats a repetition
        again = client.post(path, json=body)

        assert upstream.models_called() == []
        is_told = not (stream and path == "/v1/messages")
        expected = "openai/huge" if is_told else None
        assert again.headers.get("x-messplus-model") == expected
        request_id = again.headers["x-messplus-request-id"]
        (hit,) = proxy.wait_for_rows(CALLS, 1, request_id)
        assert (hit["is_cache_hit"], hit["cost"]) == (1, 0.0)
        for name in ("candidate", "deployment_id", "model", "response_id"):
            assert hit[name] == earlier[name], name
        (request,) = proxy.rows("SELECT * FROM requests WHERE request_id = ?", request_id)
        assert request["chosen"] == "openai/tiny"
