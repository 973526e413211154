"""A zoo that suffers returns by itself: once, for all workers."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from litellm_messplus.status.alerts import AlertKind
from litellm_messplus.store import observed, zoo_modes
from litellm_messplus.store.zoo_modes import WAY_BACK
from litellm_messplus.switching.modes import Mode
from tests.support.in_process import brain_of
from tests.support.journey import BROKEN, Journey, journey

ON = {"mode": "on", "before": "openai/large"}
GOLD = {"service_levels": {"gold": {"alpha": 0.8}}}
CANARY = {**ON, "mode": "canary", "share": 0.5, "watch": {"sample": 0.0}}


async def serve(
    proxy: Journey,
    count: int,
    *,
    prefix: str = "r",
    keys: int = 1,
    error: Exception | None = BROKEN,
    **asking: Any,
) -> None:
    """So many requests of so many keys, of which those that are routed end with the error; what
    they are ``asking`` for is in their metadata."""
    for number in range(count):
        key = f"{prefix} {number % keys}"
        whose = {"user_api_key_hash": key, **asking}
        prompt, call_id = f"question {prefix} {number}", f"{prefix}{number}"
        asked = await proxy.ask(prompt, call_id=call_id, metadata=whose)
        await proxy.decided()
        opened = proxy.plugin.parts.served.open_requests.of_hook(asked.arguments, asked.arguments)
        assert opened is not None
        if opened.record.trial.arm == "routed" and error is not None:
            await proxy.fails(asked, error)
        else:
            await proxy.answers(asked, id=f"chatcmpl-{number}")
    await proxy.settled()


def mode_of(proxy: Journey) -> Mode:
    return brain_of(proxy.plugin.parts).modes.now["zoo"].mode


def why(proxy: Journey) -> str:
    """What the newest change of the mode gives as its reason."""
    return brain_of(proxy.plugin.parts).modes.rows["zoo"].reason


async def looks(proxy: Journey) -> None:
    """The way back looks at the outcomes, as it does every few seconds."""
    await brain_of(proxy.plugin.parts).way_back.look()


async def returns(proxy: Journey) -> None:
    """The way back returns the zoo, whatever the outcomes are."""
    parts = proxy.plugin.parts
    await brain_of(parts).way_back._return("zoo", brain_of(parts).modes.now["zoo"], "bad")


async def test_a_zoo_that_is_on_is_compared_with_what_is_held_out(tmp_path: Path) -> None:
    zoo = {**ON, "holdout": 0.3, "watch": {"sample": 0.0}}
    async with journey(tmp_path, zoo) as proxy:
        await serve(proxy, 320)
        await looks(proxy)
        modes = brain_of(proxy.plugin.parts).modes
        mode, row = modes.now["zoo"], modes.rows["zoo"]
        assert mode.mode is Mode.WATCH
        assert row.reason.startswith("errors: 100.0% of routed requests, 0.0% before")
        # Resumed, it holds the same conversations out.
        wanted = replace(mode, mode=Mode.ON)
        await brain_of(proxy.plugin.parts).changes.change("zoo", wanted, "key", "mended")
        assert brain_of(proxy.plugin.parts).modes.now["zoo"].holdout == 0.3


async def test_a_failing_canary_returns(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with journey(tmp_path, CANARY) as proxy:
        await serve(proxy, 240)
        with caplog.at_level(logging.WARNING):
            await looks(proxy)
        modes = brain_of(proxy.plugin.parts).modes
        mode, row = modes.now["zoo"], modes.rows["zoo"]
        assert mode.mode is Mode.WATCH
        assert row.by == WAY_BACK
        assert row.reason.startswith("errors: 100.0% of routed requests, 0.0% before")
        assert proxy.counters["zoos_returned"] == 1
        assert "resume with: messplus zoo zoo --mode canary" in caplog.text
        assert row.happened is not None
        assert row.happened["requests"] > 50
        assert row.forecast is None, "too few were decided aside"
        (alert,) = [
            each
            for each in (await brain_of(proxy.plugin.parts).watch.read())["alerts"]
            if each["kind"] == AlertKind.RETURNED
        ]
        assert alert["zoo"] == "zoo"
        await looks(proxy)  # it has returned: nothing more happens
        assert proxy.counters["zoos_returned"] == 1


async def test_requests_that_were_granted_a_level_are_seen_too(tmp_path: Path) -> None:
    """All of them ask, so none is in the stream of its level."""
    zoo = {**ON, **GOLD, "holdout": 0.3, "watch": {"sample": 0.0}, "callers_may": ["gold"]}
    async with journey(tmp_path, zoo) as proxy:
        await serve(proxy, 320, messplus_service_level="gold")
        await looks(proxy)
        assert brain_of(proxy.plugin.parts).modes.rows["zoo"].happened is not None
        assert why(proxy).startswith("errors: 100.0% of routed requests, 0.0% before")


async def test_what_was_forecast_is_held_against_what_happened_before_it_returned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observed, "WARM_UP", 0)
    async with journey(tmp_path, CANARY) as proxy:
        await serve(proxy, 240)
        await looks(proxy)
        returned = brain_of(proxy.plugin.parts).modes.rows["zoo"]
    assert returned.forecast is not None
    assert returned.happened is not None
    assert returned.forecast["requests"] + returned.happened["requests"] == 240


async def test_a_zoo_returns_though_its_forecast_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unreadable(*_: object) -> None:
        raise OSError("away")

    async with journey(tmp_path, CANARY) as proxy:
        await serve(proxy, 240)
        monkeypatch.setattr(observed.ObservedLog, "aside", unreadable)
        await looks(proxy)
        assert mode_of(proxy) is Mode.WATCH
        assert brain_of(proxy.plugin.parts).modes.rows["zoo"].forecast is None
        assert proxy.counters["forecasts_unread"] == 1


async def test_it_stays_returned_until_somebody_resumes(tmp_path: Path) -> None:
    async with journey(tmp_path, CANARY) as proxy:
        await serve(proxy, 240)
        await looks(proxy)
        await brain_of(proxy.plugin.parts).changes.look()
        now = brain_of(proxy.plugin.parts).modes.now["zoo"]
        assert now.mode is Mode.WATCH
        resumed = type(now)(Mode.CANARY, now.share, now.before, now.revision)
        await brain_of(proxy.plugin.parts).changes.change("zoo", resumed, "key", "repaired")
        await looks(proxy)  # what came before counts no more
        assert mode_of(proxy) is Mode.CANARY
        status = await brain_of(proxy.plugin.parts).watch.read()
    assert AlertKind.RETURNED not in {each["kind"] for each in status["alerts"]}


async def test_one_keys_failures_return_nothing_and_those_of_all_do(tmp_path: Path) -> None:
    async with journey(tmp_path, CANARY) as proxy:
        await serve(proxy, 240, prefix="honest", keys=12, error=None)
        await serve(proxy, 180, prefix="hostile")
        await looks(proxy)
        assert mode_of(proxy) is Mode.CANARY
        await serve(proxy, 180, prefix="honest again", keys=12)
        await looks(proxy)
        assert mode_of(proxy) is Mode.WATCH
        assert "(keys: 13 of 25)" in why(proxy)


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_refused_requests_return_nothing(tmp_path: Path, status: int) -> None:
    """Though their key is the only one."""
    refused = RuntimeError("this request cannot be read")
    refused.status_code = status  # type: ignore[attr-defined]
    async with journey(tmp_path, CANARY) as proxy:
        await serve(proxy, 240, error=refused)
        await looks(proxy)
        assert mode_of(proxy) is Mode.CANARY


async def test_a_zoo_without_a_way_back_stays_on(tmp_path: Path) -> None:
    async with journey(tmp_path, {"mode": "on"}) as proxy:
        await serve(proxy, 240)
        await looks(proxy)
        assert mode_of(proxy) is Mode.ON


async def test_of_two_workers_one_returns_the_zoo(tmp_path: Path) -> None:
    async with (
        journey(tmp_path, CANARY) as one,
        journey(tmp_path, CANARY) as two,
    ):
        await serve(one, 240)
        for each in (one, two):
            await returns(each)
        returned = [each.counters.get("zoos_returned", 0) for each in (one, two)]
        rows = await zoo_modes.history(brain_of(one.plugin.parts).database, "zoo", 10)
    assert sorted(returned) == [0, 1]
    assert len(rows) == 1
