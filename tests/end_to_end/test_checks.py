"""Checks through a real proxy: every surface's answers become labels."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.keys import CUSTOM_AUTH
from tests.support.patience import until
from tests.support.proxy import PAPER, Proxy, ask, zoo_config
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end

FUNCTIONS = """
def told(call):
    return call.request.metadata.get("told")
"""
LABELS = "SELECT * FROM labels WHERE request_id = ? ORDER BY source, call_id"
ANSWER = "The answer is 42."
MESSAGES = [{"role": "user", "content": "What is 6 * 7?"}]
SURFACES: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/v1/chat/completions", {"messages": MESSAGES}),
    "text": ("/v1/completions", {"prompt": "What is 6 * 7?"}),
    "Anthropic": ("/v1/messages", {"messages": MESSAGES, "max_tokens": 9}),
    "responses": ("/v1/responses", {"input": "What is 6 * 7?"}),
}


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, folder: Path) -> Iterator[Proxy]:
    """The first request explores, and no other."""
    checks = {"reference": True, "callables": {"told": "own_checks:told"}}
    zoo = {**PAPER, "c": 0.0, "labels": {"checks": checks}}
    config = zoo_config(upstream.url, folder, zoo=zoo)
    config["general_settings"]["custom_auth"] = "keys.authenticate"
    config["router_settings"] = {"num_retries": 0, "disable_cooldowns": True}
    (folder / "keys.py").write_text(CUSTOM_AUTH)
    (folder / "own_checks.py").write_text(FUNCTIONS)
    running = Proxy(config, folder).start()
    with running.client("sk-alice") as first:
        ask(first)
    yield running
    running.stop()


@pytest.fixture
def alice(proxy: Proxy, upstream: Upstream) -> Iterator[httpx.Client]:
    upstream.script = lambda model, body: Reply(text=ANSWER)
    upstream.requests.clear()
    with proxy.client("sk-alice") as client:
        yield client


def labels_of(proxy: Proxy, answer: httpx.Response, count: int = 1) -> list[dict[str, Any]]:
    return proxy.wait_for_rows(LABELS, count, answer.headers["x-messplus-request-id"])


def queue(client: httpx.Client) -> float:
    """The virtual queue that the next request of the client is decided at."""
    request_id = ask(client).headers["x-messplus-request-id"]
    return float(client.get(f"/messplus/requests/{request_id}").json()["queue"])


@pytest.mark.parametrize("place", ["metadata", "litellm_metadata"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("surface", SURFACES)
def test_a_reference_is_compared_on_every_surface(
    alice: httpx.Client, proxy: Proxy, upstream: Upstream, surface: str, stream: bool, place: str
) -> None:
    path, body = SURFACES[surface]
    for given, value in ((ANSWER, 1.0), ("It is 42", 0.0)):
        metadata = {"messplus_reference": given}
        answer = alice.post(path, json={"model": "zoo", "stream": stream, place: metadata, **body})

        assert answer.status_code == 200, answer.text
        (label,) = labels_of(proxy, answer)
        assert (label["kind"], label["source"]) == ("check", "check:reference")
        assert label["value"] == value
    if place == "litellm_metadata":
        assert "messplus_reference" not in json.dumps(upstream.requests)


def test_a_label_of_an_own_check_moves_the_queue(alice: httpx.Client, proxy: Proxy) -> None:
    for _ in range(2):  # a debt, so that the queue cannot hide a change at zero
        ruined = {"id": ask(alice).headers["x-messplus-request-id"], "satisfied": False}
        assert alice.post("/messplus/feedback", json=ruined).status_code == 200
    before = queue(alice)
    wrong = ask(alice, metadata={"told": 0})
    labels_of(proxy, wrong)
    until(lambda: queue(alice) == pytest.approx(before + 0.7))

    verdict = {"id": wrong.headers["x-messplus-request-id"], "satisfied": True}
    assert alice.post("/messplus/feedback", json=verdict).status_code == 200
    assert queue(alice) == pytest.approx(before + 0.7 - 1.0)  # the user knows better
