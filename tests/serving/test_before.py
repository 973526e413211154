"""Requests that are served as before: they go on unchanged, and are decided in shadow."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from litellm_messplus.brain import arms
from litellm_messplus.core.decision import Reason
from litellm_messplus.records import served_call_id
from litellm_messplus.serving import router
from litellm_messplus.store.tables import calls, labels, requests
from litellm_messplus.store.zoo_modes import ModeRow
from litellm_messplus.switching.modes import Arm, Mode, Pace, ZooMode
from tests.support.builders import NOW
from tests.support.in_process import DEPLOYMENTS, brain_of, written
from tests.support.journey import LARGE, SMALL, Journey, journey, user
from tests.support.patience import PATIENT

WATCH: dict[str, Any] = {"mode": "watch", "before": LARGE, "watch": {"sample": 0.0}}


async def test_litellms_own_choice_gets_its_list_back_untouched(tmp_path: Path) -> None:
    async with journey(tmp_path, {**WATCH, "before": "litellm"}) as proxy:
        found = (await proxy.ask()).deployments
        assert all(one is own for one, own in zip(found, DEPLOYMENTS, strict=True))
        await proxy.settled()
        assert proxy.counters == {}
    (row,) = await written(tmp_path, requests)
    assert (row.arm, row.chosen, row.service_level) == ("before", "litellm", "default:before")
    assert row.would_choose in (SMALL, LARGE)
    assert row.would_cost > 0.0
    assert 0.0 <= row.conversation_draw < 1.0


async def test_the_candidate_that_served_before_serves(tmp_path: Path) -> None:
    async with journey(tmp_path, WATCH) as proxy:
        assert (await proxy.ask()).ids == ["large"]
        await proxy.settled()
    (row,) = await written(tmp_path, requests)
    assert row.chosen == LARGE


async def test_a_retry_is_served_as_before_too_and_logged_once(tmp_path: Path) -> None:
    async with journey(tmp_path, WATCH) as proxy:
        asked = await proxy.ask()
        again = await proxy.ask(arguments=asked.failed_at("large"))
        assert again.ids == ["small"]  # the other has just failed
        await proxy.settled()
    assert len(await written(tmp_path, requests)) == 1


async def test_feedback_that_comes_with_the_next_request_is_taken(tmp_path: Path) -> None:
    async with journey(tmp_path, WATCH) as proxy:
        await proxy.answers(await proxy.ask())
        verdict = {"id": "chatcmpl-1", "satisfied": False}
        await proxy.ask(metadata={"user_api_key_hash": "key", "messplus_feedback": verdict})
        await brain_of(proxy.plugin.parts).road.next_turn.close()
        await proxy.settled()
    (label,) = await written(tmp_path, labels)
    assert (label.source, label.value) == ("feedback", 0.0)


def gate_of_admission(proxy: Journey, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Let no request be admitted before the event that is returned is set."""
    gates, gate = proxy.plugin.parts.router.gates, asyncio.Event()
    admit = gates.admit

    async def slow(*given: Any) -> Any:
        await gate.wait()
        return await admit(*given)

    monkeypatch.setattr(gates, "admit", slow)
    return gate


