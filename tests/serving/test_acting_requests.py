"""A request whose tools act is served once: nothing of it is repeated unseen."""

from pathlib import Path
from typing import Any

import pytest

from litellm_messplus.store.tables import requests
from tests.support.in_process import written
from tests.support.journey import journey

SEND_MAIL = [{"type": "mcp", "server_label": "mail", "server_url": "https://mail"}]
LOOK = [{"type": "function", "function": {"name": "look"}}]
PAPER = {"alpha": 0.7, "policy": "paper", "V": 100.0, "c": 1e6}
"""Explores every request."""
PARITY = {"buy_labels": {}, "label_rate": 1.0}
WATCHED = {"mode": "watch", "before": "openai/large", "watch": {"sample": 1.0}}


@pytest.mark.parametrize(
    "zoo", [PAPER, PARITY, WATCHED, {**WATCHED, **PARITY}], ids=["paper", "parity", "watch", "both"]
)
@pytest.mark.parametrize(("tools", "is_repeated"), [(SEND_MAIL, False), (LOOK, True)])
async def test_unseen_calls_are_made_only_of_what_does_not_act(
    tmp_path: Path, zoo: dict[str, Any], tools: list[Any], is_repeated: bool
) -> None:
    async with journey(tmp_path, zoo) as proxy:
        explored = proxy.explores_nothing()
        assert len((await proxy.ask("send it", tools=tools)).deployments) == 1
        await proxy.decided()
        assert proxy.counters == {}
    (row,) = await written(tmp_path, requests)
    assert any(explored.called) is is_repeated
    assert (row.exploration_calls > 0, row.is_exploration) == (is_repeated, is_repeated)
    if not is_repeated:
        assert row.label_probability is None  # an answer alone cannot be compared
