"""The gates under the plugin's own hook: 2,000 made-up requests over three surfaces, and a few by
hand. LiteLLM's own router shows the deployments, and its own filters run after ours."""

from pathlib import Path
from random import Random
from typing import Any

import pytest
from litellm.types.router import RouterRateLimitError

from litellm_messplus.serving.deployments import gates
from litellm_messplus.store.tables import requests
from tests.support.in_process import brain_of, written
from tests.support.journey import live, routed, user

REQUESTS = 2000
SURFACES = ("acompletion", "anthropic_messages", "aresponses")
NOTHING: dict[str, Any] = {
    "supports_vision": False,
    "supports_audio_input": False,
    "supports_function_calling": False,
}
EVERYTHING: dict[str, Any] = dict.fromkeys(NOTHING, True)
ZOO = [
    live("words", 1e-7, **NOTHING),
    live("tools", 5e-7, **{**NOTHING, "supports_function_calling": True}),
    live("eyes", 1e-6, **{**NOTHING, "supports_vision": True}),
    live("ears", 2e-6, **{**NOTHING, "supports_audio_input": True}),
    live("all", 1e-5, **EVERYTHING),
]
TAKES = {each["model_info"]["id"]: each["model_info"] for each in ZOO}
KEYS = {
    "image": "supports_vision",
    "audio": "supports_audio_input",
    "tools": "supports_function_calling",
}


