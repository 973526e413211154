"""A watched zoo on a real proxy: upstream sees what it saw without the plugin, and it is live."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.proxy import Config, Proxy, ask, history_of, without_plugin, zoo_config
from tests.support.upstream import Upstream

pytestmark = pytest.mark.end_to_end

REQUESTS = 40
WATCH: Config = {"alpha": 0.7, "mode": "watch", "before": "litellm", "watch": {"sample": 0.0}}


def sent(proxy: Proxy, upstream: Upstream) -> tuple[set[str], list[dict[str, object]]]:
    """Send so many requests. Return the models that LiteLLM called, in shares that it draws anew
    each time, and what it sent them."""
    upstream.requests.clear()
    with proxy.client() as client:
        for number in range(REQUESTS):
            extra = {"temperature": 0.5, "user": f"u{number % 3}"}
            answer = ask(client, f"question {number}", **extra)
            assert answer.status_code == 200
    bodies = copy.deepcopy(upstream.requests)
    return {str(body.pop("model")) for body in bodies}, bodies


@contextmanager
def running(config: Config, folder: Path) -> Iterator[Proxy]:
    folder.mkdir()
    proxy = Proxy(config, folder).start()
    try:
        yield proxy
    finally:
        proxy.stop()


def test_watching_changes_no_body_and_no_deployment(tmp_path: Path, upstream: Upstream) -> None:
    config = zoo_config(upstream.url, tmp_path / "watched", zoo=WATCH)
    with running(without_plugin(config), tmp_path / "without") as proxy:
        without = sent(proxy, upstream)
    with running(config, tmp_path / "watched") as proxy:
        watched = sent(proxy, upstream)
        query = "SELECT * FROM requests WHERE would_choose IS NOT NULL"
        rows = proxy.wait_for_rows(query, REQUESTS)
        assert {row["arm"] for row in rows} == {"before"}
    assert watched == without
    assert len(watched[0]) == 3


GROUP_BEFORE: Config = {**WATCH, "before": "group:zoo"}
"""The zoo is then a routing group, and an alias sends the requests of the old group there."""


def regrouped(config: Config) -> Config:
    """Make a new model of the zoo a member of its own, beside the group as it was."""
    made = copy.deepcopy(config)
    new = made["model_list"][0]
    made["model_list"] = [*made["model_list"], {**new, "model_name": "new"}]
    made["model_list"][-1]["litellm_params"] = {**new["litellm_params"], "model": "openai/newcomer"}
    group = {"group_name": "both", "models": ["zoo", "new"], "routing_strategy": "simple-shuffle"}
    made["router_settings"] = {"routing_groups": [group], "model_group_alias": {"zoo": "both"}}
    made["messplus"]["zoos"] = {"both": made["messplus"]["zoos"]["zoo"]}
    return made


def test_a_member_group_is_served_as_without_the_plugin_and_then_the_zoo_takes_over(
    tmp_path: Path, upstream: Upstream
) -> None:
    config = zoo_config(upstream.url, tmp_path / "watched", zoo=GROUP_BEFORE)
    with running(without_plugin(config), tmp_path / "without") as proxy:
        without = sent(proxy, upstream)
    with running(regrouped(config), tmp_path / "watched") as proxy:
        watched = sent(proxy, upstream)
        proxy.wait_for_rows("SELECT * FROM requests WHERE chosen = 'group:zoo'", REQUESTS)
        with proxy.client() as client:
            body = {"revision": 1, "mode": "on"}
            assert client.patch("/messplus/zoos/both", json=body).status_code == 200
            assert history_of(client, ask(client, "and now"))["arm"] == "routed"
    assert watched == without
    assert len(watched[0]) == 3


def test_a_mode_is_changed_live_and_holds_after_a_restart(
    tmp_path: Path, upstream: Upstream
) -> None:
    config = zoo_config(upstream.url, tmp_path, zoo={**WATCH, "before": "openai/huge"})
    proxy = Proxy(config, tmp_path).start()
    try:
        with proxy.client() as client:
            ask(client, "one")
            assert upstream.models_called() == ["huge"]
            found = client.get("/messplus/zoos/zoo").json()
            body = {"revision": found["revision"], "mode": "on", "reason": "go"}
            assert client.patch("/messplus/zoos/zoo", json=body).status_code == 200
            assert client.patch("/messplus/zoos/zoo", json=body).status_code == 409
            assert client.patch("/messplus/zoos/other", json=body).status_code == 404
            assert history_of(client, ask(client, "two"))["arm"] == "routed"
        proxy.stop()
        proxy.start()
        with proxy.client() as client:
            found = client.get("/messplus/zoos/zoo").json()
            assert (found["mode"], found["revision"]) == ("on", 2)
            assert [each["by"] for each in found["history"]][-1] == "file"
    finally:
        proxy.stop()


@pytest.fixture(autouse=True)
def _three_models(upstream: Upstream) -> None:
    """Every model answers the same."""
    upstream.requests.clear()
