"""Conversations under the plugin's own hooks: held in open loops, with sealed state, while warm."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from litellm_messplus.brain import line_log
from litellm_messplus.serving import reading
from litellm_messplus.serving.plugin import MessplusPlugin
from litellm_messplus.store.tables import outcomes, requests
from tests.support import in_process
from tests.support.in_process import brain_of, call, log_event, running, written
from tests.support.patience import until_it_holds


def replica(model: str, identity: str, price: float) -> dict[str, Any]:
    made = in_process.deployment(model, price)
    cached = {"id": identity, "cache_read_input_token_cost": price / 10}
    return {**made, "model_info": {**made["model_info"], **cached}}


ZOO = [
    replica("small", "small-1", 1e-7),
    replica("small", "small-2", 1e-7),
    replica("large", "large-1", 1e-5),
]
SMALL, LARGE = "openai/small", "openai/large"
ASK = {"role": "user", "content": "Find the bug in this program, and mend it."}
USED = 2_000
"""Tokens of every prompt: enough to be cached."""


@dataclass
class Agent:
    """A client of the plugin: asks, is served by who is ranked first, and goes on from there."""

    plugin: MessplusPlugin
    prompt: list[dict[str, Any]] = field(default_factory=lambda: [ASK])
    asked: int = 0

    async def ask(
        self,
        healthy: Sequence[dict[str, Any]] = ZOO,
        served_by: str | None = None,
        hooks: Collection[str] = ("headers", "log"),
        **given: Any,
    ) -> str:
        """One request; the id of the deployment that served it, whatever was tried before fails. Of
        its answer the plugin is told by those hooks."""
        self.asked += 1
        arguments = call(f"call-{id(self)}-{self.asked}", **given)
        metadata = "litellm_metadata" if "litellm_metadata" in given else "metadata"
        left: list[str] = []
        while not left or served_by not in (None, *left):
            if left:
                arguments[metadata]["model_info"] = {"id": left[0]}
            found = await self.plugin.async_filter_deployments(
                "zoo", list(healthy), None, {**arguments, "messages": self.prompt}
            )
            left = [str(each["model_info"]["id"]) for each in found]
        served = served_by or left[0]
        message = {"role": "assistant", **self.answer()}
        answer = {"id": f"answer-{self.asked}", **self.whole(message)}
        if "headers" in hooks:
            info = {"model_info": {"id": served}}
            await self.plugin.async_post_call_response_headers_hook(
                arguments, None, answer, None, info
            )
        if "log" in hooks:
            event = log_event(
                arguments, served, id=answer["id"], endTime=time.time(), **self.used()
            )
            await self.plugin.async_log_success_event(event, answer, None, None)
        self.prompt = [*self.prompt, message]
        return served

    def answer(self) -> dict[str, Any]:
        function = {"name": "bash", "arguments": self.arguments()}
        calls = [{"id": f"c-{id(self)}-{self.asked}", "type": "function", "function": function}]
        return {"content": f"I look, {self.asked}.", "tool_calls": calls}

    def whole(self, message: dict[str, Any]) -> dict[str, Any]:
        return {"choices": [{"message": message}]}

    def used(self) -> dict[str, Any]:
        return {"prompt_tokens": USED, "completion_tokens": 10}

    def arguments(self) -> str:
        return f"step {self.asked}"

    def result(self, said: str = "done") -> None:
        """Add what the tool gave."""
        identity = f"c-{id(self)}-{self.asked}"
        self.prompt.append({"role": "tool", "tool_call_id": identity, "content": said})

    def person(self, said: str) -> None:
        self.prompt.append({"role": "user", "content": said})


@asynccontextmanager
async def holding(folder: Path, hold: str | None = None) -> AsyncIterator[MessplusPlugin]:
    settings = {} if hold is None else {"conversations": {"hold": hold}}
    async with running(folder, settings, deployments=ZOO) as plugin:
        yield plugin


async def logged(folder: Path) -> list[tuple[Any, ...]]:
    rows = await written(folder, requests)
    return [(row.turn, row.reason == "held", row.hold) for row in rows]


def _large_is_better(plugin: MessplusPlugin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        brain_of(plugin.parts).engines["zoo"].state.policy,
        "predict",
        lambda prompt, names: [0.9 if name == LARGE else 0.5 for name in names],
    )


async def test_an_open_loop_stays_on_its_very_deployment(tmp_path: Path) -> None:
    """Whatever the policy would do: the large one served the first request by chance."""
    async with holding(tmp_path) as plugin:
        for served in ("small-2", "large-1", "small-1"):
            agent = Agent(plugin)
            agent.person(f"Of {served}.")
            assert await agent.ask(served_by=served) == served
            for _ in range(4):
                agent.result()
                assert await agent.ask() == served
        assert plugin.counters.as_dict() == {}
    turns = (await logged(tmp_path))[:5]
    assert turns == [(1, False, None), *((turn, True, "tool_loop") for turn in range(2, 6))]
    rows = (await written(tmp_path, requests))[:5]
    assert {row.conversation for row in rows} == {row.line for row in rows} == {rows[0].request_id}
    assert [row.propensity for row in rows[1:]] == [1.0] * 4
    assert not any(row.is_exploration or row.exploration_calls for row in rows[1:])
    first = rows[1]
    assert first.expected_satisfaction == first.estimated_satisfaction[first.chosen]


@pytest.mark.parametrize("hook", ["headers", "log"])
async def test_either_hook_of_an_answer_tells_who_holds_the_loop(tmp_path: Path, hook: str) -> None:
    """The next step may come before the log event; of a stream that failed over, the headers named
    another, and of a client that has gone there are none."""
    async with holding(tmp_path) as plugin:
        agent = Agent(plugin)
        for _ in range(3):
            assert await agent.ask(served_by="large-1", hooks=[hook]) == "large-1"
            agent.result()
        assert plugin.counters.as_dict() == {}
    assert [row[1:] for row in await logged(tmp_path)] == [
        (False, None),
        *[(True, "tool_loop")] * 2,
    ]


async def test_a_lost_answer_is_no_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every model has failed, and the client asks the same again: the loop stays where it was."""
    async with holding(tmp_path) as plugin:
        _large_is_better(plugin, monkeypatch)
        agent = Agent(plugin)
        await agent.ask(served_by="small-1")
        agent.result()
        prompt = list(agent.prompt)
        await agent.ask(hooks=[])
        agent.prompt = prompt
        assert await agent.ask() == "small-1"
    assert [row[2] for row in await logged(tmp_path)] == [None, "tool_loop", "tool_loop"]


