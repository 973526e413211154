"""An API that LiteLLM may have one day is routed, explored, metered and judged by one record."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import litellm.proxy
import pytest

from litellm_messplus.labels.source import Answer, Finish
from litellm_messplus.serving.surfaces.surface import SURFACES, Surface
from litellm_messplus.store import tables
from tests.support.in_process import written
from tests.support.journey import journey

ANSWER = {"id": "poem-1", "verses": ["Roses are", "red"], "ends": "early", "spent": [7, 5]}


def words(response: object) -> str:
    assert isinstance(response, Mapping)
    return " ".join(response["verses"])


def said(response: object) -> Answer:
    return Answer(words(response), finish=Finish.CONTENT_FILTER)  # which `complete` finds lacking


def spent(response: object) -> object:
    assert isinstance(response, Mapping)
    return dict(zip(("prompt_tokens", "completion_tokens"), response["spent"], strict=True))


POEMS = Surface(
    "apoem",
    "awrite_poem",
    prompt="theme",
    system="style",
    limits=("most_words",),
    metadata="litellm_metadata",
    text=words,
    read_answer=said,
    used=spent,
)


async def test_one_record_serves_a_new_api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    async def awrite_poem(**arguments: Any) -> dict[str, Any]:
        asked.append(arguments)
        return ANSWER

    monkeypatch.setitem(SURFACES, POEMS.call_type, POEMS)
    router = SimpleNamespace(awrite_poem=awrite_poem)
    server = SimpleNamespace(llm_router=router)
    monkeypatch.setattr(litellm.proxy, "proxy_server", server, raising=False)
    zoo = {"policy": "paper", "labels": {"checks": {"complete": True}}}  # it explores at t = 1
    poem: dict[str, Any] = {"theme": "flowers", "style": "short", "most_words": 3}
    async with journey(tmp_path, zoo, store_text=True) as proxy:
        asked_for = await proxy.ask(None, call_type=POEMS.call_type, **poem)
        await asyncio.sleep(0)
        await proxy.answers(asked_for, answer=ANSWER, metadata={"usage_object": spent(ANSWER)})
        counted = proxy.counters

    (request,) = await written(tmp_path, tables.requests)
    calls = await written(tmp_path, tables.calls)
    labels = await written(tmp_path, tables.labels)
    assert counted == {}
    assert asked_for.ids == ["large"]
    assert (request.call_type, request.prompt) == ("apoem", "short\nflowers")
    assert [each["theme"] for each in asked] == ["flowers"]
    assert {each.role for each in calls} == {"served", "exploration"}
    assert {(each.answer, each.prompt_tokens, each.completion_tokens) for each in calls} == {
        ("Roses are red", 7, 5)
    }
    assert [(each.source, each.value) for each in labels] == [("check:complete", 0.0)] * 2