PARTS: dict[str, dict[str, Any]] = {
    "acompletion": {
        "text": {"type": "text", "text": "What is this?"},
        "image": {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
        "audio": {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
    },
    "anthropic_messages": {
        "text": {"type": "text", "text": "What is this?"},
        "image": {"type": "image", "source": {"type": "base64", "media_type": "image/png"}},
        "audio": {"type": "audio", "source": {"type": "base64", "media_type": "audio/wav"}},
    },
    "aresponses": {
        "text": {"type": "input_text", "text": "What is this?"},
        "image": {"type": "input_image", "image_url": "data:image/png;base64,AA=="},
        "audio": {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
    },
}
TOOL: dict[str, dict[str, Any]] = {
    "acompletion": {"type": "function", "function": {"name": "f", "parameters": {}}},
    "anthropic_messages": {"name": "f", "input_schema": {"type": "object"}},
    "aresponses": {"type": "function", "name": "f", "parameters": {}},
}


def made_up(random: Random, number: int) -> tuple[dict[str, Any], Any, set[str]]:
    """What a call is made of, its messages, and what it asks for."""
    surface = SURFACES[number % 3]
    kinds = {kind for kind in KEYS if random.random() < 0.3}
    parts = [PARTS[surface][kind] for kind in ("text", *sorted(kinds - {"tools"}))]
    random.shuffle(parts)
    turns = user(parts)
    if random.random() < 0.3:  # the attachment may have come long before
        turns += [{"role": "assistant", "content": "A cat."}, *user("Sure?")]
    given: dict[str, Any] = {"call_type": surface}
    if "tools" in kinds:
        given["tools"] = [TOOL[surface]]
    if surface == "aresponses":
        return {**given, "input": turns}, None, kinds
    return given, turns, kinds


async def test_no_request_reaches_a_model_that_is_known_not_to_take_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random, wrong = Random(1), []
    asked_for: list[set[str]] = []
    async with routed(tmp_path, monkeypatch, ZOO) as proxy:
        for number in range(REQUESTS):
            given, messages, kinds = made_up(random, number)
            chosen = await proxy.choose(messages, **given)
            asked_for.append(kinds)
            wrong += [
                (model, kinds)
                for model in chosen
                if not all(TAKES[model][KEYS[kind]] for kind in kinds)
            ]
        counted = proxy.counters

    assert wrong == []
    assert counted == {}
    rows = await written(tmp_path, requests)
    assert len(rows) == REQUESTS
    for row, kinds in zip(rows, asked_for, strict=True):
        able = [name for name, info in TAKES.items() if all(info[KEYS[kind]] for kind in kinds)]
        models = [f"openai/{name}" for name in able]
        assert row.eligible == (None if len(able) == len(ZOO) else models)
        assert row.chosen in models
        assert list(row.estimated_cost) == models
    forced = [row for row in rows if row.eligible == ["openai/all"]]
    assert len(forced) > 300
    assert {(row.propensity, row.exploration_calls, row.is_exploration) for row in forced} == {
        (1.0, 0, False)
    }
    seeing = [row for row in rows if row.eligible == ["openai/eyes", "openai/all"]]
    assert {row.largest for row in seeing} == {"openai/all"}


IMAGE = user(list(PARTS["acompletion"].values())[:2])


async def test_no_gates_rank_every_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with routed(tmp_path, monkeypatch, ZOO, {"gates": False}) as proxy:
        for _ in range(20):
            await proxy.choose(IMAGE)

    rows = await written(tmp_path, requests)
    assert {row.eligible for row in rows} == {None}
    assert {len(row.estimated_cost) for row in rows} == {len(ZOO)}
    assert "openai/words" in {row.chosen for row in rows}


async def test_where_nobody_can_take_it_the_list_is_unchanged_and_that_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with routed(tmp_path, monkeypatch, ZOO[:2]) as proxy:
        assert await proxy.choose(IMAGE)
        assert proxy.counters == {"none_eligible": 1}

    (row,) = await written(tmp_path, requests)
    assert row.eligible is None
    assert len(row.estimated_cost) == 2


async def test_an_unknown_model_gets_images_only_where_nobody_is_known_to_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = live("unheard-of", 1e-8)
    async with routed(tmp_path, monkeypatch, [unknown, ZOO[0]]) as proxy:
        assert await proxy.choose(IMAGE) == ["unheard-of"]
    (tmp_path / "other").mkdir()
    async with routed(tmp_path / "other", monkeypatch, [unknown, ZOO[2]]) as proxy:
        assert await proxy.choose(IMAGE) == ["eyes"]


async def test_a_retry_returns_to_who_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two = [live("words", 1e-7, order=1, **NOTHING), live("eyes", 1e-6, order=2)]
    two[1]["model_info"]["supports_vision"] = True
    async with routed(tmp_path, monkeypatch, two) as proxy:
        arguments = proxy.request()
        assert await proxy.choose(IMAGE, arguments) == ["eyes"]
        arguments["metadata"]["model_info"] = {"id": "eyes"}  # the attempt that failed
        assert await proxy.choose(IMAGE, arguments) == ["eyes"]
        arguments["_target_order"] = 1  # LiteLLM's fallback to the user's other order
        with pytest.raises(RouterRateLimitError):  # of which none can take it
            await proxy.choose(IMAGE, arguments)
        assert await proxy.choose() == ["words"]


async def test_region_and_tag_decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    three = [
        live("here", 1e-7, region_name="eu", tags=["default"]),
        live("there", 1e-6, region_name="us", tags=["default", "paid"]),
        live("nowhere", 1e-5, tags=["default", "paid"]),
    ]
    async with routed(tmp_path, monkeypatch, three, enable_tag_filtering=True) as proxy:
        assert await proxy.choose(allowed_model_region="us") == ["there"]
        assert await proxy.choose(tags=["paid"]) != ["here"]

    region, tag = await written(tmp_path, requests)
    assert (region.eligible, region.gated_by) == (["openai/there"], ["region"])
    assert tag.eligible == ["openai/there", "openai/nowhere"]
    assert tag.gated_by == ["tags"]


async def test_where_nobody_filters_by_tags_litellms_filter_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gates, "kept_by_tags", lambda *given: 1 / 0)
    async with routed(tmp_path, monkeypatch, ZOO) as proxy:
        assert await proxy.choose(IMAGE, tags=["paid"]) != ["words"]
        assert proxy.counters == {}


async def test_a_replica_that_cannot_take_it_is_passed_by_and_its_candidate_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    three = [
        live("same", 1e-7, id="blind", supports_vision=False),
        live("same", 1e-7, id="seeing", supports_vision=True),
        live("all", 1e-5, supports_vision=True),
    ]
    async with routed(tmp_path, monkeypatch, three) as proxy:
        chosen = {each for _ in range(20) for each in await proxy.choose(IMAGE)}

    assert "blind" not in chosen
    assert {row.eligible for row in await written(tmp_path, requests)} == {None}


async def test_failing_gates_serve_largest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with routed(tmp_path, monkeypatch, ZOO) as proxy:
        monkeypatch.setattr(proxy.plugin.parts.router.gates, "router", lambda: 1 / 0)
        assert await proxy.choose(IMAGE) == ["all"]
        assert proxy.counters == {"gate_failures": 1}
    (row,) = await written(tmp_path, requests)
    assert (row.chosen, row.reason) == ("openai/all", "forced")
    assert (row.eligible, row.gated_by) == (["openai/all"], ["gates_failed"])


async def test_where_the_gates_fail_and_the_largest_is_gone_the_next_most_expensive_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with routed(tmp_path, monkeypatch, ZOO) as proxy:
        monkeypatch.setattr(proxy.plugin.parts.router.gates, "router", lambda: 1 / 0)
        arguments = proxy.request(tools=[TOOL["acompletion"]])
        assert await proxy.choose(None, arguments) == ["all"]
        arguments["metadata"]["model_info"] = {"id": "all"}  # as LiteLLM leaves it where it failed
        assert await proxy.choose(None, arguments) == ["ears"]
        assert proxy.counters == {"gate_failures": 2}


async def test_a_decision_that_comes_too_late_leaves_the_choice_among_those_that_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with routed(tmp_path, monkeypatch, ZOO) as proxy:
        settings = brain_of(proxy.plugin.parts).road.decider.settings
        late = settings.model_copy(update={"deadline_seconds": 1e-9})
        monkeypatch.setattr(brain_of(proxy.plugin.parts).road.decider, "settings", late)
        assert sorted(await proxy.choose(IMAGE)) == ["all", "eyes"]
        assert proxy.counters == {"deadlines_missed": 1}


@pytest.mark.parametrize(
    "zoo",
    [{"gates": False}, {"mode": "watch", "before": "openai/there"}],
    ids=["without gates", "served as before"],
)
async def test_what_litellm_would_remove_is_never_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zoo: dict[str, Any]
) -> None:
    """Its filters run after ours, and refuse a request for which nothing is left."""
    three = [
        live("here", 1e-7, tags=["free"], max_input_tokens=10_000),
        live("there", 1e-6, tags=["paid"], max_input_tokens=20),
        live("far", 1e-5, tags=["paid"], max_input_tokens=10_000),
    ]
    filters: dict[str, Any] = {"enable_tag_filtering": True, "enable_pre_call_checks": True}
    async with routed(tmp_path, monkeypatch, three, zoo=zoo, **filters) as proxy:
        assert await proxy.choose("word " * 500, tags=["paid"]) == ["far"]
        assert await proxy.choose("word " * 500, tags=["free"]) == ["here"]