@pytest.mark.parametrize(("hold", "row"), [(None, (True, "warm")), ("tool_loop", (False, None))])
async def test_a_person_goes_on_while_the_cache_is_warm_unless_loops_alone_are_held(
    tmp_path: Path, hold: str | None, row: tuple[bool, str | None]
) -> None:
    async with holding(tmp_path, hold) as plugin:
        agent = Agent(plugin)
        await agent.ask(served_by="large-1")
        agent.person("Thank you. Now write the documentation of all that.")
        served = await agent.ask()
    assert served == "large-1" or hold == "tool_loop"
    assert (await logged(tmp_path))[1] == (2, *row)


async def test_a_sibling_serves_where_the_deployment_is_gone(tmp_path: Path) -> None:
    async with holding(tmp_path) as plugin:
        agent = Agent(plugin)
        await agent.ask(served_by="small-2")
        agent.result()
        healthy = [each for each in ZOO if each["model_info"]["id"] != "small-2"]
        assert await agent.ask(healthy) == "small-1"
        assert "holds_broken" not in plugin.counters.as_dict()
    assert (await logged(tmp_path))[1] == (2, True, "tool_loop")


async def test_a_lost_model_breaks_the_hold_and_is_counted(tmp_path: Path) -> None:
    async with holding(tmp_path) as plugin:
        agent = Agent(plugin)
        await agent.ask(served_by="large-1")
        agent.result()
        assert (await agent.ask(ZOO[:2])).startswith("small")
        assert plugin.counters.as_dict() == {"holds_broken": 1}
        agent.result()
        assert (await agent.ask()).startswith("small"), "it is there now"
    assert [row[1:] for row in await logged(tmp_path)] == [
        (False, None),
        (False, "lost"),
        (True, "tool_loop"),
    ]


