"""Requests that are served as before: they go on unchanged, and are decided in shadow."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from litellm_messplus.proxy import before, router
from litellm_messplus.proxy.deployments.deployment import deployment_id
from litellm_messplus.proxy.plugin import MessplusPlugin
from litellm_messplus.records import served_call_id
from litellm_messplus.routing.decision import Reason
from litellm_messplus.store.tables import calls, labels, requests
from litellm_messplus.store.zoo_modes import ModeRow
from litellm_messplus.switching.modes import Arm, Mode, Pace, ZooMode
from tests.support.builders import NOW
from tests.support.in_process import DEPLOYMENTS, call, log_event, running, written
from tests.support.patience import PATIENT

SMALL, LARGE = "openai/small", "openai/large"
WATCH: dict[str, Any] = {"mode": "watch", "before": LARGE, "watch": {"sample": 0.0}}
ANSWER = {"id": "chatcmpl-1", "choices": [{"message": {"content": "4"}}]}


def asked(text: str = "What is 2 + 2?") -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


async def route(
    plugin: MessplusPlugin, arguments: dict[str, Any], text: str = "What is 2 + 2?"
) -> list[Any]:
    return await plugin.async_filter_deployments("zoo", DEPLOYMENTS, asked(text), arguments)


async def settle(plugin: MessplusPlugin) -> None:
    """Until everything is decided in shadow and written."""
    await plugin.parts.router.close()
    await plugin.parts.journal.flush()


async def test_litellms_own_choice_gets_its_list_back_untouched(tmp_path: Path) -> None:
    async with running(tmp_path, {**WATCH, "before": "litellm"}) as plugin:
        found = await route(plugin, call("1"))
        assert all(one is own for one, own in zip(found, DEPLOYMENTS, strict=True))
        await settle(plugin)
        assert plugin.counters.as_dict() == {}
    (row,) = await written(tmp_path, requests)
    assert (row.arm, row.chosen, row.service_level) == ("before", "litellm", "default:before")
    assert row.would_choose in (SMALL, LARGE)
    assert row.would_cost > 0.0
    assert 0.0 <= row.conversation_draw < 1.0


async def test_the_candidate_that_served_before_comes_first_and_the_others_after_it(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, WATCH) as plugin:
        found = await route(plugin, call("1"))
        orders = {deployment_id(one): one["litellm_params"]["order"] for one in found}
        assert orders["large"] < orders["small"]
        await settle(plugin)
    (row,) = await written(tmp_path, requests)
    assert row.chosen == LARGE


async def test_a_retry_is_served_as_before_too_and_logged_once(tmp_path: Path) -> None:
    arguments = call("1")
    async with running(tmp_path, WATCH) as plugin:
        await route(plugin, arguments)
        arguments["metadata"]["model_info"] = {"id": "large"}
        found = await route(plugin, arguments)
        orders = {deployment_id(one): one["litellm_params"]["order"] for one in found}
        assert orders["small"] < orders["large"]  # it has just failed
        await settle(plugin)
    assert len(await written(tmp_path, requests)) == 1


async def test_feedback_that_comes_with_the_next_request_is_taken(tmp_path: Path) -> None:
    async with running(tmp_path, WATCH) as plugin:
        first = call("1")
        await route(plugin, first)
        await plugin.async_log_success_event(log_event(first, "large"), ANSWER, None, None)
        verdict = {"id": "1", "satisfied": False}
        metadata = {"user_api_key_hash": "key", "messplus_feedback": verdict}
        await route(plugin, call("2", metadata=metadata))
        await plugin.parts._next_turn_feedback.close()
        await settle(plugin)
    (label,) = await written(tmp_path, labels)
    assert (label.source, label.value) == ("feedback", 0.0)


def gate_of_reading(plugin: MessplusPlugin, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Let no request be read before the event that is returned is set."""
    reader, gate = plugin.parts.router._decider._reader, asyncio.Event()
    read = reader.read

    async def slow(*given: Any) -> Any:
        await gate.wait()
        return await read(*given)

    monkeypatch.setattr(reader, "read", slow)
    return gate


