"""Who failed and who answered, where LiteLLM does not tell it: an account without credit, a body
that it cannot read, a client's own key, a fallback into a zoo."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from litellm_messplus.serving.deployments.deployment import MOST_FAILURES
from tests.support.patience import until
from tests.support.proxy import Proxy, ask, deployment, quick, zoo_config
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end

NO_CREDIT = "Your credit balance is too low to access the Anthropic API."
SECONDS = 3
CANDIDATES = {f"openai/{name}" for name in ("tiny", "middle", "huge")}
CHAT = {"messages": [{"role": "user", "content": "hello"}]}


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, folder: Path) -> Iterator[Proxy]:
    config = zoo_config(upstream.url, folder, zoo={"alpha": 0.7})
    config["model_list"].append(deployment("front", "down", upstream.url, 1e-6))
    fallbacks = [{"front": ["zoo"]}]
    config["router_settings"] = {"num_retries": 0, "fallbacks": fallbacks, "cooldown_time": 0.1}
    running = Proxy(quick(config, folder, failing={"seconds": SECONDS}), folder).start()
    yield running
    running.stop()


@pytest.fixture
def client(proxy: Proxy, upstream: Upstream) -> Iterator[httpx.Client]:
    upstream.script = lambda model, body: Reply(status=500 if model == "down" else 200)
    with proxy.client() as connected:
        yield connected


def call_of(proxy: Proxy, answer: httpx.Response) -> dict[str, Any]:
    query = "SELECT * FROM calls WHERE role = 'served' AND request_id = ?"
    (call,) = proxy.wait_for_rows(query, 1, answer.headers["x-messplus-request-id"])
    return call


def test_another_model_serves_for_one_out_of_credit(
    client: httpx.Client, proxy: Proxy, upstream: Upstream
) -> None:
    first = ask(client).raise_for_status().headers["x-messplus-model"]
    broke = first.removeprefix("openai/")
    upstream.script = lambda model, body: (
        Reply(status=400, failure=NO_CREDIT) if model == broke else Reply()
    )
    answers = [ask(client) for _ in range(30)]
    failed = [each for each in answers if each.status_code != 200]
    assert {each.status_code for each in failed} == {400}
    assert MOST_FAILURES <= len(failed) <= 5
    for answer in failed:
        call = call_of(proxy, answer)
        assert (call["failure"], call["candidate"]) == ("upstream", first)

    def said() -> list[str]:
        alerts = client.get("/messplus/status").raise_for_status().json()["alerts"]
        return [each["message"] for each in alerts if each["candidate"] == first]

    until(lambda: any(f"{first} fails" in each for each in said()))
    upstream.script = lambda model, body: Reply()
    until(lambda: ask(client).headers["x-messplus-model"] == first)
    until(lambda: said() == [])


@pytest.mark.parametrize("messages", ["hi", [1, 2], [{"role": "user", "content": ["text"]}]])
def test_a_body_that_nobody_can_read_is_the_clients(
    client: httpx.Client, proxy: Proxy, upstream: Upstream, messages: Any
) -> None:
    upstream.requests.clear()
    answer = client.post("/v1/chat/completions", json={"model": "zoo", "messages": messages})

    assert answer.status_code == 400
    assert upstream.requests == []
    assert call_of(proxy, answer)["failure"] == "refused"


@pytest.mark.parametrize("more", [{}, {"stream": True}], ids=["whole", "stream"])
@pytest.mark.parametrize("own", [{"api_key": "sk-own"}, {"model": "front"}], ids=["key", "front"])
def test_the_model_that_answered_is_named(
    client: httpx.Client, proxy: Proxy, own: dict[str, str], more: dict[str, bool]
) -> None:
    answer = client.post("/v1/chat/completions", json={"model": "zoo", **CHAT, **own, **more})

    call = call_of(proxy, answer.raise_for_status())
    assert call["candidate"] == answer.headers["x-messplus-model"] in CANDIDATES
    assert call["cost"] > 0.0


@pytest.mark.parametrize("more", [{}, {"stream": True}], ids=["whole", "stream"])
def test_a_fallback_into_a_zoo_that_fails_too_is_upstreams(
    client: httpx.Client, proxy: Proxy, upstream: Upstream, more: dict[str, bool]
) -> None:
    upstream.script = lambda model, body: Reply(status=500)
    answer = client.post("/v1/chat/completions", json={"model": "front", **CHAT, **more})

    assert answer.status_code == 500
    query = (
        "SELECT c.failure FROM calls c JOIN requests r USING (request_id) "
        "WHERE c.role = 'served' AND r.litellm_call_id = ?"
    )
    (call,) = proxy.wait_for_rows(query, 1, answer.headers["x-litellm-call-id"])
    assert call["failure"] == "upstream"


def test_a_key_of_the_client_that_is_refused_is_the_clients(
    client: httpx.Client, proxy: Proxy, upstream: Upstream
) -> None:
    upstream.script = lambda model, body: Reply(status=401, failure="Incorrect API key provided")
    answer = ask(client, api_key="sk-own")

    assert answer.status_code == 401
    call = call_of(proxy, answer)
    assert call["failure"] == "refused"
    assert call["candidate"] in CANDIDATES
