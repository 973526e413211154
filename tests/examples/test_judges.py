"""The judges of the tiny zoo: what they read of a real grading, and how often they err."""

from typing import Any

import pytest

from examples.tiny_zoo.evaluate import MODELS_DIRECTORY
from examples.tiny_zoo.generation import ChatRequest, RequestError, TinyModel
from examples.tiny_zoo.judges import (
    FALSE_SATISFIED,
    FALSE_UNSATISFIED,
    Grading,
    Judge,
    LargestJudge,
    read,
    scripted_judge,
)
from examples.tiny_zoo.tasks import generate
from litellm_messplus.core.encoder import Conversation, Turn
from litellm_messplus.labels.judge.prompts import grades, messages, schema
from litellm_messplus.labels.source import Answer, JudgedRequest

TASKS = list(generate(4_000, seed=11))


def asked(text: str) -> JudgedRequest:
    return JudgedRequest(
        request_id="r1",
        zoo="tiny-zoo-judged",
        service_level="default",
        key_hash=None,
        conversation=Conversation((Turn("user", text),)),
        parameters={},
        metadata={},
    )


def request(*answers: str, prompt: str = "sort: 52 97 11") -> ChatRequest:
    """What a judge of the plugin is sent."""
    shown = [Answer(text) for text in answers]
    return ChatRequest.model_validate(
        {
            "model": "scripted-judge",
            "messages": messages("It is right.", asked(prompt), shown),
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "grades", "schema": schema(len(shown))},
            },
        }
    )


def values(judge: Judge, given: ChatRequest, answers: int) -> list[float]:
    """What the plugin reads of the reply."""
    return [grade.value for grade in grades("".join(Grading(judge, given)), answers)]


def knows(task: str, answers: Any) -> list[tuple[bool, str]]:
    """A judge that finds the right answer to the one task of this file."""
    assert task == "sort: 52 97 11"
    return [(answer == "11 52 97", "known") for answer in answers]


def test_reads_the_task_and_the_answers_in_their_order() -> None:
    task, answers = read(request("11 52 97", "97 52 11", "").messages)

    assert task == "sort: 52 97 11"
    assert list(answers.items()) == [
        ("answer_1", "11 52 97"),
        ("answer_2", "97 52 11"),
        ("answer_3", ""),
    ]


def test_the_plugin_reads_the_verdicts() -> None:
    assert values(knows, request("97", "11 52 97"), 2) == [0.0, 1.0]


def test_what_is_no_grading_is_refused() -> None:
    chat = {"model": "j", "messages": [{"role": "user", "content": "reverse: ab"}]}

    with pytest.raises(RequestError, match="a judge grades"):
        Grading(knows, ChatRequest.model_validate(chat))


@pytest.mark.parametrize(("wrong", "rate"), [(True, FALSE_SATISFIED), (False, FALSE_UNSATISFIED)])
def test_the_scripted_judge_errs_as_often_as_stated(wrong: bool, rate: float) -> None:
    errors = sum(
        scripted_judge(task.prompt, [task.answer + ("0" if wrong else "")])[0][0] is wrong
        for task in TASKS
    )

    assert errors / len(TASKS) == pytest.approx(rate, abs=0.02)


def test_the_largest_judge_goes_by_its_own_answer() -> None:
    judge = LargestJudge(TinyModel(MODELS_DIRECTORY / "tiny-large"))

    assert values(judge, request("11 52 97", "11 97 52", " 11 52 97\n"), 3) == [1.0, 0.0, 1.0]
