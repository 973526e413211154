"""Whether LiteLLM serves what the router leaves to it, and what is tried when it cannot."""

import time
from pathlib import Path
from typing import Any

from litellm_messplus.status.alerts import AlertKind
from litellm_messplus.status.build import status_of
from litellm_messplus.store.tables import calls, outcomes
from tests.support.in_process import url, written
from tests.support.journey import Journey, RoutedRequest, journey, live

ZOO = [live("small", 1e-7), live("twin", 1e-7), live("large", 1e-6)]
ZOO[1]["litellm_params"]["model"] = ZOO[0]["litellm_params"]["model"]


def other_than(asked: RoutedRequest) -> str:
    return "large" if "large" not in asked.ids else "small"


async def test_another_model_than_chosen_is_counted_and_shown(tmp_path: Path) -> None:
    async with journey(tmp_path, {}, ZOO) as proxy:
        for number in range(40):
            asked = await proxy.ask(f"question {number}")
            served = other_than(asked) if number % 2 else asked.ids[0]
            await proxy.answers(asked, served, endTime=time.time())
        await proxy.settled()
        assert proxy.counters == {"served_not_chosen": 20}
    status = await status_of(url(tmp_path))
    (alert, *_) = status["alerts"]
    assert alert["kind"] == AlertKind.SERVED_NOT_CHOSEN
    assert "20 of the 40 requests of the last 5 minutes" in alert["message"]
    (level,) = status["levels"]
    assert level["overall"]["savings"] is None
    rows = await written(tmp_path, calls)
    assert sum(row.served_not_chosen for row in rows if row.role == "served") == 20
    compared = [row for row in await written(tmp_path, outcomes) if row.cost_largest is not None]
    assert len(compared) == 20


async def test_one_in_a_hundred_is_no_alarm(tmp_path: Path) -> None:
    async with journey(tmp_path, {}, ZOO) as proxy:
        for number in range(100):
            asked = await proxy.ask(f"question {number}")
            served = asked.ids[0] if number else other_than(asked)
            await proxy.answers(asked, served, endTime=time.time())
        await proxy.settled()
        assert proxy.counters == {"served_not_chosen": 1}
    status = await status_of(url(tmp_path))
    assert AlertKind.SERVED_NOT_CHOSEN not in {alert["kind"] for alert in status["alerts"]}
    assert status["levels"][0]["overall"]["savings"] is not None


async def served_by(proxy: Journey, identity: str, **payload: Any) -> None:
    await proxy.answers(await proxy.ask(), identity, **payload)
    await proxy.settled()


async def test_a_replica_a_retry_a_fallback_and_a_cached_answer_are_none(tmp_path: Path) -> None:
    async with journey(tmp_path, {"largest": "openai/small"}, ZOO) as proxy:
        asked = await proxy.ask()
        assert asked.ids == ["small", "twin"]
        await proxy.answers(asked, "twin")
        await served_by(proxy, "elsewhere")
        await served_by(proxy, "large", cache_hit=True)
        asked = await proxy.ask()
        for failed in ("small", "twin"):
            again = await proxy.ask(arguments=asked.failed_at(failed))
        assert again.ids == ["large"]
        await proxy.answers(again, "large")
        await proxy.settled()
        assert "served_not_chosen" not in proxy.counters


async def test_what_litellm_could_not_call_is_passed_over(tmp_path: Path) -> None:
    async with journey(tmp_path, {"largest": "openai/small"}, ZOO) as proxy:
        asked = await proxy.ask()
        assert asked.ids == ["small", "twin"]
        again = await proxy.ask(arguments=asked.arguments)  # the same attempt, asked twice
        assert again.ids == ["small", "twin"]
        again = await proxy.ask(arguments=asked.not_called())  # both at their limit of rate, say
        assert again.ids == ["large"]
        await proxy.answers(again, "large")
        await proxy.settled()
        assert proxy.counters == {}
