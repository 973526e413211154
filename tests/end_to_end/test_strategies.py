"""LiteLLM's strategies of picking a deployment, with and without limits of rate: none undoes a
decision, and none refuses a request that another model has room for."""

from pathlib import Path
from typing import Any

import pytest

from litellm_messplus.serving.configuration import STRATEGIES
from tests.support.proxy import Proxy, ask, deployment, zoo_config
from tests.support.upstream import Upstream

pytestmark = pytest.mark.end_to_end

REQUESTS = 8
LIMITS = {"tiny": 3, "middle": 3, "huge": 100}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_serves_what_was_decided(
    upstream: Upstream, tmp_path: Path, strategy: str
) -> None:
    zoo = {"alpha": 0.7}
    config = zoo_config(upstream.url, tmp_path, zoo=zoo)
    config["messplus"]["zoos"]["limited"] = zoo
    config["model_list"] += [
        deployment("limited", name, upstream.url, 1e-6 * rpm, rpm=rpm)
        for name, rpm in LIMITS.items()
    ]
    config["router_settings"] = {"routing_strategy": strategy, "num_retries": 0}
    proxy = Proxy(config, tmp_path).start()
    try:
        with proxy.client() as client:
            for number in range(2 * REQUESTS):
                answer = ask(client, model=("zoo", "limited")[number % 2])
                assert answer.status_code == 200, answer.text
            served = "FROM requests JOIN calls USING (request_id) WHERE role = 'served'"
            rows = proxy.wait_for_rows(f"SELECT * {served}", 2 * REQUESTS)
    finally:
        proxy.stop()

    assert [row["chosen"] for row in rows] == [row["candidate"] for row in rows]
    assert not any(row["served_not_chosen"] for row in rows)
    if strategy == "usage-based-routing-v2":
        assert len({row["candidate"] for row in rows if row["zoo"] == "limited"}) > 1


@pytest.mark.parametrize(
    "settings",
    [
        {"enable_pre_call_checks": True},
        {"optional_pre_call_checks": ["enforce_model_rate_limits"]},
    ],
    ids=lambda each: next(iter(each)),
)
def test_what_another_model_has_room_for_is_answered(
    upstream: Upstream, tmp_path: Path, settings: dict[str, Any]
) -> None:
    config = zoo_config(upstream.url, tmp_path, zoo={"alpha": 0.7})
    for each in config["model_list"]:
        each["litellm_params"]["rpm"] = 6
    config["router_settings"] = {**settings, "num_retries": 0}
    proxy = Proxy(config, tmp_path).start()
    try:
        with proxy.client() as client:
            answers = [ask(client) for _ in range(16)]
            assert [each.status_code for each in answers] == [200] * 16
            refused = [each for _ in range(8) if (each := ask(client)).status_code == 429]
            assert refused or "enable_pre_call_checks" in settings  # 1.110 counts no calls there
            row = "SELECT failure, candidate FROM calls WHERE request_id = ?"
            for each in refused[:1]:
                (call,) = proxy.wait_for_rows(row, 1, each.headers["x-messplus-request-id"])
                assert call == {"failure": "no_deployment", "candidate": None}
    finally:
        proxy.stop()