async def test_sealed_thinking_is_shown_to_nobody_else(tmp_path: Path) -> None:
    """Each would answer with an error: when its deployment fails, another replica is tried."""
    block = {"type": "thinking", "thinking": "hm", "signature": "sealed"}
    async with holding(tmp_path, "tool_loop") as plugin:
        agent = Agent(plugin)
        await agent.ask(served_by="small-2")
        agent.prompt[-1]["thinking_blocks"] = [block]
        agent.person("Thank you. Now write the documentation of all that.")
        asked = call("next", messages=agent.prompt)
        for served in ("small-2", "small-1"):
            left = await plugin.async_filter_deployments("zoo", list(ZOO), None, asked)
            assert left[0]["model_info"]["id"] == served
            asked["metadata"]["model_info"] = {"id": served}
    assert (await logged(tmp_path))[1] == (2, True, "state")


async def test_an_open_loop_that_nobody_knows_is_decided_and_counted(tmp_path: Path) -> None:
    async with holding(tmp_path) as plugin:
        agent = Agent(plugin)
        agent.prompt += [{"role": "assistant", **agent.answer()}]
        agent.result()
        await agent.ask()
        assert plugin.counters.as_dict() == {"holds_unknown": 1}
    assert await logged(tmp_path) == [(1, False, "unknown")]


async def test_trouble_breaks_a_hold_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same tool call over and over: a better model takes over, and keeps the loop."""
    async with holding(tmp_path) as plugin:
        _large_is_better(plugin, monkeypatch)
        agent = Agent(plugin)
        monkeypatch.setattr(agent, "arguments", lambda: "again")
        served = [await agent.ask(served_by="small-1")]
        for _ in range(6):
            agent.result()
            served.append(await agent.ask())
    assert served == [*["small-1"] * 3, *["large-1"] * 4]
    rows = await written(tmp_path, requests)
    assert [row.hold for row in rows[1:]] == [
        *["tool_loop"] * 2,
        "trouble",
        *["tool_loop"] * 3,
    ]
    assert [row.reason for row in rows if row.hold == "trouble"] == ["trouble"]


async def test_held_before_the_log_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine reads it seconds after the proxy has begun to serve."""
    monkeypatch.setattr(line_log, "head", lambda database: asyncio.Event().wait())
    async with holding(tmp_path) as plugin:
        agent = Agent(plugin)
        served = await agent.ask(served_by="large-1")
        agent.result()
        assert await agent.ask() == served
    assert await logged(tmp_path) == [(1, False, None), (2, True, "tool_loop")]


async def test_a_restart_goes_on_with_its_conversations(tmp_path: Path) -> None:
    async with holding(tmp_path) as first:
        agent = Agent(first)
        await agent.ask(served_by="large-1")
        agent.result()
    async with holding(tmp_path) as second:
        brain = brain_of(second.parts)
        await until_it_holds(lambda: bool(brain.holds.lines and brain.holds.lines._lines))
        agent.plugin = second
        assert await agent.ask() == "large-1"
        assert second.counters.as_dict() == {}
    rows = await written(tmp_path, requests)
    assert [row.turn for row in rows] == [1, 2]
    assert len({row.line for row in rows}) == 1


async def test_a_failing_identity_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with holding(tmp_path) as plugin:
        lines = brain_of(plugin.parts).holds.lines
        assert lines is not None
        monkeypatch.setattr(lines, "find", lambda *given: 1 / 0)
        assert await Agent(plugin).ask()
        assert plugin.counters.as_dict() == {"identity_failures": 1}
    assert await logged(tmp_path) == [(None, False, None)]


