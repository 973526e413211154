"""A model group that served before serves as at LiteLLM: its own deployments, untouched."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from litellm_messplus.proxy.ends import failed_end
from litellm_messplus.proxy.plugin import MessplusPlugin
from litellm_messplus.store.tables import requests
from litellm_messplus.switching.modes import Mode, ZooMode
from tests.support.in_process import DEPLOYMENTS, call, running, written

SMALL, LARGE = DEPLOYMENTS


def member(given: dict[str, Any], group: str, name: str, **params: Any) -> dict[str, Any]:
    return {
        "model_name": group,
        "litellm_params": {**given["litellm_params"], **params},
        "model_info": {**given["model_info"], "id": name},
    }


BEFORE = [member(LARGE, "llama", "one"), member(LARGE, "llama", "two")]
NEW = member(SMALL, "llama-small", "small")


async def routed(
    plugin: MessplusPlugin, deployments: Sequence[Any], **arguments: Any
) -> Sequence[Any]:
    """What goes back to LiteLLM of a watched request of a zoo whose group served before."""
    plugin.parts.modes.now["zoo"] = ZooMode(Mode.WATCH, before="group:llama")
    asked = [{"role": "user", "content": "hello"}]
    found = await plugin.async_filter_deployments(
        "zoo", list(deployments), asked, call("1", **arguments)
    )
    await plugin.parts.router.close()
    await plugin.parts.journal.flush()
    return found


async def test_the_groups_own_deployments_go_back_as_they_came(tmp_path: Path) -> None:
    async with running(tmp_path) as plugin:
        found = await routed(plugin, [*BEFORE, NEW])
        assert len(found) == len(BEFORE)
        assert all(one is own for one, own in zip(found, BEFORE, strict=True))
        assert plugin.counters.as_dict() == {}
    (row,) = await written(tmp_path, requests)
    assert (row.arm, row.chosen) == ("before", "openai/large")  # the only one that it can be
    assert row.would_choose is not None


async def test_of_a_group_of_several_models_nobody_knows_which_will_serve(tmp_path: Path) -> None:
    mixed = [member(LARGE, "llama", "one"), member(SMALL, "llama", "two")]
    async with running(tmp_path) as plugin:
        assert len(await routed(plugin, [*mixed, NEW])) == 2
        opened = next(iter(plugin.parts.router._open._by_id.values()))
        assert failed_end(opened, ValueError("no")).author.candidate is None
    (row,) = await written(tmp_path, requests)
    assert row.chosen == "group:llama"


async def test_where_none_of_the_group_is_healthy_the_others_serve(tmp_path: Path) -> None:
    async with running(tmp_path) as plugin:
        assert await routed(plugin, [NEW]) == [NEW]


@pytest.mark.parametrize(("order", "expected"), [(1, ["one", "two"]), (2, ["one", "two", "small"])])
async def test_an_order_that_the_group_lacks_is_looked_for_among_the_others(
    tmp_path: Path, order: int, expected: list[str]
) -> None:
    ordered = [member(LARGE, "llama", name, order=1) for name in ("one", "two")]
    small = member(SMALL, "llama-small", "small", order=2)
    async with running(tmp_path) as plugin:
        found = await routed(plugin, [*ordered, small], _target_order=order)
    assert [each["model_info"]["id"] for each in found] == expected
