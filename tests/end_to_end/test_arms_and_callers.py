"""One model at two efforts on a real proxy, callers who ask for more, or for less, and a rule: what
goes to the model, what the answer's headers, the log and the explanation say, and who may."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from litellm_messplus.cli.main import app
from tests.support.proxy import Proxy, ask, deployment, history_of, zoo_config
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end

LOW, HIGH = "hosted_vllm/mini, low effort", "hosted_vllm/mini, high effort"
TOKENS = {"low": 50, "high": 900}
ALICE, BOB = "sk-alice", "sk-bob"
KEYS = """
from fastapi import Request
from litellm.proxy._types import LitellmUserRoles, ProxyException, UserAPIKeyAuth

MAY = {"sk-alice": ["gold", "max_cost", "deadline_seconds"], "sk-bob": None, "sk-operator": None}


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
        "unmet": "refuse",
    }
    zoo["first"] = [{"when": {"metadata.task": ["code", "proof"]}, "candidates": [HIGH]}]
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


def asking(client: httpx.Client, prompt: str, **asked: Any) -> httpx.Response:
    headers = {f"x-messplus-{name.replace('_', '-')}": str(each) for name, each in asked.items()}
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


def test_the_effort_of_a_request_wins_and_its_arm_serves(
    alice: httpx.Client, upstream: Upstream
) -> None:
    for effort, name in (("low", LOW), ("high", HIGH)) * 3:
        answer = ask(alice, "hello", reasoning_effort=effort)
        assert answer.headers["x-messplus-model"] == name
        assert upstream.requests[-1]["reasoning_effort"] == effort
    logged = history_of(alice, answer)
    assert (logged["gated_by"], logged["eligible"]) == (["reasoning_effort"], [HIGH])


def test_what_an_arm_costs_is_learned_from_its_own_answers(alice: httpx.Client) -> None:
    for number in range(20):
        ask(alice, f"learn {number}", reasoning_effort=("low", "high")[number % 2])

    def ratio() -> float:
        cost = history_of(alice, ask(alice, "and now?"))["estimated_cost"]
        return float(cost[HIGH] / cost[LOW])

    assert any(ratio() > 5.0 for _ in range(100))


@pytest.mark.parametrize("way", ["header", "metadata"])
def test_a_caller_chooses_a_level_that_its_key_may(
    alice: httpx.Client, proxy: Proxy, way: str
) -> None:
    if way == "header":
        answer = asking(alice, "this one matters", service_level="gold")
    else:
        answer = ask(alice, "this one matters", metadata={"messplus_service_level": "gold"})
    logged = history_of(alice, answer)
    assert (logged["service_level"], logged["alpha"]) == ("gold:asked", 0.95)
    assert logged["granted"] == {"service_level": "gold"}

    there = ("--url", proxy.url, "--key", "sk-operator")
    given = answer.headers["x-messplus-request-id"]
    result = CliRunner().invoke(app, ["explain", given, *there], env={"COLUMNS": "200"})
    assert "It asked for service_level gold; granted was service_level gold." in result.output


CHAT = {"messages": [{"role": "user", "content": "hi"}]}
APIS = [
    ("/v1/chat/completions", CHAT),
    ("/v1/responses", {"input": "hi"}),
    ("/v1/messages", {"max_tokens": 9, **CHAT}),
]


