"""`complete` finds an answer that is missing or cut off, and never praises one."""

import pytest

from litellm_messplus.labels.checks.check import Score
from litellm_messplus.labels.checks.shipped import CompleteCheck
from litellm_messplus.labels.source import Answer, Finish, ToolCall
from litellm_messplus.vocabulary import Failure
from tests.support.checking import GARBAGE, ended


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(""), "empty"),
        (Answer(" \n\t"), "empty"),
        (Answer("Once upon a", finish=Finish.LENGTH), "cut off by length"),
        (Answer("", finish=Finish.LENGTH), "cut off by length"),
        (Answer("half of", finish=Finish.CONTENT_FILTER), "stopped by a content filter"),
        (Answer("", finish=Finish.STOP, refusal="I cannot"), "refused"),
    ],
)
async def test_what_is_not_all_there_is_unsatisfactory(answer: Answer, reason: str) -> None:
    assert await CompleteCheck().check(ended(answer)) == Score(0.0, reason)


@pytest.mark.parametrize(
    "answer",
    [
        Answer("42", finish=Finish.STOP),
        Answer("42"),
        Answer("", (ToolCall("add", "{}"),), Finish.TOOL_CALLS),
        Answer("", others=("image_generation_call",)),
    ],
)
async def test_of_a_whole_answer_it_says_nothing(answer: Answer) -> None:
    assert await CompleteCheck().check(ended(answer)) is None


async def test_what_the_client_did_itself_is_no_fault_of_the_answer() -> None:
    cut = Answer("Once upon a", finish=Finish.LENGTH)
    assert await CompleteCheck().check(ended(cut, is_limited=True)) is None


async def test_a_limit_that_did_not_cut_the_answer_excuses_nothing() -> None:
    empty = Answer("", finish=Finish.STOP)
    assert await CompleteCheck().check(ended(empty, is_limited=True)) == Score(0.0, "empty")


@pytest.mark.parametrize("is_served", [True, False])
async def test_a_failure_is_no_verdict_on_a_model(is_served: bool) -> None:
    failed = ended(None, is_served=is_served, failure=Failure.UPSTREAM)
    assert await CompleteCheck().check(failed) is None


@pytest.mark.parametrize("text", GARBAGE, ids=lambda text: ascii(text[:8]))
async def test_garbage_is_no_failure(text: str) -> None:
    score = await CompleteCheck().check(ended(text))

    assert (score is None) == bool(text.strip())
