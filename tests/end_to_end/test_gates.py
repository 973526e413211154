"""Images and tools on a real proxy: who is asked, what the log and the explanation say."""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from tests.support.proxy import Proxy, deployment, zoo_config
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end

DATA = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)
CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
IMAGE: dict[str, dict[str, Any]] = {
    CHAT: {"type": "image_url", "image_url": {"url": DATA}},
    MESSAGES: {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": DATA.partition(",")[2]},
    },
    RESPONSES: {"type": "input_image", "image_url": DATA},
}
SCHEMA = {"type": "object", "properties": {}}
TOOL: dict[str, dict[str, Any]] = {
    CHAT: {"type": "function", "function": {"name": "f", "parameters": SCHEMA}},
    MESSAGES: {"name": "f", "input_schema": SCHEMA},
    RESPONSES: {"type": "function", "name": "f", "parameters": SCHEMA},
}


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, folder: Path) -> Iterator[Proxy]:
    config = zoo_config(upstream.url, folder, zoo={"alpha": 0.6})
    config["model_list"] = [
        deployment("zoo", "words", upstream.url, 1e-6),
        deployment("zoo", "tools", upstream.url, 2e-6),
        deployment("zoo", "eyes", upstream.url, 1e-5),
        deployment("zoo", "all", upstream.url, 1e-4),
        deployment("unheard-of", "cheap", upstream.url, 1e-6),
        deployment("unheard-of", "good", upstream.url, 1e-5),
    ]
    takes = {"words": (False, False), "tools": (False, True), "eyes": (True, False)}
    for each in config["model_list"][:4]:
        model = each["litellm_params"]["model"].removeprefix("openai/")
        sees, calls = takes.get(model, (True, True))
        each["model_info"] |= {"supports_vision": sees, "supports_function_calling": calls}
    config["messplus"]["zoos"]["unheard-of"] = {"alpha": 0.6}
    config["router_settings"] = {"num_retries": 0}
    running = Proxy(config, folder).start()
    yield running
    running.stop()


@pytest.fixture
def client(proxy: Proxy, upstream: Upstream) -> Iterator[httpx.Client]:
    upstream.script = lambda model, body: Reply()
    upstream.requests.clear()
    with proxy.client() as connected:
        yield connected


def body_of(path: str, *, image: bool, tool: bool) -> dict[str, Any]:
    text = {"type": "input_text" if path == RESPONSES else "text", "text": "What is this?"}
    turns = [{"role": "user", "content": [text, *([IMAGE[path]] if image else [])]}]
    body: dict[str, Any] = {"model": "zoo", "input" if path == RESPONSES else "messages": turns}
    if path == MESSAGES:
        body["max_tokens"] = 9
    return body | ({"tools": [TOOL[path]]} if tool else {})


def test_no_image_and_no_tool_reaches_a_model_that_does_not_take_it(
    client: httpx.Client, proxy: Proxy, upstream: Upstream
) -> None:
    """On three surfaces; what is called beside the served model counts as well."""
    random = Random(3)
    for number in range(60):
        path = (CHAT, MESSAGES, RESPONSES)[number % 3]
        body = body_of(path, image=random.random() < 0.5, tool=random.random() < 0.5)
        answer = client.post(path, json=body)
        assert answer.status_code == 200, answer.text
    rows = proxy.wait_for_rows("SELECT * FROM requests WHERE zoo = 'zoo'", 60)

    seen = {True: set[str](), False: set[str]()}
    for body in upstream.requests:
        words = json.dumps(body)
        if "image_url" in words or "input_image" in words:
            assert body["model"] in {"eyes", "all"}
        if body.get("tools"):
            assert body["model"] in {"tools", "all"}
        seen["image" in words].add(body["model"])
    assert "words" in seen[False]
    assert seen[True]
    eligible = {row["eligible"] if row["eligible"] is None else len(_list(row)) for row in rows}
    assert eligible == {None, 1, 2}
    assert {row["propensity"] for row in rows if len(_list(row)) == 1} == {1.0}
    assert set(client.get("/messplus/health").json()) <= {"explorations_left_out"}


def _list(row: dict[str, Any]) -> list[str]:
    """SQLite keeps JSON as text."""
    found = row["eligible"]
    return list(json.loads(found) if isinstance(found, str) else found or [])