async def test_nobody_waits_for_the_shadow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The deployments go back before it is even known who can take the request."""
    async with journey(tmp_path, WATCH) as proxy:
        gate = gate_of_admission(proxy, monkeypatch)
        async with asyncio.timeout(PATIENT):
            await proxy.ask()
        gate.set()
        await proxy.settled()
    (row,) = await written(tmp_path, requests)
    assert row.would_choose is not None


async def test_an_early_end_is_logged_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with journey(tmp_path, WATCH) as proxy:
        gate = gate_of_admission(proxy, monkeypatch)
        await proxy.answers(await proxy.ask())
        gate.set()
        await proxy.settled()
        assert proxy.counters == {"asides_late": 1}
    (row,) = await written(tmp_path, requests)
    (ended,) = await written(tmp_path, calls)
    assert (row.reason, row.would_choose) == (Reason.UNDECIDED, None)
    assert ended.call_id == served_call_id(row.request_id)
    assert row.position < ended.position


async def test_more_than_can_be_decided_at_once_is_dropped_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(router, "MOST_WAITING", 3)
    async with journey(tmp_path, WATCH) as proxy:
        for _number in range(5):
            await proxy.ask()  # the tasks do not run between these
        waiting = len(proxy.plugin.parts.router._shadows)
        await proxy.settled()
        dropped = proxy.counters.get("asides_dropped", 0)
    rows = await written(tmp_path, requests)
    assert waiting <= 3
    assert len(rows) == 5
    assert sum(row.would_choose is None for row in rows) == dropped


def canary(share: float, revision: int = 1) -> ModeRow:
    mode = ZooMode(Mode.CANARY, share, LARGE)
    return ModeRow("zoo", revision, mode.mode, share, LARGE, "key", "test", NOW, mode.fingerprint)


async def test_a_canary_takes_its_share_and_keeps_it_as_it_grows(tmp_path: Path) -> None:
    drawn: dict[float, list[str]] = {}
    async with journey(tmp_path, WATCH) as proxy:
        for revision, share in enumerate((0.1, 0.3), start=1):
            brain_of(proxy.plugin.parts).modes.learn({"zoo": canary(share, revision)})
            for number in range(400):
                await proxy.ask(f"question {number}", call_id=f"{share}-{number}")
            await proxy.settled()
        rows = await written(tmp_path, requests)
    for share in (0.1, 0.3):
        own = {row.litellm_call_id: row.arm for row in rows}
        drawn[share] = [own[f"{share}-{number}"] for number in range(400)]
    routed = {share: arm.count("routed") for share, arm in drawn.items()}
    assert 20 <= routed[0.1] <= 65
    assert 85 <= routed[0.3] <= 155
    both = list(zip(drawn[0.1], drawn[0.3], strict=True))
    assert ("routed", "before") not in both


async def test_every_turn_of_a_conversation_is_served_the_same_way(tmp_path: Path) -> None:
    async with journey(tmp_path, WATCH) as proxy:
        brain_of(proxy.plugin.parts).modes.learn({"zoo": canary(0.5)})
        for talk in range(20):
            turns = user(f"talk {talk}")
            for turn in range(4):
                await proxy.ask(turns, call_id=f"{talk}-{turn}")
                turns = [*turns, {"role": "assistant", "content": "ok"}, *user(f"more {turn}")]
        await proxy.settled()
    taken: dict[str, set[str]] = {}
    for row in await written(tmp_path, requests):
        taken.setdefault(row.litellm_call_id.split("-")[0], set()).add(row.arm)
    assert all(len(found) == 1 for found in taken.values())
    assert {"routed"} in taken.values()
    assert {"before"} in taken.values()


async def test_routed_requests_move_the_live_queue_and_all_teach(tmp_path: Path) -> None:
    async with journey(tmp_path, WATCH) as proxy:
        for number in range(10):
            asked = await proxy.ask()
            await proxy.decided()
            await proxy.answers(asked, id=f"chatcmpl-{number}")
        await proxy.settled()
        engine = proxy.engine
        assert engine.state.requests["default"] == 0
        assert engine.state.policy.queue("default") == 0.0
        assert engine.state.requests["default:before"] == 10
        assert engine._unfolded["default:before"] == {}
        assert engine.state.estimators[LARGE].completion_tokens.count == 10


@pytest.mark.parametrize(("sample", "expected"), [(1.0, 1), (0.0, 0)])
async def test_a_sample_calls_another_unseen(tmp_path: Path, sample: float, expected: int) -> None:
    async with journey(tmp_path, {**WATCH, "watch": {"sample": sample}}) as proxy:
        explored = proxy.explores_nothing()
        for _number in range(5):
            await proxy.ask()
        await proxy.settled()
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
    monkeypatch.setattr(arms, "Pace", lambda _: Pace(FEW, first=3))
    watch = {"sample": sample}
    async with journey(tmp_path, {**WATCH, "watch": watch}) as proxy:
        proxy.explores_nothing()
        for number in range(8):
            asked = await proxy.ask()
            await proxy.decided()
            await proxy.answers(asked, id=f"chatcmpl-{number}")
        await proxy.settled()
        assert proxy.counters == {}
    rows = await written(tmp_path, requests)
    assert [row.would_choose is not None for row in rows].count(True) == decided
    assert [row.conversation_draw is not None for row in rows].count(True) == decided
    assert {row.chosen for row in rows} == {LARGE}
    assert len(await written(tmp_path, calls)) == 8


async def test_every_canary_request_is_drawn_for_whether_it_is_decided_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arms, "Pace", lambda _: Pace(FEW, first=0))
    watch = {"sample": 0.0}
    async with journey(tmp_path, {**WATCH, "watch": watch}) as proxy:
        brain_of(proxy.plugin.parts).modes.learn({"zoo": canary(0.5)})
        for number in range(40):
            await proxy.ask(f"question {number}")
        await proxy.settled()
    rows = await written(tmp_path, requests)
    assert {row.arm for row in rows} == {"routed", "before"}
    assert all((row.conversation_draw < 0.5) == (row.arm == "routed") for row in rows)


async def test_a_budget_ends_the_sample(tmp_path: Path) -> None:
    watch = {"sample": 1.0, "budget_per_day": 1e-9}
    async with journey(tmp_path, {**WATCH, "watch": watch}) as proxy:
        explored = proxy.explores_nothing()
        await brain_of(proxy.plugin.parts).samples.look()
        await proxy.ask()
        await proxy.settled()
        assert proxy.counters == {"samples_over_budget": 1}
    assert explored.called == [()]


async def test_a_zoo_that_is_on_draws_for_nobody(tmp_path: Path) -> None:
    async with journey(tmp_path) as proxy:
        await proxy.ask()
        await proxy.settled()
    (row,) = await written(tmp_path, requests)
    assert (row.arm, row.conversation_draw) == (Arm.ROUTED, None)
    assert isinstance(row, SimpleNamespace)
