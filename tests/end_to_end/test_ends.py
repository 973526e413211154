"""How a request ends, by what its client got: whatever LiteLLM logs of it, or hides."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.patience import until
from tests.support.proxy import Proxy, ask, deployment, zoo_config
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end

CHECKS = {"complete": True, "callables": {"right": "own_checks:right"}}
ZOO = {"alpha": 0.7, "labels": {"checks": CHECKS}}
OWN = "def right(call):\n    return call.answer.text == '42' if call.answer else None\n"
RIGHT = {"check:right": 1.0}
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
COST = 15e-6
"""Of the usage, at the cheapest model."""
EVENTS = "text/event-stream"
NOTHING = {
    "page": ("text/html", "<html>sign in</html>"),
    "done": (EVENTS, "data: [DONE]\n\n"),
    "keep-alive": (EVENTS, ": ping\n\n: ping\n\n"),
    "closed": (EVENTS, ""),
    "no choices": (EVENTS, f"data: {json.dumps({'id': 'c', 'choices': []})}\n\ndata: [DONE]\n\n"),
}
FILTERED = {"index": 0, "message": {"role": "assistant"}, "finish_reason": "content_filter"}


def whole(*choices: dict[str, Any]) -> tuple[str, str]:
    answer = {"id": "chatcmpl-of-the-first", "object": "chat.completion", "created": 1}
    return "application/json", json.dumps(
        {**answer, "model": "tiny", "choices": choices, "usage": USAGE}
    )


def script(model: str, body: dict[str, Any]) -> Reply:
    words = json.dumps(body.get("messages") or body.get("input"))
    if model == "spare":
        return Reply("42")
    if "filtered" in words:
        return Reply(raw=whole(FILTERED))
    if "unchosen" in words:
        return Reply(raw=whole())
    if "slow" in words:
        return Reply("forty-two", piece_seconds=0.3)
    found = next((raw for name, raw in NOTHING.items() if name in words), None)
    return Reply("42", raw=found)


@pytest.fixture(scope="module", params=[False, True], ids=["shown", "redacted"])
def proxy(
    upstream: Upstream, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Proxy]:
    upstream.script = script
    folder: Path = tmp_path_factory.mktemp("proxy")
    (folder / "own_checks.py").write_text(OWN)
    config = zoo_config(upstream.url, folder, zoo=ZOO)
    config["model_list"].append(deployment("spare", "spare", upstream.url, 1e-3))
    config["router_settings"] = {
        "num_retries": 0,
        "disable_cooldowns": True,
        "content_policy_fallbacks": [] if request.param else [{"zoo": ["spare"]}],
    }
    config["litellm_settings"]["turn_off_message_logging"] = request.param
    running = Proxy(config, folder).start()
    yield running
    running.stop()


def end(proxy: Proxy, answer: httpx.Response) -> dict[str, Any]:
    """The only served call of the request with that answer."""
    given = answer.headers["x-messplus-request-id"]
    query = "SELECT * FROM calls WHERE request_id = ? AND role = 'served'"
    (found,) = proxy.wait_for_rows(query, 1, given)
    return found


def labels(proxy: Proxy, answer: httpx.Response) -> dict[str, float]:
    given = answer.headers["x-messplus-request-id"]
    found = proxy.rows("SELECT source, value FROM labels WHERE request_id = ?", given)
    return {row["source"]: row["value"] for row in found}


CHAT = {"messages": [{"role": "user", "content": "six by seven"}]}
APIS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/v1/chat/completions", CHAT),
    "text": ("/v1/completions", {"prompt": "six by seven"}),
    "responses": ("/v1/responses", {"input": "six by seven"}),
    "messages": ("/v1/messages", {**CHAT, "max_tokens": 50}),
}
HIDDEN = {"x-litellm-enable-message-redaction": "true"}


def post(client: httpx.Client, api: str, headers: Any = None, **more: Any) -> httpx.Response:
    path, body = APIS[api]
    found = client.post(path, json={"model": "zoo", **body, **more}, headers=headers)
    return found.raise_for_status()


@pytest.mark.counts("answers_hidden")
@pytest.mark.parametrize("headers", [None, HIDDEN], ids=["", "hidden by the client"])
@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("api", APIS)
def test_right_answers_are_labelled_right(
    client: httpx.Client, proxy: Proxy, api: str, is_stream: bool, headers: Any
) -> None:
    answer = post(client, api, headers, stream=is_stream)
    found = end(proxy, answer)
    assert (found["status"], found["candidate"]) == ("success", "openai/tiny")
    assert found["cost"] == pytest.approx(COST)
    is_read = not is_stream or api != "messages" or not (headers or proxy_hides(proxy))
    if is_read:
        until(lambda: bool(labels(proxy, answer)))
    assert labels(proxy, answer) == (RIGHT if is_read else {})


def proxy_hides(proxy: Proxy) -> bool:
    return bool(proxy.config["litellm_settings"]["turn_off_message_logging"])


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    "more",
    [{"no-log": True}, {"metadata": {"tags": "prod"}}, {"metadata": {"tags": {"env": "prod"}}}],
    ids=["no-log", "tags", "tags as an object"],
)
def test_what_litellm_does_not_log_has_its_price(
    client: httpx.Client, proxy: Proxy, more: dict[str, Any], is_stream: bool
) -> None:
    found = end(proxy, post(client, "chat", stream=is_stream, **more))
    assert (found["status"], found["candidate"]) == ("success", "openai/tiny")
    assert found["prompt_tokens"] > 0
    assert found["cost"] > 0.0


@pytest.mark.parametrize("proxy", [False], ids=["shown"], indirect=True)
@pytest.mark.parametrize("kind", ["filtered", "unchosen"])
def test_a_discarded_answer_is_not_logged(client: httpx.Client, proxy: Proxy, kind: str) -> None:
    answer = ask(client, kind).raise_for_status()
    found = end(proxy, answer)
    assert (found["status"], found["candidate"], found["model"]) == (
        "success",
        None,
        "openai/spare",
    )
    assert found["response_id"] == answer.json()["id"] != "chatcmpl-of-the-first"
    assert found["cost"] == pytest.approx(15e-3)
    until(lambda: labels(proxy, answer) == RIGHT)


@pytest.mark.parametrize("nothing", NOTHING)
def test_a_stream_of_nothing_is_a_failure(client: httpx.Client, proxy: Proxy, nothing: str) -> None:
    answer = ask(client, nothing, stream=True)
    found = end(proxy, answer)
    assert (found["status"], found["failure"]) == ("failure", "upstream")
    assert labels(proxy, answer) == {}
    first = next((line for line in answer.text.splitlines() if "chatcmpl" in line), None)
    ids = [answer.headers[f"x-{name}"] for name in ("messplus-request-id", "litellm-call-id")]
    if first is not None:
        ids.append(json.loads(first.removeprefix("data: "))["id"])
    for given in ids:
        body = {"id": given, "satisfied": False}
        assert client.post("/messplus/feedback", json=body).status_code == 200


@pytest.mark.parametrize("api", ["responses", "messages"])
def test_streams_of_nothing_are_failures(client: httpx.Client, proxy: Proxy, api: str) -> None:
    part = "input" if api == "responses" else "messages"
    said = "keep-alive" if api == "responses" else [{"role": "user", "content": "keep-alive"}]
    path, body = APIS[api]
    answer = client.post(path, json={"model": "zoo", **body, "stream": True, part: said})
    found = end(proxy, answer)
    assert (found["status"], found["failure"]) == ("failure", "upstream")


@pytest.mark.parametrize("proxy", [True], ids=["redacted"], indirect=True)
def test_no_choices_are_no_answer(client: httpx.Client, proxy: Proxy) -> None:
    found = end(proxy, ask(client, "unchosen"))
    assert (found["status"], found["failure"]) == ("failure", "upstream")
    assert "empty" in found["error"].lower()


def test_a_client_that_leaves_a_stream_is_gone(client: httpx.Client, proxy: Proxy) -> None:
    body = {"model": "zoo", "messages": [{"role": "user", "content": "slow"}], "stream": True}
    with client.stream("POST", "/v1/chat/completions", json=body) as answer:
        next(answer.iter_raw())
    found = end(proxy, answer)
    assert (found["status"], found["failure"]) == ("failure", "client_gone")
