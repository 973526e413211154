"""While a judge is down it is asked seldom; what waits is caught up, or left out by rule.

Time is virtual: the pauses are the real ones, and pass at once."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import pytest

from litellm_messplus.labels.judge.asking import Reply
from litellm_messplus.labels.judge.judge import LONGEST_PAUSE_SECONDS, Availability
from litellm_messplus.runtime.vocabulary import GradingStatus
from tests.labels.judging import Bench, ScriptedJudge, call, honest
from tests.support.virtual_time import in_virtual_time

MINUTES = 60.0


def down_for(seconds: float) -> Callable[[Sequence[Mapping[str, str]]], Reply]:
    """A judge that is unreachable for so long from the first time it is asked."""
    begun: list[float] = []

    def script(messages: Sequence[Mapping[str, str]]) -> Reply:
        now = asyncio.get_running_loop().time()
        begun.append(now)
        if now - begun[0] < seconds:
            raise ConnectionError("nobody there")
        return honest(messages)

    return script


async def traffic(bench: Bench, requests: int, every_seconds: float) -> None:
    for request in range(requests):
        bench.judge.ended(call(f"r{request}"))
        await asyncio.sleep(every_seconds)


@in_virtual_time
async def test_an_outage_of_ten_minutes_loses_no_request() -> None:
    bench = Bench(ScriptedJudge(down_for(10 * MINUTES), seconds=0.5)).learn()
    await traffic(bench, 700, every_seconds=1.0)
    await asyncio.sleep(15 * MINUTES)

    assert bench.verdicts == {f"r{number}.0": 1.0 for number in range(700)}
    assert set(bench.counts) == {"judge_failures"}
    assert bench.judge.waiting == 0


@in_virtual_time
async def test_during_an_outage_one_probe_at_a_time_is_made_and_ever_fewer() -> None:
    bench = Bench(ScriptedJudge(down_for(1e9), seconds=5.0), {"concurrent": 8}).learn()
    await traffic(bench, 600, every_seconds=1.0)

    first_failure = bench.scripted.times[0] + 5.0
    probes = [at for at in bench.scripted.times if at > first_failure + 5.0]
    pauses = [later - earlier for earlier, later in pairwise(probes)]
    assert all(pause > 5.0 for pause in pauses)
    assert max(pauses) <= LONGEST_PAUSE_SECONDS + 5.0
    assert len(probes) < 40
    ended = [grading for grading in bench.gradings if "nobody there" in (grading.error or "")]
    assert bench.counts["judge_failures"] == len(ended) > 8
    assert {grading.status for grading in bench.gradings} == {GradingStatus.FAILURE}


@in_virtual_time
async def test_beyond_patience_requests_are_left_out_and_counted_and_the_rest_is_graded() -> None:
    settings = {"patience_seconds": 5 * MINUTES}
    bench = Bench(ScriptedJudge(down_for(20 * MINUTES)), settings).learn()
    await traffic(bench, 40 * 60, every_seconds=1.0)
    await asyncio.sleep(10 * MINUTES)

    assert len(bench.findings) + bench.counts["judge_left_out"] == 40 * 60
    assert 14 * 60 < bench.counts["judge_left_out"] < 21 * 60
    assert "r2399.0" in bench.verdicts
    assert bench.judge.waiting == 0


@in_virtual_time
async def test_in_an_endless_outage_those_without_time_make_room() -> None:
    settings = {"patience_seconds": 60.0, "most_waiting": 100}
    bench = Bench(ScriptedJudge(down_for(1e9)), settings).learn()
    for request in range(3000):
        bench.judge.ended(call(f"r{request}"))
        # One that is being tried is on its way back into the queue.
        assert bench.judge.waiting <= 102
        await asyncio.sleep(0.5)

    counts = bench.counts
    assert counts["judge_left_out"] > 1000  # room was made
    assert counts["judge_left_out"] + counts["judge_queue_full"] + bench.judge.waiting >= 2998


@in_virtual_time
async def test_a_timeout_is_a_failure_that_is_tried_again() -> None:
    judge = ScriptedJudge(seconds=100.0)
    bench = Bench(judge, {"timeout_seconds": 10.0, "concurrent": 1}).learn()
    bench.judge.ended(call())
    await asyncio.sleep(10.5)
    assert [grading.status for grading in bench.gradings] == [GradingStatus.FAILURE]
    judge.seconds = 1.0
    await asyncio.sleep(60.0)

    assert bench.verdicts == {"r1.0": 1.0}
    assert bench.counts == {"judge_failures": 1}


@in_virtual_time
async def test_a_request_that_always_fails_holds_up_no_other() -> None:
    def poison(messages: Sequence[Mapping[str, str]]) -> Reply:
        if "poison" in messages[-1]["content"]:
            raise TimeoutError
        return honest(messages)

    bench = Bench(ScriptedJudge(poison), {"concurrent": 1}).learn()
    bench.judge.ended(call("bad", text="poison"))
    await traffic(bench, 60, every_seconds=1.0)
    await asyncio.sleep(60 * MINUTES)

    assert bench.verdicts == {f"r{number}.0": 1.0 for number in range(60)}
    assert bench.counts["judge_left_out"] == 1


@pytest.mark.parametrize("jitter", [0.0, 0.5, 0.999])
@in_virtual_time
async def test_pauses_double_to_the_longest_with_jitter(jitter: float) -> None:
    availability = Availability(lambda: jitter)
    loop = asyncio.get_running_loop()
    pauses = []
    for _ in range(50):
        failed_at = loop.time()
        availability.failed()
        async with availability.turn():
            pauses.append(loop.time() - failed_at)

    whole = [min(LONGEST_PAUSE_SECONDS, 2.0**number) for number in range(50)]
    assert pauses == pytest.approx([pause * (1.0 - 0.5 * jitter) for pause in whole])


@in_virtual_time
async def test_after_one_answer_all_go_on_together() -> None:
    availability = Availability()
    availability.failed()
    inside = most = 0

    async def work() -> None:
        nonlocal inside, most
        async with availability.turn():
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(1.0)
            availability.succeeded()
            inside -= 1

    first = asyncio.create_task(work())
    others = [asyncio.create_task(work()) for _ in range(4)]
    await first
    alone = most
    await asyncio.gather(*others)

    assert (alone, most) == (1, 4)
