"""A zoo of which LiteLLM has no deployment left: the refusal is a request too."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.patience import until
from tests.support.proxy import PAPER, Proxy, ask, zoo_config
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end

COOLDOWN_SECONDS = 12
"""Within which a busy machine, too, answers three requests."""


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, folder: Path) -> Iterator[Proxy]:
    """Explores every request, so that nothing may be explored on a refused one."""
    config = zoo_config(upstream.url, folder, zoo={**PAPER, "c": 1e9})
    config["router_settings"] = {"num_retries": 0, "cooldown_time": COOLDOWN_SECONDS}
    running = Proxy(config, folder).start()
    yield running
    running.stop()


@pytest.mark.counts("exploration_failures")
def test_a_refused_request_is_logged_and_takes_feedback(
    client: httpx.Client, proxy: Proxy, upstream: Upstream
) -> None:
    upstream.script = lambda model, body: Reply(status=429)
    refused: httpx.Response | None = None

    def is_refused() -> bool:
        nonlocal refused
        upstream.requests.clear()
        refused = ask(client)
        return refused.status_code == 429 and upstream.requests == []

    until(is_refused)
    assert refused is not None
    assert "No deployments available" in refused.text
    assert "x-messplus-model" not in refused.headers
    request_id = refused.headers["x-messplus-request-id"]
    (call,) = proxy.wait_for_rows("SELECT * FROM calls WHERE request_id = ?", 1, request_id)
    assert (call["role"], call["status"]) == ("served", "failure")
    assert (call["candidate"], call["cost"]) == (None, None)
    assert "No deployments available" in call["error"]
    (request,) = proxy.rows("SELECT * FROM requests WHERE request_id = ?", request_id)
    assert request["reason"] == "none_healthy"
    assert (request["is_exploration"], request["exploration_calls"]) == (0, 0)
    assert request["expected_satisfaction"] is None
    (outcome,) = proxy.rows("SELECT * FROM outcomes WHERE request_id = ?", request_id)
    assert (outcome["status"], outcome["served"]) == ("failure", None)

    verdict = {"id": refused.headers["x-litellm-call-id"], "satisfied": False}
    accepted = client.post("/messplus/feedback", json=verdict)
    assert accepted.status_code == 200, accepted.text
    assert accepted.json()["request_id"] == request_id

    upstream.script = lambda model, body: Reply()
    until(lambda: ask(client).status_code == 200)
    answer = ask(client)
    story = client.get(f"/messplus/requests/{answer.headers['x-messplus-request-id']}").json()
    assert story["queue"] == pytest.approx(0.0)
    counted = client.get("/messplus/health").json()
    assert not {"routing_failures", "outcome_failures", "header_failures"} & set(counted)