async def test_nobody_waits_for_what_is_decided_in_shadow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deployments go back before the prompt is even read."""
    async with running(tmp_path, WATCH) as plugin:
        gate = gate_of_reading(plugin, monkeypatch)
        async with asyncio.timeout(PATIENT):
            await route(plugin, call("1"))
        gate.set()
        await settle(plugin)
    (row,) = await written(tmp_path, requests)
    assert row.would_choose is not None


async def test_a_call_that_ends_first_is_logged_after_its_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = call("1")
    async with running(tmp_path, WATCH) as plugin:
        gate = gate_of_reading(plugin, monkeypatch)
        await route(plugin, arguments)
        event = log_event(arguments, "large", id="chatcmpl-1")
        await plugin.async_log_success_event(event, ANSWER, None, None)
        gate.set()
        await settle(plugin)
        assert plugin.counters.as_dict() == {"asides_late": 1}
    (row,) = await written(tmp_path, requests)
    (ended,) = await written(tmp_path, calls)
    assert (row.reason, row.would_choose) == (Reason.UNDECIDED, None)
    assert ended.call_id == served_call_id(row.request_id)
    assert row.position < ended.position


async def test_more_than_can_be_decided_at_once_is_dropped_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(router, "MOST_WAITING", 3)
    async with running(tmp_path, WATCH) as plugin:
        for number in range(5):
            await route(plugin, call(str(number)))  # the tasks do not run between these
        waiting = len(plugin.parts.router._shadows)
        await settle(plugin)
        dropped = plugin.counters.as_dict().get("asides_dropped", 0)
    rows = await written(tmp_path, requests)
    assert waiting <= 3
    assert len(rows) == 5
    assert sum(row.would_choose is None for row in rows) == dropped


def canary(share: float, revision: int = 1) -> ModeRow:
    mode = ZooMode(Mode.CANARY, share, LARGE)
    return ModeRow("zoo", revision, mode.mode, share, LARGE, "key", "test", NOW, mode.fingerprint)


async def test_a_canary_takes_its_share_of_conversations_and_keeps_them_as_it_grows(
    tmp_path: Path,
) -> None:
    arms: dict[float, list[str]] = {}
    async with running(tmp_path, WATCH) as plugin:
        for revision, share in enumerate((0.1, 0.3), start=1):
            plugin.parts.modes.learn({"zoo": canary(share, revision)})
            for number in range(400):
                await route(plugin, call(f"{share}-{number}"), f"question {number}")
            await settle(plugin)
        rows = await written(tmp_path, requests)
    for share in (0.1, 0.3):
        own = {row.litellm_call_id: row.arm for row in rows}
        arms[share] = [own[f"{share}-{number}"] for number in range(400)]
    routed = {share: arm.count("routed") for share, arm in arms.items()}
    assert 20 <= routed[0.1] <= 65
    assert 85 <= routed[0.3] <= 155
    both = list(zip(arms[0.1], arms[0.3], strict=True))
    assert ("routed", "before") not in both


async def test_every_turn_of_a_conversation_is_served_the_same_way(tmp_path: Path) -> None:
    async with running(tmp_path, WATCH) as plugin:
        plugin.parts.modes.learn({"zoo": canary(0.5)})
        for talk in range(20):
            turns = asked(f"talk {talk}")
            for turn in range(4):
                arguments = call(f"{talk}-{turn}")
                await plugin.async_filter_deployments("zoo", DEPLOYMENTS, turns, arguments)
                turns = [*turns, {"role": "assistant", "content": "ok"}, *asked(f"more {turn}")]
        await settle(plugin)
    arms: dict[str, set[str]] = {}
    for row in await written(tmp_path, requests):
        arms.setdefault(row.litellm_call_id.split("-")[0], set()).add(row.arm)
    assert all(len(found) == 1 for found in arms.values())
    assert {"routed"} in arms.values()
    assert {"before"} in arms.values()


async def test_only_routed_requests_move_the_live_queue_and_all_of_them_teach(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, WATCH) as plugin:
        for number in range(10):
            arguments = call(str(number))
            await route(plugin, arguments)
            await plugin.parts.router.close()
            event = log_event(arguments, "large", id=f"chatcmpl-{number}")
            await plugin.async_log_success_event(event, ANSWER, None, None)
        await settle(plugin)
        engine = plugin.engines["zoo"]
        assert engine.state.requests["default"] == 0
        assert engine.state.policy.queue("default") == 0.0
        assert engine.state.requests["default:before"] == 10
        assert engine._unfolded["default:before"] == {}
        assert engine.state.estimators[LARGE].completion_tokens.count == 10


class Explored:
    """In the explorer's place: whom it was to call."""

    def __init__(self) -> None:
        self.called: list[tuple[str, ...]] = []

    def start(self, opened: Any, candidates: Any, request: Any) -> None:
        self.called.append(tuple(candidates))


