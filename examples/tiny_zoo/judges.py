"""Judges of the tiny zoo's server, for the judge of `messplus`: one scripted, one a real model.

They read the prompt that `litellm_messplus.labels.judge` writes: blocks between a line
``<mark NAME>`` and a line ``</mark NAME>``, of which one is the conversation and each other one an
answer. They reply as its schema asks.
"""

import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from examples.tiny_zoo.generation import (
    ChatRequest,
    Generation,
    Message,
    Sampling,
    TinyModel,
    bad_request,
)
from examples.tiny_zoo.tasks import solve

FALSE_SATISFIED = 0.10
"""How often the scripted judge calls a wrong answer satisfactory."""
FALSE_UNSATISFIED = 0.05
"""How often it calls a right one unsatisfactory."""

_BLOCK = re.compile(r"^<(\w+) (\w+)>\n(.*?)\n</\1 \2>$", re.DOTALL | re.MULTILINE)
_LAST_QUESTION = re.compile(r".*^\[user\]\n(.*)", re.DOTALL | re.MULTILINE)

COMPARING = '"better"'
"""In the instructions of a comparison: the key of its reply."""

Grade = tuple[bool, str]
"""Whether an answer satisfies, and the reason."""
Judge = Callable[[str, Sequence[str]], list[Grade]]
"""Grades the answers to a task. Raises RequestError for a task that it cannot judge."""


def scripted_judge(task: str, answers: Sequence[str]) -> list[Grade]:
    """Work the task out, then err at random: always alike on the same task and answer."""
    try:
        right = solve(task)
    except ValueError as error:
        raise bad_request(str(error)) from error
    return [_scripted(task, answer, answer.strip() == right) for answer in answers]


def _scripted(task: str, answer: str, is_right: bool) -> Grade:
    draw = random.Random(f"{task}\0{answer}").random()
    errs = draw < (FALSE_UNSATISFIED if is_right else FALSE_SATISFIED)
    return is_right != errs, f"scripted, by the right answer{', and in error' if errs else ''}"


class LargestJudge:
    """A judge that answers the task itself, and is satisfied with the same answer; it cannot read a
    rubric.

    So it is wrong where the model is, and never finds fault with what that model wrote.
    """

    def __init__(self, model: TinyModel) -> None:
        self._model = model

    def __call__(self, task: str, answers: Sequence[str]) -> list[Grade]:
        prompt = self._model.chat_prompt([Message(role="user", content=task)])
        own = "".join(Generation(self._model, prompt, Sampling(model="")))
        reason = f"the judge's own answer is {own.strip()}"
        return [(answer.strip() == own.strip(), reason) for answer in answers]


class Grading:
    """A judge's reply in the making, as a ``Generation`` is a model's.

    Raises RequestError for a request that is no grading. Tokens are characters, as they are for
    the models, of all that was sent and written.
    """

    def __init__(self, judge: Judge, request: ChatRequest) -> None:
        self.request = request
        self.finish_reason = "stop"
        self._judge = judge
        self._task, self._answers = read(request.messages)
        self._compares = any(COMPARING in m.text() for m in request.messages if m.role == "system")
        self._written = 0

    def __iter__(self) -> Iterator[str]:
        grades = self._judge(self._task, list(self._answers.values()))
        by_name = dict(zip(self._answers, grades, strict=True))
        reply = json.dumps(_better(by_name) if self._compares else _each(by_name))
        self._written = len(reply)
        yield reply

    def usage(self) -> dict[str, int]:
        """Count the tokens in OpenAI's form."""
        sent = sum(len(message.text()) for message in self.request.messages)
        return {
            "prompt_tokens": sent,
            "completion_tokens": self._written,
            "total_tokens": sent + self._written,
        }


def _each(grades: Mapping[str, Grade]) -> dict[str, Any]:
    """Return a verdict on each answer."""
    return {
        name: {"reason": reason, "satisfied": satisfied}
        for name, (satisfied, reason) in grades.items()
    }


def _better(grades: Mapping[str, Grade]) -> dict[str, Any]:
    """Name the only satisfactory one of two answers, or neither."""
    satisfying = [name for name, (satisfied, _) in grades.items() if satisfied]
    better = satisfying[0] if len(satisfying) == 1 else "neither"
    return {"reason": "; ".join(reason for _, reason in grades.values()), "better": better}


def read(messages: Sequence[Message]) -> tuple[str, dict[str, str]]:
    """Read the task of a grading, and the answers by their names in it.

    Raises RequestError where there is no task or no answer.
    """
    blocks = {
        name: text
        for message in messages
        if message.role == "user"
        for _, name, text in _BLOCK.findall(message.text())
    }
    question = _LAST_QUESTION.fullmatch(blocks.pop("conversation", ""))
    if question is None or not blocks:
        raise bad_request("a judge grades: send a conversation and answers to it")
    return question[1].strip(), blocks
