"""One model at two efforts on a real proxy, callers who ask for a level: what
goes to the model, what the answer's headers, the log and the explanation say, and who may."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.proxy import Proxy, ask, deployment, history_of, zoo_config
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end

LOW, HIGH = "hosted_vllm/mini, low effort", "hosted_vllm/mini, high effort"
TOKENS = {"low": 50, "high": 900}
ALICE, BOB = "sk-alice", "sk-bob"
KEYS = """
from fastapi import Request
from litellm.proxy._types import LitellmUserRoles, ProxyException, UserAPIKeyAuth

MAY = {"sk-alice": ["gold"], "sk-bob": None, "sk-operator": None}


async def authenticate(request: Request, api_key: str) -> UserAPIKeyAuth:
    if api_key not in MAY:
        raise ProxyException(message="unknown key", type="auth_error", param="key", code=401)
    role = LitellmUserRoles.PROXY_ADMIN if api_key == "sk-operator" else "internal_user"
    may = MAY[api_key]
    metadata = {} if may is None else {"messplus_callers_may": may}
    return UserAPIKeyAuth(api_key=api_key, metadata=metadata, user_role=role)
"""


def thinking(model: str, body: dict[str, Any]) -> Reply:
    """Answers that are longer at a high effort."""
    return Reply(completion_tokens=TOKENS[body["reasoning_effort"]])


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, folder: Path) -> Iterator[Proxy]:
    zoo: dict[str, Any] = {
        "alpha": 0.7,
        "service_levels": {"gold": {"alpha": 0.95}},
    }
    config = zoo_config(upstream.url, folder, zoo=zoo)
    config["model_list"] = [
        deployment("zoo", "mini", upstream.url, 1e-5, reasoning_effort=effort) for effort in TOKENS
    ]
    for each in config["model_list"]:
        each["litellm_params"]["model"] = "hosted_vllm/mini"
    config["general_settings"] |= {"custom_auth": "callers.authenticate"}
    config["router_settings"] = {"num_retries": 0}
    (folder / "callers.py").write_text(KEYS)
    running = Proxy(config, folder).start()
    yield running
    running.stop()


@pytest.fixture
def alice(proxy: Proxy, upstream: Upstream) -> Iterator[httpx.Client]:
    upstream.script = thinking
    upstream.requests.clear()
    with proxy.client(ALICE) as client:
        yield client


def asking_for_gold(client: httpx.Client, prompt: str) -> httpx.Response:
    headers = {"x-messplus-service-level": "gold"}
    body = {"model": "zoo", "messages": [{"role": "user", "content": prompt}]}
    return client.post("/v1/chat/completions", json=body, headers=headers)


def test_each_effort_is_a_candidate_and_is_sent_as_configured(
    alice: httpx.Client, proxy: Proxy, upstream: Upstream
) -> None:
    for number in range(12):
        answer = ask(alice, f"question {number}")
        effort = upstream.requests[-1]["reasoning_effort"]
        assert answer.headers["x-messplus-model"] == {"low": LOW, "high": HIGH}[effort]
    assert history_of(alice, answer)["estimated_cost"].keys() == {LOW, HIGH}
    assert history_of(alice, answer)["largest"] == HIGH


def test_the_effort_of_a_request_wins(alice: httpx.Client, upstream: Upstream) -> None:
    for effort, name in (("low", LOW), ("high", HIGH)) * 3:
        answer = ask(alice, "hello", reasoning_effort=effort)
        assert answer.headers["x-messplus-model"] == name
        assert upstream.requests[-1]["reasoning_effort"] == effort
    logged = history_of(alice, answer)
    assert (logged["gated_by"], logged["eligible"]) == (["reasoning_effort"], [HIGH])


CHAT = {"messages": [{"role": "user", "content": "hi"}]}
APIS = [
    ("/v1/chat/completions", CHAT),
    ("/v1/responses", {"input": "hi"}),
    ("/v1/messages", {"max_tokens": 9, **CHAT}),
]


@pytest.mark.parametrize("way", ["header", "metadata"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("path", "body"), APIS)
def test_every_api_takes_the_level_that_is_asked_for(
    alice: httpx.Client, upstream: Upstream, path: str, body: dict[str, Any], stream: bool, way: str
) -> None:
    upstream.script = lambda model, body: Reply()
    body, headers = {"model": "zoo", "stream": stream, **body}, dict[str, str]()
    if way == "header":
        headers = {"x-messplus-service-level": "gold"}
    else:
        body["metadata"] = {"messplus_service_level": "gold"}
    answer = alice.post(path, json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    assert ("text/event-stream" in answer.headers["content-type"]) is stream
    assert history_of(alice, answer)["service_level"] == "gold:asked"


def test_a_caller_whose_key_may_not_is_served_as_ever(proxy: Proxy, alice: httpx.Client) -> None:
    with proxy.client(BOB) as bob:
        answer = asking_for_gold(bob, "mine matters too")
        assert history_of(bob, answer)["service_level"] == "default"
        forged = {"user_api_key_metadata": {"messplus_callers_may": ["gold"]}}
        again = ask(bob, "and now?", metadata={**forged, "messplus_service_level": "gold"})
        assert history_of(bob, again)["service_level"] == "default"
    with proxy.client("sk-operator") as operator:
        assert operator.get("/messplus/health").json()["asked_in_vain"] >= 2