async def test_unreadable_signs_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with holding(tmp_path) as plugin:
        monkeypatch.setattr(reading, "read_signs", lambda request: 1 / 0)
        assert await Agent(plugin).ask()
        assert plugin.counters.as_dict() == {"identity_failures": 1}


TOOL = {"name": "shot", "description": "Look at the page", "input_schema": {"x": "word " * 4_000}}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}}
OUTPUT = {"type": "text", "text": "A line of output. " * 60}


@dataclass
class ClaudeCode(Agent):
    """What it sends, and is charged: 1,600 tokens an image, one for 4 characters of all else.
    ``truth`` are the tokens of each prompt, and those of them that were cached."""

    cached: int = 0
    truth: list[tuple[int, int]] = field(default_factory=list)

    async def step(self, **given: Any) -> str:
        header = f"x-anthropic-billing-header: cc_version=2.1.{self.asked}; cch={self.asked:05x};"
        marked = {"text": "You are Claude Code.", "cache_control": {"type": "ephemeral"}}
        self.system = [{"type": "text", "text": header}, {"type": "text", **marked}]
        given |= {"system": self.system, "tools": [TOOL], "call_type": "anthropic_messages"}
        return await self.ask(litellm_metadata={"user_api_key_hash": "key"}, **given)

    def answer(self) -> dict[str, Any]:
        used = {"type": "tool_use", "id": f"toolu_{self.asked}", "name": "shot", "input": {}}
        return {"content": [{"type": "text", "text": f"I look, {self.asked}."}, used]}

    def whole(self, message: dict[str, Any]) -> dict[str, Any]:
        return {"type": "message", **message}

    def used(self) -> dict[str, Any]:
        words, image = json.dumps([self.system, self.prompt, TOOL]), json.dumps(IMAGE)
        tokens = len(words.replace(image, "")) // 4 + 1_600 * words.count(image)
        self.truth.append((tokens, self.cached))
        usage = {"prompt_tokens": tokens, "completion_tokens": 10}
        usage |= {"prompt_tokens_details": {"cached_tokens": self.cached}}  # type: ignore[dict-item]
        self.cached = tokens
        return {"metadata": {"usage_object": usage}}

    def seen(self, *content: dict[str, Any]) -> None:
        block = {"type": "tool_result", "tool_use_id": f"toolu_{self.asked}", "content": content}
        self.prompt.append({"role": "user", "content": [block]})


async def test_a_claude_code_session_is_one_line_at_its_true_cost(tmp_path: Path) -> None:
    """Under another header at each turn, with screenshots, and old results that it clears."""
    async with holding(tmp_path) as plugin:
        agent = ClaudeCode(plugin)
        await agent.step(served_by="small-1")
        for turn in range(2, 11):
            agent.seen(OUTPUT, *([IMAGE] if turn % 2 else []))
            if turn == 8:  # what comes after it is sent anew
                agent.prompt[2]["content"][0]["content"], agent.cached = "[cleared]", 0
            assert await agent.step() == "small-1"
        assert plugin.counters.as_dict() == {}
    rows, ended = [await written(tmp_path, table) for table in (requests, outcomes)]
    held = [(turn, "tool_loop") for turn in range(2, 11)]
    assert [(row.turn, row.hold) for row in rows] == [(1, None), *held]
    assert len({row.line for row in rows}) == 1
    large = [1e-5 * (tokens - 0.9 * cached + 10) for tokens, cached in agent.truth]
    expected = [row.estimated_cost[LARGE] for row in rows]
    assert expected[2:] == pytest.approx(large[2:], rel=0.15)
    assert [row.cost_largest for row in ended] == pytest.approx(large)
    assert [row.served_cost for row in ended] == pytest.approx([each / 100 for each in large])
