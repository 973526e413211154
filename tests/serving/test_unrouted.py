"""Answers to calls that LiteLLM makes over a zoo's name, of a type that is not routed."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from litellm_messplus.brain.metrics import exposition
from litellm_messplus.brain.workers import counters_of
from litellm_messplus.serving import litellm_seam
from litellm_messplus.status.alerts import unrouted_of
from litellm_messplus.status.build import Rows, build_status
from litellm_messplus.status.render import summary
from tests.support.journey import Journey, journey


async def ended(proxy: Journey, group: str | None, call_type: str) -> None:
    payload = {"model_group": group, "call_type": call_type, "model_id": "small"}
    event: dict[str, Any] = {"litellm_call_id": "1", "standard_logging_object": payload}
    await proxy.plugin.async_log_success_event(event, {}, None, None)


async def test_call_types_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    aliases = {"front": "zoo", "hidden": {"model": "zoo", "hidden": True}}
    router = SimpleNamespace(model_group_alias=aliases)
    monkeypatch.setattr(litellm_seam, "running_router", lambda: router)
    async with journey(tmp_path) as proxy:
        for group in ("zoo", "front", "hidden", "another", None):
            await ended(proxy, group, "aembedding")
        await ended(proxy, "zoo", "amoderation")
        await ended(proxy, "zoo", "acompletion")
        counts = proxy.counters

    found = unrouted_of(counts)
    assert found == [
        {"zoo": "zoo", "call_type": "aembedding", "answers": 3},
        {"zoo": "zoo", "call_type": "amoderation", "answers": 1},
    ]
    assert counters_of(counts) == {}
    (first, _) = summary(build_status(Rows(), 1) | {"unrouted": found})
    assert first == "zoo: 3 requests by aembedding were not routed"
    assert 'messplus_unrouted{zoo="zoo"} 4.0' in exposition({}, counts)
