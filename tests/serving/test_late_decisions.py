"""Decisions that miss their deadline: not followed, and the request is logged as any other."""

from pathlib import Path
from typing import Any

import pytest

from litellm_messplus.brain.feedback import Feedback, Outcome
from litellm_messplus.brain.messages import Caller
from litellm_messplus.core.engine import Engine
from litellm_messplus.labels.buying import LEAST
from litellm_messplus.store import log
from litellm_messplus.store.entries import read_entries
from litellm_messplus.store.tables import calls, labels, requests
from tests.serving.test_holds import Agent, holding
from tests.support.folding import bits
from tests.support.in_process import DEPLOYMENTS, brain_of, written
from tests.support.journey import ANSWER, LARGE, SMALL, Journey, journey

NEVER_IN_TIME = 1e-9
EXPLORING = {"policy": "paper", "c": 1e9}


USED: dict[str, Any] = {"prompt_tokens": 10, "completion_tokens": 5, "response_cost": 0.25}


async def folded(proxy: Journey) -> Engine:
    """A fresh engine that has read the whole log."""
    engine, database = proxy.engine, brain_of(proxy.plugin.parts).database
    fresh = Engine(engine._configured, engine.encoder, seed=0)
    async for entry in read_entries(database, 0, await log.head(database)):
        fresh.apply(entry)
    return fresh


async def test_litellms_own_choice_serves_and_the_log_claims_none(tmp_path: Path) -> None:
    async with journey(tmp_path, EXPLORING, deadline_seconds=NEVER_IN_TIME) as proxy:
        asked = await proxy.ask()
        found = asked.deployments
        assert all(one is own for one, own in zip(found, DEPLOYMENTS, strict=True))
        headers = await proxy.plugin.async_post_call_response_headers_hook(
            asked.arguments, None, ANSWER, None, {"model_id": "large"}
        )
        await proxy.answers(asked, "large", **USED)
        await proxy.settled()
        assert proxy.counters == {"deadlines_missed": 1}
    (row,) = await written(tmp_path, requests)
    assert headers is not None
    assert headers["x-messplus-request-id"] == row.request_id
    assert headers["x-messplus-model"] == LARGE
    assert (row.reason, row.chosen, row.arm) == ("deadline_missed", "litellm", "routed")
    assert (row.service_level, row.t) == ("default", 1)
    assert (row.is_exploration, row.exploration_calls, row.exploration_probability) == (False, 0, 0)
    assert (row.propensity, row.expected_satisfaction, row.label_probability) == (None, None, None)
    assert row.decision_seconds > 0.0
    (ended,) = await written(tmp_path, calls)  # the exploration was not started
    assert (ended.candidate, ended.status, ended.cost) == (LARGE, "success", 0.25)


async def test_its_verdict_counts_and_teaches_who_served(tmp_path: Path) -> None:
    async with journey(tmp_path, deadline_seconds=NEVER_IN_TIME) as proxy:
        asked = await proxy.ask()
        engine = proxy.engine
        assert engine._unfolded["default"] == {  # numbered, and nothing is expected of it
            next(iter(engine._unfolded["default"])): 0.0
        }
        await proxy.answers(asked, "large", **USED)
        given = Feedback(id="chatcmpl-1", satisfied=False)
        said = await brain_of(proxy.plugin.parts).feedback.accept(
            given, Caller("key", is_admin=False)
        )
        assert said.outcome is Outcome.COUNTED
        assert engine.state.requests["default"] == 1
        assert engine.state.policy.queue("default") == pytest.approx(0.8)
        predictor = engine.state.policy.predictor  # type: ignore[attr-defined]
        seen = [predictor.means[predictor.index[name]].weight for name in (SMALL, LARGE)]
        assert seen == [0.0, 1.0]
        assert bits(engine) == bits(await folded(proxy))
    (said_row,) = await written(tmp_path, labels)
    assert said_row.value == 0.0


async def test_a_request_whose_call_failed_blames_nobody(tmp_path: Path) -> None:
    async with journey(tmp_path, deadline_seconds=NEVER_IN_TIME) as proxy:
        asked = await proxy.ask()
        await proxy.fails(asked)
        await proxy.settled()
    (ended,) = await written(tmp_path, calls)
    assert (ended.status, ended.candidate) == ("failure", None)


async def test_a_retry_passes_what_failed_and_is_logged_once(tmp_path: Path) -> None:
    async with journey(tmp_path, deadline_seconds=NEVER_IN_TIME) as proxy:
        asked = await proxy.ask()
        again = await proxy.ask(arguments=asked.failed_at("large"))
        assert again.ids == ["small"]
        assert proxy.counters == {"deadlines_missed": 1}
    assert len(await written(tmp_path, requests)) == 1


class Bought:
    """In the place of a zoo's buyer: it buys the labels of every request."""

    def __init__(self) -> None:
        self.given_back: list[tuple[str, str | None]] = []

    def purchase(self, *_: Any) -> tuple[float, bool]:
        return LEAST, True

    def with_comparison(self, decision: Any, _: Any) -> Any:
        return decision

    def give_back(self, request_id: str, key: str | None) -> None:
        self.given_back.append((request_id, key))


async def test_no_labels_are_bought_and_no_money_is_kept_for_them(tmp_path: Path) -> None:
    buyer = Bought()
    async with journey(tmp_path, deadline_seconds=NEVER_IN_TIME) as proxy:
        brain_of(proxy.plugin.parts).road.decider.buyers = {"zoo": buyer}  # type: ignore[dict-item]
        await proxy.ask()
    (row,) = await written(tmp_path, requests)
    assert row.label_probability is None
    assert buyer.given_back == [(row.request_id, "key")]


async def test_a_late_decision_keeps_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with holding(tmp_path) as plugin:
        agent = Agent(plugin)
        await agent.ask(served_by="small-2")
        decider = brain_of(plugin.parts).road.decider
        late = decider.settings.model_copy(update={"deadline_seconds": NEVER_IN_TIME})
        monkeypatch.setattr(decider, "settings", late)
        for _ in range(2):  # the late one is a turn of the conversation as any other
            agent.result()
            assert await agent.ask() == "small-2"
        await brain_of(plugin.parts).journal.flush()
        assert bits(brain_of(plugin.parts).engines["zoo"]) == bits(await folded(Journey(plugin)))
    rows = (await written(tmp_path, requests))[1:]
    assert [(row.reason, row.chosen) for row in rows] == [("deadline_missed", SMALL)] * 2
    assert [(row.turn, row.hold, row.propensity) for row in rows] == [
        (2, "tool_loop", None),
        (3, "tool_loop", None),
    ]


async def test_where_nobody_is_healthy_the_request_is_refused_and_not_late(tmp_path: Path) -> None:
    async with journey(tmp_path, deadline_seconds=NEVER_IN_TIME) as proxy:
        assert (await proxy.ask(deployments=[])).deployments == []
        assert proxy.counters == {"deadlines_missed": 1}
    (row,) = await written(tmp_path, requests)
    assert row.reason == "none_healthy"
