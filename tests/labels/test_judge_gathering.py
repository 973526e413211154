"""The answers to one request are graded together, and a call that never ends holds none up."""

import asyncio

from litellm_messplus.labels.judge.asking import ToGrade
from litellm_messplus.labels.judge.judge import GATHER_SECONDS, Gatherer
from tests.labels.judging import call, idle
from tests.support.virtual_time import in_virtual_time


@in_virtual_time
async def test_a_request_is_handed_over_once_with_all_its_answers() -> None:
    ready: list[ToGrade] = []
    gatherer = Gatherer(ready.append)
    gatherer.add(call("r1", 1, "from the probe", calls=3))
    gatherer.add(call("r2", 0, "alone"))
    gatherer.add(call("r1", 0, "seen", calls=3))
    assert [each.request.request_id for each in ready] == ["r2"]
    gatherer.add(call("r1", 2, "third", calls=3))
    assert len(gatherer) == 0

    _, gathered = ready
    assert [shown.call_id for shown in gathered.answers] == ["r1.1", "r1.0", "r1.2"]
    assert [shown.answer.text for shown in gathered.answers] == ["from the probe", "seen", "third"]


@in_virtual_time
async def test_failed_calls_are_counted_as_ended_and_not_shown() -> None:
    ready: list[ToGrade] = []
    gatherer = Gatherer(ready.append)
    gatherer.add(call("r1", 1, None, calls=2))
    gatherer.add(call("r1", 0, "seen", calls=2))
    gatherer.add(call("r2", 0, None))

    (gathered,) = ready
    assert [shown.call_id for shown in gathered.answers] == ["r1.0"]


@in_virtual_time
async def test_what_has_come_in_time_does_not_wait_for_a_call_that_never_ends() -> None:
    ready: list[ToGrade] = []
    gatherer = Gatherer(ready.append)
    gatherer.add(call("r1", 0, "seen", calls=3))
    await asyncio.sleep(GATHER_SECONDS - 1.0)
    gatherer.add(call("r1", 1, "second", calls=3))
    assert ready == []
    await asyncio.sleep(1.0)
    await idle()

    (gathered,), is_done = ready, gatherer.is_done("r1")
    assert [shown.call_id for shown in gathered.answers] == ["r1.0", "r1.1"]
    assert is_done


@in_virtual_time
async def test_after_the_close_nothing_is_handed_over() -> None:
    ready: list[ToGrade] = []
    gatherer = Gatherer(ready.append)
    gatherer.add(call("r1", 0, "seen", calls=2))
    gatherer.close()
    await asyncio.sleep(2 * GATHER_SECONDS)

    assert ready == []