@pytest.mark.parametrize(("sample", "expected"), [(1.0, 1), (0.0, 0)])
async def test_a_sample_calls_one_model_unseen_and_never_the_one_that_serves(
    tmp_path: Path, sample: float, expected: int
) -> None:
    explored = Explored()
    async with running(tmp_path, {**WATCH, "watch": {"sample": sample}}) as plugin:
        plugin.parts._explorer.start = explored.start  # type: ignore[method-assign]
        for number in range(5):
            await route(plugin, call(str(number)))
        await settle(plugin)
    assert [len(each) for each in explored.called] == [expected] * 5
    assert all(LARGE not in each for each in explored.called)
    rows = await written(tmp_path, requests)
    assert {row.sample_probability for row in rows} == {sample or None}
    assert {row.exploration_calls for row in rows} == {expected}


FEW = 1e-6
"""Decisions a second: none but the first ones, and the sample."""


@pytest.mark.parametrize(("sample", "decided"), [(0.0, 3), (1.0, 8)])
async def test_beyond_the_pace_only_the_sample_is_decided_and_all_are_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sample: float, decided: int
) -> None:
    monkeypatch.setattr(before, "Pace", lambda _: Pace(FEW, first=3))
    watch = {"sample": sample}
    async with running(tmp_path, {**WATCH, "watch": watch}) as plugin:
        plugin.parts._explorer.start = Explored().start  # type: ignore[method-assign]
        for number in range(8):
            arguments = call(str(number))
            await route(plugin, arguments)
            await plugin.parts.router.close()
            event = log_event(arguments, "large", id=f"chatcmpl-{number}")
            await plugin.async_log_success_event(event, ANSWER, None, None)
        await settle(plugin)
        assert plugin.counters.as_dict() == {}
    rows = await written(tmp_path, requests)
    assert [row.would_choose is not None for row in rows].count(True) == decided
    assert [row.conversation_draw is not None for row in rows].count(True) == decided
    assert {row.chosen for row in rows} == {LARGE}
    assert len(await written(tmp_path, calls)) == 8


async def test_every_canary_request_is_drawn_for_whether_it_is_decided_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(before, "Pace", lambda _: Pace(FEW, first=0))
    watch = {"sample": 0.0}
    async with running(tmp_path, {**WATCH, "watch": watch}) as plugin:
        plugin.parts.modes.learn({"zoo": canary(0.5)})
        for number in range(40):
            await route(plugin, call(str(number)), f"question {number}")
        await settle(plugin)
    rows = await written(tmp_path, requests)
    assert {row.arm for row in rows} == {"routed", "before"}
    assert all((row.conversation_draw < 0.5) == (row.arm == "routed") for row in rows)


async def test_a_budget_ends_the_sample(tmp_path: Path) -> None:
    watch = {"sample": 1.0, "budget_per_day": 1e-9}
    explored = Explored()
    async with running(tmp_path, {**WATCH, "watch": watch}) as plugin:
        plugin.parts._explorer.start = explored.start  # type: ignore[method-assign]
        await plugin.parts._samples.look()
        await route(plugin, call("1"))
        await settle(plugin)
        assert plugin.counters.as_dict() == {"samples_over_budget": 1}
    assert explored.called == [()]


async def test_a_zoo_that_is_on_draws_for_nobody(tmp_path: Path) -> None:
    async with running(tmp_path) as plugin:
        await route(plugin, call("1"))
        await settle(plugin)
    (row,) = await written(tmp_path, requests)
    assert (row.arm, row.conversation_draw) == (Arm.ROUTED, None)
    assert isinstance(row, SimpleNamespace)