@pytest.mark.parametrize("way", ["header", "metadata"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("path", "body"), APIS)
def test_every_api_takes_what_is_asked_for(
    alice: httpx.Client, upstream: Upstream, path: str, body: dict[str, Any], stream: bool, way: str
) -> None:
    upstream.script = lambda model, body: Reply()
    body, headers = {"model": "zoo", "stream": stream, **body}, dict[str, str]()
    if way == "header":
        headers = {"x-messplus-service-level": "gold", "x-messplus-max-cost": "0.5"}
    else:
        body["metadata"] = {"messplus_service_level": "gold", "messplus_max_cost": "0.5"}
    answer = alice.post(path, json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    assert ("text/event-stream" in answer.headers["content-type"]) is stream
    logged = history_of(alice, answer)
    assert logged["service_level"] == "gold:asked"
    assert logged["granted"] == {"service_level": "gold", "max_cost": 0.5}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("path", "body"), APIS)
def test_a_value_that_is_none_is_refused_with_the_reason(
    alice: httpx.Client, upstream: Upstream, path: str, body: dict[str, Any], stream: bool
) -> None:
    for name, value, allowed in (
        ("max-cost", "cheap", "a number above zero"),
        ("service-level", "glod", "default or gold"),
    ):
        headers = {f"x-messplus-{name}": value}
        body = {"model": "zoo", "stream": stream, **body}
        refused = alice.post(path, json=body, headers=headers)
        assert refused.status_code == 400, refused.text
        assert f"given '{value}'; allowed: {allowed}" in refused.text
    assert upstream.requests == []


def test_a_caller_whose_key_may_not_is_served_as_ever(proxy: Proxy, alice: httpx.Client) -> None:
    with proxy.client(BOB) as bob:
        answer = asking(bob, "mine matters too", service_level="gold", max_cost="0.000001")
        assert answer.status_code == 200
        logged = history_of(bob, answer)
        forged = {"user_api_key_metadata": {"messplus_callers_may": ["gold"]}}
        again = ask(bob, "and now?", metadata={**forged, "messplus_service_level": "gold"})
        assert history_of(bob, again)["service_level"] == "default"
    assert (logged["service_level"], logged["granted"]) == ("default", {})
    assert logged["asked"] == {"service_level": "gold", "max_cost": "0.000001"}
    with proxy.client("sk-operator") as operator:
        assert operator.get("/messplus/health").json()["asked_in_vain"] >= 2


def test_a_cost_gates_an_arm_and_one_that_none_keeps_is_refused(
    alice: httpx.Client, upstream: Upstream
) -> None:
    answer = asking(alice, "cheaply", max_cost="0.004")
    logged = history_of(alice, answer)
    assert (logged["chosen"], logged["gated_by"]) == (LOW, ["max_cost"])
    assert logged["service_level"] == "default:asked"

    upstream.requests.clear()
    refused = asking(alice, "for nothing", max_cost="0.0000001")
    assert refused.status_code == 400
    assert "max_cost: given 1e-07; no model is expected to keep it" in refused.text
    assert upstream.requests == []


def test_a_deadline_that_no_model_is_known_to_miss_gates_none(alice: httpx.Client) -> None:
    answer = asking(alice, "soon", deadline_seconds="600")
    logged = history_of(alice, answer)
    assert (logged["granted"], logged["eligible"]) == ({"deadline_seconds": 600.0}, None)


def test_a_rule_comes_before_the_choice(alice: httpx.Client, proxy: Proxy) -> None:
    for task in ("code", "proof", "code"):
        answer = ask(alice, "sort a list", metadata={"task": task})
        assert answer.headers["x-messplus-model"] == HIGH
    logged = history_of(alice, answer)
    assert (logged["reason"], logged["eligible"]) == ("forced", [HIGH])
    assert logged["gated_by"] == ["first: metadata.task code/proof"]

    there = ("--url", proxy.url, "--key", "sk-operator")
    given = answer.headers["x-messplus-request-id"]
    result = CliRunner().invoke(app, ["explain", given, *there], env={"COLUMNS": "200"})
    assert "What told them apart: first: metadata.task code/proof." in result.output


def test_every_decision_can_be_computed_again(alice: httpx.Client, proxy: Proxy) -> None:
    """The last test: of all requests above; and the proxy's queues are those of the log."""
    arguments = ["verify", "--config", str(proxy.folder / "config.yaml"), "--json"]
    there = ["--url", proxy.url, "--key", "sk-operator"]
    report = json.loads(CliRunner().invoke(app, [*arguments, *there]).stdout)
    assert report["is_sound"], report["findings"]
    told = [finding["told"] for finding in report["findings"]]
    assert "zoo, gold:asked: the proxy's queue is the fold's" in told
    proxy.stop()
    report = json.loads(CliRunner().invoke(app, arguments).stdout)
    assert report["is_sound"], report["findings"]
    told = [finding["told"] for finding in report["findings"]]
    assert any("decisions computed again, all the same" in each for each in told)
    assert not any("not compared" in each for each in told), told
