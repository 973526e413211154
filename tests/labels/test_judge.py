"""The judge grades a sample in the background: what it finds, what it costs, what it leaves out."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import pytest

from litellm_messplus.labels.agreement import Agreement
from litellm_messplus.labels.judge.asking import JudgeRefusedError, Reply
from litellm_messplus.labels.judge.budget import Spent
from litellm_messplus.runtime.vocabulary import GradingStatus, LabelKind
from tests.labels.judging import Bench, ScriptedJudge, call, honest, idle, shown_answers
from tests.support.virtual_time import in_virtual_time

NO_AGREEMENT = Agreement(50, 50, 50, 50)
FULL_AGREEMENT = Agreement(100, 0, 0, 100)


def today(gradings: int = 0, dollars: float = 0.0) -> Spent:
    return Spent(datetime.now(UTC).date(), gradings, dollars)


@in_virtual_time
async def test_a_request_is_graded_in_one_call_and_every_answer_gets_a_label() -> None:
    bench = Bench().learn()
    for number, text in enumerate(["good", "bad", "very good"]):
        bench.judge.ended(call("r1", number, text, calls=3))
    await idle()

    assert len(bench.scripted.prompts) == 1
    assert bench.verdicts == {"r1.0": 1.0, "r1.1": 0.0, "r1.2": 1.0}
    for finding in bench.findings:
        assert (finding.kind, finding.source) == (LabelKind.JUDGE, "judge")
        assert (finding.request_id, finding.weight) == ("r1", 1.0)
    (grading,) = bench.gradings
    assert (grading.request_id, grading.judge, grading.answers) == ("r1", "critic", 3)
    assert (grading.status, grading.cost) == (GradingStatus.GRADED, 0.01)
    assert (grading.prompt_tokens, grading.completion_tokens) == (100, 20)


@in_virtual_time
async def test_the_judge_sees_neither_names_nor_what_was_served_and_no_fixed_order() -> None:
    bench = Bench(settings={"concurrent": 1}).learn()
    for request in range(40):
        for number in range(3):
            bench.judge.ended(call(f"r{request}", number, f"text {number}", calls=3))
    await idle()

    firsts = {shown_answers(prompt)["answer_1"] for prompt in bench.scripted.prompts}
    assert firsts == {"text 0", "text 1", "text 2"}
    for prompt in bench.scripted.prompts:
        told = json.dumps(prompt)
        assert "secret-model" not in told
        assert "served" not in told
        assert "r1.0" not in told


@in_virtual_time
async def test_a_reason_is_the_comment_of_its_label() -> None:
    bench = Bench().learn()
    bench.judge.ended(call())
    await idle()

    (finding,) = bench.findings
    assert finding.comment == "because answer_1"


@in_virtual_time
async def test_only_what_is_bought_is_graded_and_its_labels_say_by_which_draw() -> None:
    bench = Bench().learn()
    for request in range(40):
        bench.judge.ended(call(f"r{request}", probability=0.25 if request % 4 else None))
    await idle()

    assert {finding.request_id for finding in bench.findings} == {
        f"r{request}" for request in range(40) if request % 4
    }
    assert {finding.probability for finding in bench.findings} == {0.25}
    assert bench.counts == {}


@in_virtual_time
async def test_nothing_is_graded_before_the_days_spending_is_known() -> None:
    bench = Bench()
    bench.judge.ended(call())
    await asyncio.sleep(100.0)
    assert bench.findings == []
    bench.learn()
    await idle()

    assert bench.verdicts == {"r1.0": 1.0}


@in_virtual_time
async def test_nonsense_gives_no_label_is_counted_and_paid() -> None:
    nonsense = ScriptedJudge(lambda messages: Reply("I like the first.", cost=0.02))
    bench = Bench(nonsense, {"budget_per_day": 0.03, "concurrent": 1}).learn()
    for request in range(3):
        bench.judge.ended(call(f"r{request}"))
    await asyncio.sleep(3600.0)

    assert bench.findings == []
    assert [grading.status for grading in bench.gradings] == [GradingStatus.NONSENSE] * 2
    assert [grading.cost for grading in bench.gradings] == [0.02, 0.02]
    assert bench.counts == {"judge_nonsense": 2, "judge_over_budget": 1}


@in_virtual_time
async def test_beyond_the_number_of_the_day_nothing_is_graded() -> None:
    bench = Bench(settings={"gradings": 5}).learn(today(gradings=3))
    for request in range(4):
        bench.judge.ended(call(f"r{request}"))
    await idle()

    assert len(bench.gradings) == len(bench.findings) == 2
    assert bench.counts == {"judge_over_budget": 2}


@in_virtual_time
async def test_what_the_log_says_was_spent_counts_against_the_dollars() -> None:
    bench = Bench(settings={"budget_per_day": 1.0}).learn(today(dollars=1.0))
    bench.judge.ended(call())
    await idle()

    assert bench.scripted.prompts == []
    assert bench.counts == {"judge_over_budget": 1}


@in_virtual_time
async def test_a_cost_that_nobody_knows_is_said_to_be_unknown() -> None:
    def unpriced(messages: Sequence[Mapping[str, str]]) -> Reply:
        return Reply(honest(messages).text)

    bench = Bench(ScriptedJudge(unpriced)).learn()
    bench.judge.ended(call())
    await idle()

    assert bench.verdicts == {"r1.0": 1.0}
    assert [grading.cost for grading in bench.gradings] == [None]
    assert bench.counts == {"judge_cost_unknown": 1}


@in_virtual_time
async def test_no_more_gradings_are_under_way_than_allowed() -> None:
    bench = Bench(ScriptedJudge(seconds=1.0), {"concurrent": 3}).learn()
    for request in range(20):
        bench.judge.ended(call(f"r{request}"))
    await asyncio.sleep(60.0)

    assert bench.scripted.most_at_once == 3
    assert len(bench.findings) == 20


@in_virtual_time
async def test_the_queue_is_bounded_whatever_comes() -> None:
    bench = Bench(ScriptedJudge(seconds=30.0), {"concurrent": 1, "most_waiting": 10}).learn()
    for request in range(100):
        bench.judge.ended(call(f"r{request}", calls=1 + request % 2))
        assert bench.judge.waiting <= 10

    assert bench.counts == {"judge_queue_full": 90}


@in_virtual_time
async def test_of_a_request_that_was_left_out_no_later_answer_is_graded_alone() -> None:
    bench = Bench(settings={"most_waiting": 1})  # nothing learned, so nothing leaves the queue
    bench.judge.ended(call("r1"))
    bench.judge.ended(call("r2", 0, calls=2))
    bench.learn()
    await idle()
    bench.judge.ended(call("r2", 1, calls=2))
    await asyncio.sleep(3600.0)

    assert bench.verdicts == {"r1.0": 1.0}
    assert bench.counts == {"judge_late_answers": 1, "judge_queue_full": 1}


@in_virtual_time
async def test_a_request_that_the_judge_refuses_is_left_out_at_once_and_holds_up_nobody() -> None:
    def too_long(messages: Sequence[Mapping[str, str]]) -> Reply:
        if "endless" in messages[-1]["content"]:
            raise JudgeRefusedError("too long")
        return honest(messages)

    bench = Bench(ScriptedJudge(too_long), {"concurrent": 1}).learn()
    bench.judge.ended(call("r1", text="endless"))
    bench.judge.ended(call("r2"))
    started = asyncio.get_running_loop().time()
    await idle()

    bench, waited = bench, bench.scripted.times[-1] - started
    assert bench.verdicts == {"r2.0": 1.0}
    assert waited == 0.0
    assert bench.counts == {"judge_failures": 1, "judge_left_out": 1}
    assert [g.status for g in bench.gradings] == [GradingStatus.FAILURE, GradingStatus.GRADED]


@in_virtual_time
async def test_labels_below_the_agreement_can_come_back(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench().learn()
    for number, agreement in enumerate([Agreement(), NO_AGREEMENT, NO_AGREEMENT, FULL_AGREEMENT]):
        bench.learn(agreement=agreement)
        bench.judge.ended(call(f"r{number}"))
        await idle()

    assert [finding.weight for finding in bench.findings] == [1.0, 0.0, 0.0, 1.0]
    told = [record.getMessage() for record in caplog.records if "agreement" in record.getMessage()]
    assert len(told) == 2
    assert "stop counting" in told[0]
    assert "count again" in told[1]


@in_virtual_time
async def test_a_stop_lets_gradings_under_way_end_and_leaves_the_rest() -> None:
    bench = Bench(ScriptedJudge(seconds=2.0), {"concurrent": 2}).learn()
    for request in range(5):
        bench.judge.ended(call(f"r{request}"))
    await idle()
    await bench.judge.close()
    bench.judge.ended(call("r9"))
    await asyncio.sleep(100.0)

    assert set(bench.verdicts) == {"r0.0", "r1.0"}
    assert len(bench.scripted.prompts) == 2


@in_virtual_time
async def test_a_stop_does_not_wait_for_a_judge_that_hangs_and_the_asking_is_logged() -> None:
    bench = Bench(ScriptedJudge(seconds=1e6), {"timeout_seconds": 1e6}).learn()
    bench.judge.ended(call())
    await idle()
    await bench.judge.close()

    assert bench.findings == []
    assert [grading.status for grading in bench.gradings] == [GradingStatus.FAILURE]
