"""What the router chooses is what LiteLLM serves, by what the upstream saw."""

from collections import Counter
from pathlib import Path

import pytest

from tests.support.proxy import Proxy, ask, deployment, zoo_config
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end

REQUESTS = 90
PRICES = {"small": 1e-6, "middle": 6e-6, "large": 3e-5}
CHEAPEST_SERVES = 75
"""Of the requests, all answers being good; the others are explored."""
CALLS = "SELECT * FROM requests JOIN calls USING (request_id) WHERE role = 'served'"


def test_the_cheapest_serves_where_every_answer_is_good(upstream: Upstream, tmp_path: Path) -> None:
    config = zoo_config(upstream.url, tmp_path, zoo={"alpha": 0.6})
    config["model_list"] = [
        deployment("zoo", name, upstream.url, price) for name, price in PRICES.items()
    ]
    proxy = Proxy(config, tmp_path).start()
    try:
        with proxy.client() as client:
            for number in range(REQUESTS):
                answer = ask(client, f"question {number}")
                assert answer.status_code == 200, answer.text
                verdict = {"id": answer.json()["id"], "satisfied": True}
                assert client.post("/messplus/feedback", json=verdict).status_code == 200
            rows = proxy.wait_for_rows(CALLS, REQUESTS)
            status = client.get("/messplus/status").json()
            health = client.get("/messplus/health").json()
    finally:
        proxy.stop()

    assert [row["chosen"] for row in rows] == [row["candidate"] for row in rows]
    assert Counter(row["candidate"] for row in rows)["openai/small"] >= CHEAPEST_SERVES
    assert health == {}
    assert "served_not_chosen" not in {alert["kind"] for alert in status["alerts"]}


@pytest.mark.parametrize("retries", [0, 2])
def test_after_a_failure_comes_the_next(upstream: Upstream, tmp_path: Path, retries: int) -> None:
    """Without retries LiteLLM goes on by the user's own order, with them by itself."""
    config = zoo_config(upstream.url, tmp_path, zoo={"alpha": 0.6, "largest": "openai/huge"})
    config["router_settings"] = {"num_retries": retries, "disable_cooldowns": True}
    if not retries:
        for order, each in enumerate(config["model_list"]):
            each["litellm_params"]["order"] = order + 1
    upstream.script = lambda model, body: Reply(status=200 if model == "huge" else 500)
    proxy = Proxy(config, tmp_path).start()
    try:
        with proxy.client() as client:
            for number in range(12):
                answer = ask(client, f"question {number}")
                assert answer.status_code == 200, answer.text
            rows = proxy.wait_for_rows(CALLS, 12)
            health = client.get("/messplus/health").json()
    finally:
        upstream.script = lambda model, body: Reply()
        proxy.stop()

    assert {row["candidate"] for row in rows} == {"openai/huge"}
    assert health == {}
