"""The routes of the modes: who may use them, what bad input gets, and what they tell."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from litellm_messplus.brain import access as authentication
from litellm_messplus.brain import zoos
from litellm_messplus.brain.access import administrator
from litellm_messplus.brain.messages import Caller
from litellm_messplus.brain.zoos import Change
from litellm_messplus.cli import zoo as command
from litellm_messplus.serving.plugin import MessplusPlugin
from litellm_messplus.store import observed, zoo_modes
from litellm_messplus.store.database import create_engine
from litellm_messplus.switching.modes import Mode
from tests.support.in_process import brain_of, running, url
from tests.support.journey import Journey

WATCH = {"mode": "watch", "before": "openai/large", "watch": {"sample": 0.0}}


@asynccontextmanager
async def asking(
    folder: Path, zoo: dict[str, Any] | None = None
) -> AsyncIterator[tuple[httpx.AsyncClient, MessplusPlugin]]:
    async with running(folder, zoo or WATCH) as plugin:
        app = brain_of(plugin.parts).web.app
        app.dependency_overrides[administrator] = lambda: Caller("key-1", is_admin=True)
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://proxy") as client:
            yield client, plugin


async def test_a_mode_is_changed_and_told_with_who_and_why(tmp_path: Path) -> None:
    async with asking(tmp_path) as (client, plugin):
        body = {"revision": 0, "mode": "canary", "share": 0.25, "reason": "it looks well"}
        answer = await client.patch("/messplus/zoos/zoo", json=body)
        assert answer.status_code == 200
        assert brain_of(plugin.parts).modes.now["zoo"].mode is Mode.CANARY
        (shown,) = (await client.get("/messplus/zoos")).json()
    assert (shown["mode"], shown["share"], shown["revision"]) == ("canary", 0.25, 1)
    assert (shown["by"], shown["reason"]) == ("key-1", "it looks well")
    assert [each["revision"] for each in shown["history"]] == [1]
    assert shown["candidates"] == ["openai/small", "openai/large"]
    assert "zoo: canary of 0.25, before openai/large" in command.shown(shown)


async def test_a_name_with_slashes_is_a_name(tmp_path: Path) -> None:
    async with asking(tmp_path) as (client, _):
        answer = await client.get("/messplus/zoos/meta/llama")
    assert answer.status_code == 404
    assert answer.json()["detail"] == "no zoo 'meta/llama'; there are: zoo"


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"revision": 7, "mode": "on"}, 409, "revision 7 of zoo zoo is not its newest"),
        ({"revision": 0, "share": 0.0}, 422, "greater than 0"),
        ({"revision": 0, "share": 1.5}, 422, "less than or equal to 1"),
        ({"revision": 0, "mode": "off"}, 422, "'watch', 'canary' or 'on'"),
        ({"revision": 0, "before": "medium"}, 422, "given 'medium'; allowed: litellm or"),
        ({"mode": "on"}, 422, "Field required"),
        ({"revision": 0, "colour": "red"}, 422, "Extra inputs"),
        ({"revision": 0, "mode": "on", "reason": "a\0b"}, 422, "String should match pattern"),
    ],
)
async def test_what_bad_input_gets(
    tmp_path: Path, body: dict[str, Any], status: int, said: str
) -> None:
    async with asking(tmp_path) as (client, plugin):
        answer = await client.patch("/messplus/zoos/zoo", json=body)
        assert brain_of(plugin.parts).modes.now["zoo"].revision == 0
    assert answer.status_code == status
    assert said in answer.text


async def test_nothing_to_return_to_is_refused_where_it_is_needed(tmp_path: Path) -> None:
    async with asking(tmp_path, {"mode": "on"}) as (client, _):
        answer = await client.patch("/messplus/zoos/zoo", json={"revision": 0, "mode": "canary"})
    assert answer.status_code == 422
    assert "before: given nothing; allowed under canary" in answer.json()["detail"]


async def test_only_administrators_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def somebody(_request: object) -> Caller:
        return Caller("key-2", is_admin=False)

    monkeypatch.setattr(authentication, "caller", somebody)
    async with asking(tmp_path) as (client, plugin):
        client._transport.app.dependency_overrides.clear()  # type: ignore[attr-defined]
        seen = await client.get("/messplus/zoos/zoo")
        changed = await client.patch("/messplus/zoos/zoo", json={"revision": 0, "mode": "on"})
        assert brain_of(plugin.parts).modes.now["zoo"].mode is Mode.WATCH
    assert (seen.status_code, changed.status_code) == (403, 403)


async def test_the_forecast_and_what_happened_stay_in_the_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observed, "WARM_UP", 0)
    async with asking(tmp_path) as (client, plugin):
        proxy = Journey(plugin)
        for number in range(30):
            asked = await proxy.ask(f"question {number}")
            await proxy.decided()
            await proxy.answers(asked, id=f"chatcmpl-{number}")
        await proxy.settled()
        await client.patch("/messplus/zoos/zoo", json={"revision": 0, "mode": "on"})
        await proxy.ask("and now")
        await proxy.settled()
        answer = await client.patch("/messplus/zoos/zoo", json={"revision": 1, "mode": "watch"})
    now, then = answer.json()["history"]
    assert then["forecast"]["requests"] == 30
    assert then["forecast"]["satisfaction"] is None  # nobody has judged
    assert then["happened"]["requests"] == 1
    assert now["happened"] is None
    said = command.shown(answer.json()).splitlines()
    place = next(number for number, line in enumerate(said) if line.startswith("  before: on"))
    assert said[place + 1].startswith("    forecast: satisfaction not known yet (a label_rate")
    assert said[place + 2].startswith("    happened: not judged")


def test_a_forecast_says_what_routing_would_have_saved() -> None:
    known = {"estimate": 0.5, "low": 0.4, "high": 0.6}
    forecast = {
        "satisfaction": known,
        "cost": known,
        "would_have_saved": known,
        "requests": 30,
        "called": 12,
    }
    shown = {
        "zoo": "zoo",
        "mode": "watch",
        "share": 0.1,
        "before": "litellm",
        "by": "file",
        "at": None,
        "reason": "",
        "is_returned": False,
        "history": [],
        "forecast": forecast,
        "second_answers": None,
    }
    assert command.shown(shown).splitlines()[-1] == (
        "  forecast of routing: 50.0 % (40.0 to 60.0 %) satisfied, 0.5 (0.4 to 0.6) a request, "
        "would have saved 50.0 % (40.0 to 60.0 %) of always calling the largest, before labels, "
        "from 30 requests, 12 judged"
    )

    reading = {"requests": 30, "replaced": 0.1, "cost": 0.4, "without": 0.5, "seconds": 0.25}
    (*_, last) = command.shown(shown | {"second_answers": reading}).splitlines()
    assert last.endswith(
        "12 judged; with second_answer: auto, 10.0 % of answers would be replaced, to save 20.0 % "
        "of the cost, and add 0.25 s on average"
    )


async def test_what_is_written_is_in_the_database(tmp_path: Path) -> None:
    async with asking(tmp_path) as (client, _):
        await client.patch("/messplus/zoos/zoo", json={"revision": 0, "mode": "on"})
    database = create_engine(url(tmp_path))
    found = await zoo_modes.newest(database)
    await database.dispose()
    assert (found["zoo"].mode, found["zoo"].by) == ("on", "key-1")


async def test_a_reading_that_takes_too_long_is_given_up_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(zoos, "SHOWING_SECONDS", 0.01)
    monkeypatch.setattr(observed.ObservedLog, "aside", never)
    async with asking(tmp_path) as (client, plugin):
        answer = await client.get("/messplus/zoos/zoo")
        assert plugin.counters.as_dict()["database_failures"] == 1
    assert answer.status_code == 503


def test_a_change_names_its_revision() -> None:
    assert Change.model_fields["revision"].is_required()
