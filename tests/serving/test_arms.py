"""One model at several efforts under the plugin's own hook: each effort is a candidate, learns for
itself, and what a request sets itself is not overridden."""

from pathlib import Path
from typing import Any

import pytest

from litellm_messplus.store.tables import requests
from tests.support.in_process import deployment, written
from tests.support.journey import journey, routed

MODEL = "openai/mini"
LOW, HIGH = f"{MODEL}, low effort", f"{MODEL}, high effort"
EFFORTS = [
    deployment("mini", 1e-6, "low", {"reasoning_effort": "low", "api_key": "none"}),
    deployment("mini", 1e-6, "high", {"reasoning_effort": "high", "api_key": "none"}),
]
OTHER = deployment("other", 1e-5, params={"api_key": "none"})


@pytest.mark.parametrize(
    ("call_type", "given"),
    [
        ("acompletion", {"reasoning_effort": "high"}),
        ("anthropic_messages", {"reasoning_effort": "high"}),
        ("aresponses", {"reasoning": {"effort": "high"}}),
    ],
)
async def test_arms_that_contradict_a_request_are_gated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call_type: str, given: dict[str, Any]
) -> None:
    async with routed(tmp_path, monkeypatch, EFFORTS) as proxy:
        for _ in range(10):
            assert await proxy.choose(call_type=call_type, **given) == ["high"]

    rows = await written(tmp_path, requests)
    assert {(row.chosen, row.reason) for row in rows} == {(HIGH, "forced")}
    assert {tuple(row.eligible) for row in rows} == {(HIGH,)}
    assert {tuple(row.gated_by) for row in rows} == {tuple(given)}


async def test_a_request_that_sets_nothing_may_go_to_any_arm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with routed(tmp_path, monkeypatch, EFFORTS) as proxy:
        await proxy.choose(temperature=0.5, max_tokens=100)

    (row,) = await written(tmp_path, requests)
    assert row.eligible is None
    assert row.estimated_cost.keys() == {LOW, HIGH}
    assert row.largest == HIGH


async def test_where_every_arm_contradicts_it_that_is_counted_and_nothing_is_gated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with routed(tmp_path, monkeypatch, EFFORTS) as proxy:
        await proxy.choose(reasoning_effort="minimal")
        assert proxy.counters == {"none_eligible": 1}
    async with routed(tmp_path, monkeypatch, [*EFFORTS, OTHER]) as proxy:
        assert await proxy.choose(reasoning_effort="minimal") == ["other"]


async def test_its_limit_keeps_longer_arms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = [
        deployment("mini", 1e-6, "short", {"max_tokens": 200, "api_key": "none"}),
        deployment("mini", 1e-6, "long", {"max_tokens": 4000, "api_key": "none"}),
    ]
    async with routed(tmp_path, monkeypatch, limits) as proxy:
        assert await proxy.choose(max_tokens=1000) == ["long"]
        await proxy.choose(max_tokens=100)

    one, other = await written(tmp_path, requests)
    assert one.gated_by == ["max_tokens"]
    assert other.eligible is None


async def test_each_arm_learns_costs_and_lengths_from_its_own_calls(tmp_path: Path) -> None:
    """Reasoning tokens are part of the answer's: the same answer costs more at a high effort."""
    tokens = {"low": (60, 10), "high": (900, 850)}
    async with journey(tmp_path, None, EFFORTS) as worker:
        worker.explores_nothing()
        for number in range(40):
            name = ("low", "high")[number % 2]
            asked = await worker.ask(reasoning_effort=name)
            completion, reasoning = tokens[name]
            usage = {
                "prompt_tokens": 20,
                "completion_tokens": completion,
                "completion_tokens_details": {"reasoning_tokens": reasoning},
            }
            await worker.answers(asked, name, metadata={"usage_object": usage})
        await worker.settled()
        await worker.ask("What is 3 + 3?")
        await worker.settled()

    *_, row = await written(tmp_path, requests)
    assert row.estimated_cost[HIGH] > 5 * row.estimated_cost[LOW]
