"""What LiteLLM's own logs are told of a decision, under the plugin's own hook."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import litellm
import pytest
from litellm.proxy.hooks.cache_control_check import _PROXY_CacheControlCheck

from litellm_messplus.proxy.plugin import MessplusPlugin
from litellm_messplus.proxy.visibility.attempts import REMEMBERED, Visibility
from tests.support.in_process import DEPLOYMENTS, call, deployment, running

MESSAGES = [{"role": "user", "content": "What is 2 + 2?"}]


@pytest.fixture(autouse=True)
def reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a callback that the operator named, as a reader of LiteLLM's logs."""
    monkeypatch.setattr(litellm, "callbacks", [*litellm.callbacks, "datadog"])


@pytest.fixture
async def plugin(tmp_path: Path) -> AsyncIterator[MessplusPlugin]:
    async with running(tmp_path) as started:
        yield started


async def attempt(
    plugin: MessplusPlugin, arguments: dict[str, Any], healthy: list[Any] = DEPLOYMENTS
) -> Any:
    """One attempt of a request; what LiteLLM is then told of it."""
    await plugin.async_filter_deployments("zoo", healthy, MESSAGES, arguments)
    return arguments["metadata"].get("routing_decision")


async def test_the_card_says_what_was_decided_and_why(plugin: MessplusPlugin) -> None:
    arguments = call("call-1")

    card = await attempt(plugin, arguments)

    assert card["router_model_name"] == "zoo"
    assert card["router_type"] == "messplus"
    assert card["tier"] == "default"
    assert card["cause"] == "behind alpha"
    assert card["routed_model"] == "openai/small"
    assert set(card["classifier_probabilities"]) == {"openai/small", "openai/large"}
    assert card["score"] == card["classifier_probabilities"]["openai/small"]
    assert card["signals"][0] == "alpha 0.8"
    assert any(signal.startswith("queue ") for signal in card["signals"])
    assert card["savings_baseline_model"] == "openai/large"
    assert card["savings_baseline_deployment_id"] == "large"


async def test_where_nobody_reads_litellms_logs_there_is_no_card(
    plugin: MessplusPlugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = [each for each in litellm.callbacks if each != "datadog"]
    monkeypatch.setattr(litellm, "callbacks", [*hooks, _PROXY_CacheControlCheck(), plugin])

    assert await attempt(plugin, call("call-1")) is None


async def test_litellms_database_is_a_reader(
    plugin: MessplusPlugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(litellm, "callbacks", [])
    proxy = SimpleNamespace(prisma_client=object())
    monkeypatch.setitem(sys.modules, "litellm.proxy.proxy_server", proxy)

    assert (await attempt(plugin, call("call-1")))["router_type"] == "messplus"


async def test_nothing_in_the_card_quotes_the_prompt(plugin: MessplusPlugin) -> None:
    card = await attempt(plugin, call("call-1"))

    assert "2 + 2" not in str(card)


async def test_a_retry_is_told_as_one_and_names_who_is_tried_now(plugin: MessplusPlugin) -> None:
    arguments = call("call-1")
    first = await attempt(plugin, arguments)
    del arguments["metadata"]["routing_decision"]  # as LiteLLM does before each attempt
    arguments["metadata"]["model_info"] = {"id": "small"}

    second = await attempt(plugin, arguments)

    assert first["routed_model"] == "openai/small"
    assert second["routed_model"] == "openai/large"
    assert second["cause"].startswith("attempt 2 after a failure; at first: ")
    assert second["score"] == second["classifier_probabilities"]["openai/large"]


async def test_what_a_router_of_litellms_own_told_stays(plugin: MessplusPlugin) -> None:
    told = {"router_model_name": "smart", "router_type": "complexity"}
    arguments = call("call-1")
    arguments["metadata"]["routing_decision"] = told

    assert await attempt(plugin, arguments) is told


async def test_an_unhealthy_largest_is_still_what_savings_compare_with(
    plugin: MessplusPlugin,
) -> None:
    await attempt(plugin, call("call-1"))

    card = await attempt(plugin, call("call-2"), DEPLOYMENTS[:1])  # the small one

    assert card["routed_model"] == "openai/small"
    assert card["savings_baseline_deployment_id"] == "large"


async def test_a_group_without_a_zoo_has_no_card(plugin: MessplusPlugin) -> None:
    arguments = call("call-1")

    await plugin.async_filter_deployments("other", DEPLOYMENTS, MESSAGES, arguments)

    assert "routing_decision" not in arguments["metadata"]


async def test_a_card_that_cannot_be_made_stops_no_request(plugin: MessplusPlugin) -> None:
    unreadable = [{**each, "litellm_params": {}} for each in DEPLOYMENTS]
    arguments = call("call-1")
    await plugin.async_filter_deployments("zoo", DEPLOYMENTS, MESSAGES, arguments)

    plugin.parts.visibility.attempt(unreadable, arguments, None)

    assert plugin.counters.as_dict() == {"visibility_failures": 1}


async def test_so_many_baselines_are_remembered_and_no_more(plugin: MessplusPlugin) -> None:
    visibility: Visibility = plugin.parts.visibility
    for number in range(REMEMBERED + 1):
        name = f"openai/model-{number}"
        found = visibility._baseline("zoo", name, [deployment(f"model-{number}", 1.0)])
        assert found is not None

    assert len(visibility) == 1
