"""LiteLLM's response cache: a repeated answer is nobody's new call, and belongs to who wrote it."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import httpx
import pytest

from tests.support.patience import until
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
    """`explored` explores every request, `mixed` learns, the others explore their first only."""
    once = {**PAPER, "c": 0.0}
    zoos = {"explored": {**PAPER, "c": 1e9}, "mixed": {"alpha": 0.8}}
    zoos |= dict.fromkeys(HITS.values(), once)
    config = zoo_config(upstream.url, folder, zoo=once)
    for group in zoos:
        names = ("tiny", "huge") if group == "mixed" else PRICES
        config["model_list"] += [
            deployment(group, name, upstream.url, PRICES[name]) for name in names
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


def test_the_answer_of_an_exploration_is_never_served_to_a_user(
    client: httpx.Client, upstream: Upstream
) -> None:
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


def test_feedback_on_a_hit_is_of_the_hit_and_moves_the_queue(
    client: httpx.Client, proxy: Proxy
) -> None:
    path = "/v1/chat/completions"
    first = send(client, path, "judged twice")
    proxy.wait_for_rows(CALLS, 1, first.headers["x-messplus-request-id"])
    again = send(client, path, "judged twice")
    assert again.headers["x-messplus-model"] == first.headers["x-messplus-model"]

    accepted = client.post(
        "/messplus/feedback", json={"id": again.json()["id"], "satisfied": False}
    ).json()

    assert accepted["request_id"] == again.headers["x-messplus-request-id"]
    before = client.get(f"/messplus/requests/{accepted['request_id']}").json()["queue"]
    after = send(client, path, "judged thrice").headers["x-messplus-request-id"]
    assert client.get(f"/messplus/requests/{after}").json()["queue"] == pytest.approx(before + 0.7)


def test_with_the_cache_on_the_log_has_the_calls_that_were_made_and_predictions_hold(
    client: httpx.Client, proxy: Proxy, upstream: Upstream
) -> None:
    """Every prompt is asked three times, by turns; the users judge what they read."""
    upstream.script = lambda model, body: Reply(text=f"from {model}")
    labels: dict[str, dict[str, float]] = defaultdict(dict)
    prompts = [f"question number {number}" for number in range(100)]
    for prompt in prompts[:50] * 3 + prompts[50:] * 3:
        answer = send(client, "/v1/chat/completions", prompt, model="mixed")
        writer = answer.json()["choices"][0]["message"]["content"].removeprefix("from ")
        number = int(prompt.rsplit(" ", 1)[1])
        is_good = number % 20 < 11 if writer == "tiny" else number % 40 != 0
        labels[writer][prompt] = float(is_good)
        client.post("/messplus/feedback", json={"id": answer.json()["id"], "satisfied": is_good})

    made = "SELECT * FROM calls JOIN requests USING (request_id) WHERE zoo = 'mixed'"
    settled = "SELECT COUNT(*) AS n FROM calls WHERE role = 'served' AND request_id IN "
    settled += "(SELECT request_id FROM requests WHERE zoo = 'mixed')"
    until(lambda: proxy.rows(settled)[0]["n"] == 300)
    real = [row for row in proxy.rows(made) if not row["is_cache_hit"]]
    assert len(real) == len(upstream.requests)
    assert proxy.rows(f"{made} AND is_cache_hit") != []
    last = send(client, "/v1/chat/completions", "question", model="mixed")
    story = client.get(f"/messplus/requests/{last.headers['x-messplus-request-id']}").json()
    for model, seen in labels.items():
        assert len(seen) > 5, labels
        predicted: Any = story["estimated_satisfaction"][f"openai/{model}"]
        assert predicted == pytest.approx(fmean(seen.values()), abs=0.15), model
