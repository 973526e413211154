"""A model group that served before serves as at LiteLLM: its own deployments, untouched."""

from pathlib import Path
from typing import Any

import pytest

from litellm_messplus.serving.deployments.index import DeploymentIndex
from litellm_messplus.serving.served import failed_end
from litellm_messplus.store.tables import requests
from litellm_messplus.switching.modes import Mode, ZooMode
from tests.support.in_process import DEPLOYMENTS, brain_of, written
from tests.support.journey import BROKEN, Journey, RoutedRequest, journey

SMALL, LARGE = DEPLOYMENTS


def member(given: dict[str, Any], group: str, name: str, **params: Any) -> dict[str, Any]:
    return {
        "model_name": group,
        "litellm_params": {**given["litellm_params"], **params},
        "model_info": {**given["model_info"], "id": name},
    }


BEFORE = [member(LARGE, "llama", "one"), member(LARGE, "llama", "two")]
NEW = member(SMALL, "llama-small", "small")


async def watched(proxy: Journey, *deployments: dict[str, Any], **given: Any) -> RoutedRequest:
    """A watched request of a zoo whose group served before."""
    brain_of(proxy.plugin.parts).modes.now["zoo"] = ZooMode(Mode.WATCH, before="group:llama")
    asked = await proxy.ask(deployments=deployments, **given)
    await proxy.settled()
    return asked


async def test_the_groups_own_deployments_go_back_as_they_came(tmp_path: Path) -> None:
    async with journey(tmp_path) as proxy:
        found = (await watched(proxy, *BEFORE, NEW)).deployments
        assert len(found) == len(BEFORE)
        assert all(one is own for one, own in zip(found, BEFORE, strict=True))
        assert proxy.counters == {}
    (row,) = await written(tmp_path, requests)
    assert (row.arm, row.chosen) == ("before", "openai/large")  # the only one that it can be
    assert row.would_choose is not None


async def test_of_a_group_of_several_models_nobody_knows_which_will_serve(tmp_path: Path) -> None:
    mixed = [member(LARGE, "llama", "one"), member(SMALL, "llama", "two")]
    async with journey(tmp_path) as proxy:
        assert (await watched(proxy, *mixed, NEW)).ids == ["one", "two"]
        opened = next(iter(proxy.plugin.parts.router.open_requests._by_id.values()))
        assert failed_end(opened, BROKEN, DeploymentIndex(), {}).author.candidate is None
    (row,) = await written(tmp_path, requests)
    assert row.chosen == "group:llama"


async def test_where_none_of_the_group_is_healthy_the_others_serve(tmp_path: Path) -> None:
    async with journey(tmp_path) as proxy:
        assert (await watched(proxy, NEW)).deployments == [NEW]


@pytest.mark.parametrize(("order", "expected"), [(1, ["one", "two"]), (2, ["one", "two", "small"])])
async def test_an_order_that_the_group_lacks_is_looked_for_among_the_others(
    tmp_path: Path, order: int, expected: list[str]
) -> None:
    ordered = [member(LARGE, "llama", name, order=1) for name in ("one", "two")]
    small = member(SMALL, "llama-small", "small", order=2)
    async with journey(tmp_path) as proxy:
        found = await watched(proxy, *ordered, small, _target_order=order)
    assert found.ids == expected
