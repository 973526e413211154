"""What an answer looks like is logged with its call, and whatever fails in reading it, the call is
logged all the same."""

import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from litellm_messplus.core.answer import (
    ANSWER_NUMBERS,
    ANSWER_VERSION,
    OWN_SCORE,
    Answer,
    read_answer,
)
from litellm_messplus.serving.plugin import MessplusPlugin
from litellm_messplus.serving.surfaces.surface import Surface
from litellm_messplus.store.rows import features_from_bytes, features_to_bytes
from litellm_messplus.store.tables import calls
from tests.support.in_process import DEPLOYMENTS, call, log_event, running, written

MESSAGES = [{"role": "user", "content": "What is 2 + 2?"}]
ANSWER = {
    "id": "chatcmpl-1",
    "choices": [{"message": {"content": "It is 4."}, "finish_reason": "stop"}],
}


async def served(plugin: MessplusPlugin, **payload: Any) -> None:
    arguments = call("call-1")
    await plugin.async_filter_deployments("zoo", DEPLOYMENTS, MESSAGES, arguments)
    event = log_event(arguments, "small", id="chatcmpl-1", **payload)
    await plugin.async_log_success_event(event, ANSWER, None, None)


async def logged(folder: Path) -> Sequence[Any]:
    return [(each.answer_surface, each.answer_version) for each in await written(folder, calls)]


async def test_its_numbers_are_logged_and_not_its_text(tmp_path: Path) -> None:
    async with running(tmp_path) as plugin:
        await served(plugin)

    numbers = features_to_bytes(read_answer(Answer("It is 4.")))
    assert await logged(tmp_path) == [(numbers, ANSWER_VERSION)]
    (row,) = await written(tmp_path, calls)
    assert row.answer is None


async def test_ones_own_score_is_one_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = SimpleNamespace(score=lambda prompt, answer, response: -0.75)
    monkeypatch.setitem(sys.modules, "own_scoring", own)
    async with running(tmp_path, {"answer_score": "own_scoring:score"}) as plugin:
        await served(plugin)

    ((numbers, _),) = await logged(tmp_path)
    assert features_from_bytes(numbers)[ANSWER_NUMBERS.index(OWN_SCORE)] == -0.75


async def test_what_litellms_cache_repeats_is_not_read(tmp_path: Path) -> None:
    async with running(tmp_path) as plugin:
        await served(plugin, cache_hit=True)

    assert await logged(tmp_path) == [(None, None)]


async def test_an_unreadable_one_is_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Surface, response: object) -> None:
        raise ValueError("garbled")

    monkeypatch.setattr(Surface, "looks", fail)
    async with running(tmp_path) as plugin:
        await served(plugin)
        counted = plugin.counters.as_dict()

    assert counted == {"answers_unread": 1}
    assert await logged(tmp_path) == [(None, None)]
