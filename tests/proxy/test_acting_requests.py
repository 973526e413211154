"""A request whose tools act is served once: nothing of it is repeated unseen."""

from pathlib import Path
from typing import Any

import pytest

from litellm_messplus.store.tables import requests
from tests.support.in_process import DEPLOYMENTS, call, running, written

SEND_MAIL = [{"type": "mcp", "server_label": "mail", "server_url": "https://mail"}]
LOOK = [{"type": "function", "function": {"name": "look"}}]
PAPER = {"alpha": 0.7, "policy": "paper", "V": 100.0, "c": 1e6}
"""Explores every request."""
PARITY = {"buy_labels": {}, "label_rate": 1.0}
WATCHED = {"mode": "watch", "before": "openai/large", "watch": {"sample": 1.0}}
QUESTION = [{"role": "user", "content": "send it"}]


class Explored:
    """In the explorer's place: whom it was to call."""

    def __init__(self) -> None:
        self.called: list[str] = []

    def start(self, opened: Any, candidates: Any, request: Any) -> None:
        self.called += candidates

    async def close(self) -> None:
        return None


@pytest.mark.parametrize(
    "zoo", [PAPER, PARITY, WATCHED, {**WATCHED, **PARITY}], ids=["paper", "parity", "watch", "both"]
)
@pytest.mark.parametrize(("tools", "is_repeated"), [(SEND_MAIL, False), (LOOK, True)])
async def test_unseen_calls_are_made_only_of_what_does_not_act(
    tmp_path: Path, zoo: dict[str, Any], tools: list[Any], is_repeated: bool
) -> None:
    explored = Explored()
    async with running(tmp_path, zoo) as plugin:
        plugin.parts._explorer.start = explored.start  # type: ignore[method-assign]
        arguments = call("1", tools=tools)
        found = await plugin.async_filter_deployments("zoo", DEPLOYMENTS, QUESTION, arguments)
        assert len(found) == len(DEPLOYMENTS)
        await plugin.parts.router.close()
        assert plugin.counters.as_dict() == {}
    (row,) = await written(tmp_path, requests)
    assert bool(explored.called) is is_repeated
    assert (row.exploration_calls > 0, row.is_exploration) == (is_repeated, is_repeated)
    if not is_repeated:
        assert row.label_probability is None  # an answer alone cannot be compared
