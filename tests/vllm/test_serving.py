"""Chat, streaming, feedback, exploration and cost, over three real vLLM servers."""

import json

import httpx
import pytest

from examples.tiny_zoo.tasks import generate, is_satisfactory
from tests.support.patience import until
from tests.support.proxy import Config, Proxy, history_of
from tests.support.vllm_counters import Work
from tests.vllm.client import Client, question
from tests.vllm.conftest import Servers
from tests.vllm.operator_config import STAND_INS, ZOO

pytestmark = pytest.mark.vllm

CALLS = "SELECT * FROM calls WHERE request_id = ?"
MODELS = {f"hosted_vllm/{name}" for name in STAND_INS.values()}
REQUESTS = 30


def prices(config: Config) -> dict[str, tuple[float, float]]:
    """Of a prompt and of a completion token, by candidate, as the configuration states them."""
    return {
        deployment["litellm_params"]["model"]: (
            deployment["model_info"]["input_cost_per_token"],
            deployment["model_info"]["output_cost_per_token"],
        )
        for deployment in config["model_list"]
    }


def test_the_first_request_is_served_and_logged(client: httpx.Client, proxy: Proxy) -> None:
    """Nothing is known of any model yet, and the draw is of the request's id: any may serve."""
    answer = client.post("/v1/chat/completions", json=question("sort: 52 97 11"))

    chosen = history_of(client, answer)["chosen"]
    assert chosen == answer.headers["x-messplus-model"]
    (call,) = proxy.wait_for_rows(CALLS, 1, answer.headers["x-messplus-request-id"])
    assert (call["candidate"], call["role"]) == (chosen, "served")
    assert call["status"] == "success"


def test_chat_is_answered_by_the_model_that_the_header_names(client: httpx.Client) -> None:
    answer = client.post("/v1/chat/completions", json=question("count b: abcab"))

    assert answer.status_code == 200, answer.text
    assert answer.headers["x-messplus-model"] in MODELS
    assert answer.json()["model"] == ZOO
    assert answer.json()["usage"]["prompt_tokens"] == len("count b: abcab=")


def test_a_stream_comes_in_pieces_and_costs_what_the_server_counted(
    client: httpx.Client, proxy: Proxy, config: Config
) -> None:
    pieces: list[str] = []
    usage: dict[str, int] = {}
    body = question("reverse: kqzm", stream=True, stream_options={"include_usage": True})
    with client.stream("POST", "/v1/chat/completions", json=body) as stream:
        assert stream.status_code == 200
        request_id = stream.headers["x-messplus-request-id"]
        for line in stream.iter_lines():
            if line.startswith("data: {"):
                chunk = json.loads(line.removeprefix("data: "))
                usage = chunk.get("usage") or usage
                deltas = [choice["delta"].get("content") for choice in chunk["choices"]]
                pieces += [delta for delta in deltas if delta]

    assert len(pieces) > 1
    (call,) = proxy.wait_for_rows(CALLS, 1, request_id)
    counted = (usage["prompt_tokens"], usage["completion_tokens"])
    assert (call["prompt_tokens"], call["completion_tokens"]) == counted
    assert counted[0] == len("reverse: kqzm=")
    prompt, completion = prices(config)[call["candidate"]]
    assert call["cost"] == pytest.approx(prompt * counted[0] + completion * counted[1])


def test_feedback_counts_towards_the_promise(client: httpx.Client) -> None:
    before = answered(client)
    (task,) = generate(1, seed=1)
    answer = client.post("/v1/chat/completions", json=question(task.prompt))
    satisfied = is_satisfactory(task, answer.json()["choices"][0]["message"]["content"])

    verdict = {"id": answer.json()["id"], "satisfied": satisfied}
    accepted = client.post("/messplus/feedback", json=verdict)

    assert accepted.status_code == 200
    request_id = answer.headers["x-messplus-request-id"]
    (label,) = client.get(f"/messplus/requests/{request_id}").json()["labels"]
    assert label["value"] == float(satisfied)
    until(lambda: answered(client) == before + 1)  # a reading serves again for as long as it took


def answered(client: httpx.Client) -> int:
    """Requests with a verdict, by the status."""
    (level,) = client.get("/messplus/status").json()["levels"]
    return int(level["overall"]["satisfaction"]["judged"])


def test_every_call_costs_its_price_times_the_tokens_that_vllm_itself_counts(
    client: httpx.Client, proxy: Proxy, config: Config, servers: Servers
) -> None:
    before = {name: server.work_done() for name, server in servers.items()}
    (newest,) = proxy.rows("SELECT MAX(position) AS position FROM calls")
    asking = Client(client)

    answers = [asking.ask() for _ in range(REQUESTS)]

    assert {answer.status_code for answer in answers} == {200}
    since = "SELECT * FROM calls WHERE position > ?"
    calls = proxy.wait_for_rows(since, REQUESTS, newest["position"])
    assert {call["cost_source"] for call in calls} == {"measured"}
    for name, server in servers.items():
        own = [call for call in calls if call["candidate"] == f"hosted_vllm/{name}"]
        logged = Work(
            requests=len(own),
            prompt_tokens=sum(call["prompt_tokens"] for call in own),
            completion_tokens=sum(call["completion_tokens"] for call in own),
        )
        assert logged == server.work_done() - before[name]
        prompt, completion = prices(config)[f"hosted_vllm/{name}"]
        assert sum(call["cost"] for call in own) == pytest.approx(
            prompt * logged.prompt_tokens + completion * logged.completion_tokens
        )
