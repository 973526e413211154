"""The next request brings feedback on the answer before it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from openai import OpenAI

from tests.support.keys import CUSTOM_AUTH
from tests.support.patience import until
from tests.support.proxy import Proxy, ask, zoo_config
from tests.support.upstream import Upstream

pytestmark = pytest.mark.end_to_end

FEEDBACK = "SELECT * FROM labels WHERE kind = 'feedback' AND request_id = ?"


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, folder: Path) -> Iterator[Proxy]:
    config = zoo_config(upstream.url, folder)
    (folder / "keys.py").write_text(CUSTOM_AUTH)
    config["general_settings"]["custom_auth"] = "keys.authenticate"
    running = Proxy(config, folder).start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def alice(proxy: Proxy) -> Iterator[httpx.Client]:
    with proxy.client("sk-alice") as client:
        yield client


def request_of(answer: httpx.Response) -> str:
    assert answer.status_code == 200, answer.text
    return answer.headers["x-messplus-request-id"]


def test_feedback_comes_with_the_next_request(proxy: Proxy) -> None:
    with OpenAI(base_url=f"{proxy.url}/v1", api_key="sk-alice") as client:
        first = client.chat.completions.create(
            model="zoo", messages=[{"role": "user", "content": "Tell me a joke"}]
        )
        verdict = {"id": first.id, "satisfied": False, "comment": "not funny"}
        client.chat.completions.create(
            model="zoo",
            messages=[{"role": "user", "content": "Tell me a better joke"}],
            extra_body={"metadata": {"messplus_feedback": verdict}},
        )

    (call,) = proxy.wait_for_rows("SELECT * FROM calls WHERE response_id = ?", 1, first.id)
    (label,) = proxy.wait_for_rows(FEEDBACK, 1, call["request_id"])
    assert (label["value"], label["weight"], label["comment"]) == (0.0, 1.0, "not funny")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/responses", {"input": "hello"}),
        ("/v1/messages", {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 9}),
        ("/v1/completions", {"prompt": "hello"}),
    ],
)
def test_on_every_surface(
    proxy: Proxy, alice: httpx.Client, path: str, body: dict[str, Any]
) -> None:
    first = request_of(ask(alice))
    brought = {"messplus_feedback": {"id": first, "score": 0.3}}

    request_of(alice.post(path, json={"model": "zoo", **body, "metadata": brought}))

    (label,) = proxy.wait_for_rows(FEEDBACK, 1, first)
    assert label["value"] == 0.3


@pytest.mark.parametrize(
    "brought",
    [
        "satisfied",
        {"id": "nobody", "satisfied": True},
        {"id": "{own}", "satisfied": "very", "comment": "a secret"},
        {"id": "{own}", "satisfied": True, "stars": 5},
        {"id": "{others}", "satisfied": True},
    ],
    ids=["no object", "an unknown request", "no verdict", "an unknown key", "another key's"],
)
@pytest.mark.counts("feedback_refused")
def test_feedback_that_cannot_be_taken_is_counted_and_the_request_served(
    proxy: Proxy, alice: httpx.Client, brought: Any
) -> None:
    with proxy.client("sk-bob") as bob:
        ids = {"{own}": request_of(ask(alice)), "{others}": request_of(ask(bob))}
    if isinstance(brought, dict):
        brought = {**brought, "id": ids.get(brought["id"], brought["id"])}
    labels = len(proxy.rows("SELECT * FROM labels"))
    refused = counters(proxy).get("feedback_refused", 0)

    request_of(ask(alice, metadata={"messplus_feedback": brought}))

    until(lambda: counters(proxy).get("feedback_refused", 0) == refused + 1)
    assert len(proxy.rows("SELECT * FROM labels")) == labels
    assert "a secret" not in proxy.log


def counters(proxy: Proxy) -> dict[str, int]:
    with proxy.client("sk-operator") as administrator:
        found: dict[str, int] = administrator.get("/messplus/health").json()
    return found
