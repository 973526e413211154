"""What asking a judge costs is expected by what it reads, before it is asked."""

import pytest

from litellm_messplus.costs.price import Price
from litellm_messplus.labels.judge.asking import REST, JudgeCost
from litellm_messplus.labels.judge.prompts import CONVERSATION_CHARACTERS
from litellm_messplus.labels.source import JudgedRequest
from tests.labels.judging import Bench, ScriptedJudge, call, idle
from tests.support.virtual_time import in_virtual_time

PRICE = Price(prompt=1e-5, completion=5e-5)
FIRST_REPLY = 100 * 5e-5
"""Dollars of a reply before any came: a hundred tokens."""


def expected(prompt: str) -> float:
    found = JudgeCost(PRICE).of_request(prompt)
    assert found is not None
    return found


def test_a_request_is_priced_by_its_prompt() -> None:
    assert expected("word" * 1000) == pytest.approx(1e-5 * (4000 + REST) / 4 + FIRST_REPLY)


def test_a_judge_reads_no_more_of_a_prompt_than_it_is_shown() -> None:
    most = "x" * CONVERSATION_CHARACTERS
    assert expected(most * 10) == pytest.approx(expected(most))


def test_scripts_with_more_tokens_a_character_cost_more() -> None:
    """A Chinese character is a token or so, an English one a quarter."""
    assert expected("\u4e2d" * 10_000) > 2.0 * expected("x" * 10_000)


def test_a_surrogate_that_no_text_has_does_no_harm() -> None:
    assert expected("\ud83d") > 0.0


def test_what_a_judge_is_without_a_price_is_unknown() -> None:
    assert JudgeCost().of_request("hi") is None
    assert JudgeCost().of_messages([{"content": "hi"}]) is None


def test_tokens_answers_and_replies_are_learned() -> None:
    cost = JudgeCost(PRICE)
    for _ in range(50):
        cost.learn("x" * 400, [{"content": "x" * 6400}], 3200, 1000)

    assert cost.of_messages([{"content": "x" * 100}]) == pytest.approx(50 * 1e-5 + 1000 * 5e-5)
    assert cost.of_request("x" * 400) == pytest.approx(3200 * 1e-5 + 1000 * 5e-5)


def test_a_reply_without_tokens_teaches_nothing_of_them() -> None:
    cost = JudgeCost(PRICE)
    cost.learn("", [{"content": "x" * REST}], None, None)
    assert cost.of_messages([{"content": "x" * 400}]) == pytest.approx(100 * 1e-5 + FIRST_REPLY)


@in_virtual_time
async def test_what_is_expected_to_pass_the_budget_is_not_graded() -> None:
    """Though some of it is left: the answers are long."""
    bench = Bench(settings={"budget_per_day": 0.1}, cost=JudgeCost(PRICE)).learn()
    bench.judge.ended(call("long", text="good " * 10_000))
    bench.judge.ended(call("short"))
    await idle()

    assert list(bench.verdicts) == ["short.0"]
    assert bench.counts["judge_over_budget"] == 1


@in_virtual_time
async def test_gradings_under_way_are_paid_before_they_are_charged() -> None:
    one = expected("be brief\nwhat is 6 times 7?")
    settings = {"budget_per_day": 1.2 * one, "concurrent": 8}
    bench = Bench(ScriptedJudge(seconds=5.0), settings, cost=JudgeCost(PRICE)).learn()
    for number in range(8):
        bench.judge.ended(call(f"r{number}"))
    await idle()

    assert len(bench.scripted.prompts) == 1


@in_virtual_time
async def test_nothing_is_graded_that_is_not_paid() -> None:
    asked: list[tuple[JudgedRequest, float]] = []

    def is_paid(request: JudgedRequest, dollars: float) -> bool:
        asked.append((request, dollars))
        return False

    bench = Bench(cost=JudgeCost(PRICE)).learn()
    bench.judge.is_paid = is_paid
    bench.judge.ended(call("r1"))
    await idle()

    ((request, dollars),) = asked
    assert request == call("r1").request
    assert 0.0 < dollars < 2.0 * expected(request.conversation.text)
    assert not bench.findings
    assert bench.counts["judge_over_budget"] == 1
