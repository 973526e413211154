"""The gates under the plugin's own hook: 2,000 made-up requests over three surfaces, and a few by
hand. LiteLLM's own router shows the deployments, and its own filters run after ours."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import litellm
import pytest

from litellm_messplus.proxy.deployments import gates
from litellm_messplus.proxy.plugin import MessplusPlugin
from litellm_messplus.store.tables import requests
from tests.support import in_process
from tests.support.in_process import running, written
from tests.support.litellm_router import healthy

REQUESTS = 2000
Deployment = dict[str, Any]
SURFACES = ("acompletion", "anthropic_messages", "aresponses")


def deployment(model: str, price: float, identity: str = "", **given: Any) -> Deployment:
    params: dict[str, Any] = {"api_key": "none"}
    params |= {key: given.pop(key) for key in ("tags", "region_name", "order") if key in given}
    return in_process.deployment(model, price, identity, params, **given)


NOTHING: dict[str, Any] = {
    "supports_vision": False,
    "supports_audio_input": False,
    "supports_function_calling": False,
}
EVERYTHING: dict[str, Any] = dict.fromkeys(NOTHING, True)
ZOO = [
    deployment("words", 1e-7, **NOTHING),
    deployment("tools", 5e-7, **{**NOTHING, "supports_function_calling": True}),
    deployment("eyes", 1e-6, **{**NOTHING, "supports_vision": True}),
    deployment("ears", 2e-6, **{**NOTHING, "supports_audio_input": True}),
    deployment("all", 1e-5, **EVERYTHING),
]
TAKES = {each["model_info"]["id"]: each["model_info"] for each in ZOO}
KEYS = {
    "image": "supports_vision",
    "audio": "supports_audio_input",
    "tools": "supports_function_calling",
}


class Proxy:
    """What LiteLLM does with the plugin for one request, up to the choice of a deployment."""

    def __init__(self, plugin: MessplusPlugin, router: litellm.Router) -> None:
        self.plugin, self.router = plugin, router

    async def choose(self, arguments: dict[str, Any], messages: Any = None) -> list[str]:
        """Ids of the deployments that LiteLLM would load-balance between."""
        given = {"messages": messages, "input": arguments.get("input")}
        return await healthy(self.router, "zoo", arguments, **given)

    @property
    def counters(self) -> dict[str, int]:
        return self.plugin.counters.as_dict()


@asynccontextmanager
async def serving(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    deployments: Sequence[Deployment] = ZOO,
    zoo: dict[str, Any] | None = None,
    **router_settings: Any,
) -> AsyncIterator[Proxy]:
    router = litellm.Router(model_list=list(deployments), **router_settings)
    async with running(folder, zoo, deployments=deployments) as plugin:
        monkeypatch.setattr(plugin.parts.gates, "_router", lambda: router)
        monkeypatch.setattr(litellm, "callbacks", [plugin])
        yield Proxy(plugin, router)


def call(surface: str = "acompletion", call_id: str = "1", **given: Any) -> dict[str, Any]:
    metadata = {"user_api_key_hash": "key", "tags": given.pop("tags", [])}
    own = "metadata" if surface == "acompletion" else "litellm_metadata"
    logging = SimpleNamespace(call_type=surface)
    return {"litellm_call_id": call_id, "litellm_logging_obj": logging, own: metadata, **given}


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
    """The arguments of a call, its messages, and what it asks for."""
    surface = SURFACES[number % 3]
    kinds = {kind for kind in KEYS if random.random() < 0.3}
    parts = [PARTS[surface][kind] for kind in ("text", *sorted(kinds - {"tools"}))]
    random.shuffle(parts)
    turns = [{"role": "user", "content": parts}]
    if random.random() < 0.3:  # the attachment may have come long before
        turns += [{"role": "assistant", "content": "A cat."}, {"role": "user", "content": "Sure?"}]
    given: dict[str, Any] = {"tools": [TOOL[surface]]} if "tools" in kinds else {}
    if surface == "aresponses":
        return call(surface, str(number), input=turns, **given), None, kinds
    return call(surface, str(number), **given), turns, kinds


async def test_no_request_reaches_a_model_that_is_known_not_to_take_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random, wrong = Random(1), []
    asked_for: list[set[str]] = []
    async with serving(tmp_path, monkeypatch) as proxy:
        for number in range(REQUESTS):
            arguments, messages, kinds = made_up(random, number)
            chosen = await proxy.choose(arguments, messages)
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


IMAGE = [{"role": "user", "content": list(PARTS["acompletion"].values())[:2]}]
PLAIN = [{"role": "user", "content": "hello"}]


async def test_without_gates_every_model_is_ranked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, monkeypatch, zoo={"gates": False}) as proxy:
        for number in range(20):
            await proxy.choose(call(call_id=str(number)), IMAGE)

    rows = await written(tmp_path, requests)
    assert {row.eligible for row in rows} == {None}
    assert {len(row.estimated_cost) for row in rows} == {len(ZOO)}
    assert "openai/words" in {row.chosen for row in rows}


async def test_where_nobody_can_take_it_the_list_is_unchanged_and_that_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, monkeypatch, ZOO[:2]) as proxy:
        assert await proxy.choose(call(), IMAGE)
        assert proxy.counters == {"none_eligible": 1}

    (row,) = await written(tmp_path, requests)
    assert row.eligible is None
    assert len(row.estimated_cost) == 2


async def test_an_unknown_model_gets_images_only_where_nobody_is_known_to_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = deployment("unheard-of", 1e-8)
    async with serving(tmp_path, monkeypatch, [unknown, ZOO[0]]) as proxy:
        assert await proxy.choose(call(), IMAGE) == ["unheard-of"]
    (tmp_path / "other").mkdir()
    async with serving(tmp_path / "other", monkeypatch, [unknown, ZOO[2]]) as proxy:
        assert await proxy.choose(call(), IMAGE) == ["eyes"]


async def test_a_retry_goes_back_to_the_one_that_can_rather_than_to_one_that_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = [deployment("words", 1e-7, order=1, **NOTHING), deployment("eyes", 1e-6, order=2)]
    two[1]["model_info"]["supports_vision"] = True
    async with serving(tmp_path, monkeypatch, two) as proxy:
        arguments = call()
        assert await proxy.choose(arguments, IMAGE) == ["eyes"]
        arguments["metadata"]["model_info"] = {"id": "eyes"}  # the attempt that failed
        assert await proxy.choose(arguments, IMAGE) == ["eyes"]
        arguments["_target_order"] = 1  # LiteLLM's fallback to the user's other order
        assert await proxy.choose(arguments, IMAGE) == ["eyes"]
        assert await proxy.choose(call(call_id="2"), PLAIN) == ["words"]


async def test_a_region_and_a_tag_decide_who_is_eligible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    three = [
        deployment("here", 1e-7, region_name="eu", tags=["default"]),
        deployment("there", 1e-6, region_name="us", tags=["default", "paid"]),
        deployment("nowhere", 1e-5, tags=["default", "paid"]),
    ]
    async with serving(tmp_path, monkeypatch, three, enable_tag_filtering=True) as proxy:
        assert await proxy.choose(call(allowed_model_region="us"), PLAIN) == ["there"]
        assert await proxy.choose(call(call_id="2", tags=["paid"]), PLAIN) != ["here"]

    region, tag = await written(tmp_path, requests)
    assert (region.eligible, region.gated_by) == (["openai/there"], ["region"])
    assert tag.eligible == ["openai/there", "openai/nowhere"]
    assert tag.gated_by == ["tags"]


async def test_where_nobody_filters_by_tags_litellms_filter_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gates, "kept_by_tags", lambda *given: 1 / 0)
    async with serving(tmp_path, monkeypatch) as proxy:
        assert await proxy.choose(call(tags=["paid"]), IMAGE) != ["words"]
        assert proxy.counters == {}


async def test_a_replica_that_cannot_take_it_is_passed_by_and_its_candidate_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    three = [
        deployment("same", 1e-7, "blind", supports_vision=False),
        deployment("same", 1e-7, "seeing", supports_vision=True),
        deployment("all", 1e-5, supports_vision=True),
    ]
    async with serving(tmp_path, monkeypatch, three) as proxy:
        chosen = {
            each
            for number in range(20)
            for each in await proxy.choose(call(call_id=str(number)), IMAGE)
        }

    assert "blind" not in chosen
    assert {row.eligible for row in await written(tmp_path, requests)} == {None}


class RefusedError(Exception):
    """As LiteLLM raises it, with the status of the endpoint."""

    status_code = 400


async def test_an_endpoint_that_refuses_tools_gets_none_and_the_log_says_what_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    two = [deployment("cheap", 1e-8), deployment("good", 1e-5)]
    async with serving(tmp_path, monkeypatch, two) as proxy:
        for number in range(3):
            arguments = call(call_id=str(number), tools=[TOOL["acompletion"]])
            await proxy.choose(arguments, PLAIN)
            await proxy.plugin.async_log_failure_event(
                {
                    "litellm_call_id": str(number),
                    "litellm_params": {"metadata": arguments["metadata"]},
                    "standard_logging_object": {"model_id": "cheap"},
                    "exception": RefusedError(),
                },
                *(None, None, None),
            )
        for number in range(10, 30):
            arguments = call(call_id=str(number), tools=[TOOL["acompletion"]])
            assert await proxy.choose(arguments, PLAIN) == ["good"]
        counted = proxy.counters
        assert await proxy.choose(call(call_id="plain"), PLAIN)

    assert counted == {"capabilities_refused": 1}
    assert "write `model_info: {supports_function_calling: false}`" in caplog.text
    rows = await written(tmp_path, requests)
    assert rows[-1].eligible is None
    assert rows[-2].eligible == ["openai/good"]
    assert (rows[-2].reason, rows[-2].gated_by) == ("forced", ["tools"])


async def test_where_the_gates_fail_the_largest_serves_and_that_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, monkeypatch) as proxy:
        monkeypatch.setattr(proxy.plugin.parts.gates, "_router", lambda: 1 / 0)
        assert await proxy.choose(call(), IMAGE) == ["all"]
        assert proxy.counters == {"gate_failures": 1}
    (row,) = await written(tmp_path, requests)
    assert (row.chosen, row.reason) == ("openai/all", "forced")
    assert (row.eligible, row.gated_by) == (["openai/all"], ["gates_failed"])


async def test_where_the_gates_fail_and_the_largest_is_gone_the_next_most_expensive_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, monkeypatch) as proxy:
        monkeypatch.setattr(proxy.plugin.parts.gates, "_router", lambda: 1 / 0)
        arguments = call(tools=[TOOL["acompletion"]])
        assert await proxy.choose(arguments) == ["all"]
        arguments["metadata"]["model_info"] = {"id": "all"}  # as LiteLLM leaves it where it failed
        assert await proxy.choose(arguments) == ["ears"]
        assert proxy.counters == {"gate_failures": 2}


async def test_a_decision_that_comes_too_late_leaves_the_choice_among_those_that_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, monkeypatch) as proxy:
        settings = proxy.plugin.parts.router._decider._settings
        late = settings.model_copy(update={"deadline_seconds": 1e-9})
        monkeypatch.setattr(proxy.plugin.parts.router._decider, "_settings", late)
        assert sorted(await proxy.choose(call(), IMAGE)) == ["all", "eyes"]
        assert proxy.counters == {"deadlines_missed": 1}
