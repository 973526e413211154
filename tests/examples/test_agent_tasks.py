"""The tasks and tools of `examples/agent`: right answers, worked out and checked."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.agent.loop import Message, attempt
from examples.agent.tasks import Task, generate, generate_training, is_solved
from examples.agent.tools import CALCULATE, LONGEST, PRICE, UNKNOWN, calculate
from examples.agent.train import CHARACTERS, CHAT_TEMPLATE, transcript
from examples.tiny_zoo.tool_calls import Tool, read_call
from examples.tiny_zoo.training import build_tokenizer

PRICES = {"figs": 27, "pears": 18}
COST = Task({"figs": 3, "pears": 4}, None, PRICES)
CHANGE = Task({"figs": 3}, 100, PRICES)
TOOLS = [Tool.model_validate(PRICE), Tool.model_validate(CALCULATE)]


def test_a_question_has_the_answer_of_its_shop() -> None:
    assert COST.question == "cost of 3 figs and 4 pears?"
    assert (COST.expression, COST.answer) == ("3*27+4*18", "153")
    assert CHANGE.question == "change from 100 for 3 figs?"
    assert (CHANGE.expression, CHANGE.answer) == ("100-3*27", "19")
    assert is_solved(CHANGE, " 19\n")
    assert not is_solved(CHANGE, "")


def test_no_question_is_both_trained_on_and_asked() -> None:
    asked = {task.question for task in generate(500, seed=0)}

    assert asked.isdisjoint(task.question for task in generate_training(5_000, seed=0))
    assert {len(task.wanted) for task in generate_training(500, seed=0, hardest=2)} == {1, 2}


@given(st.lists(st.integers(0, 999), min_size=1, max_size=6), st.data())
def test_the_calculator_is_right(numbers: list[int], data: st.DataObject) -> None:
    signs = [data.draw(st.sampled_from("+-*")) for _ in numbers[1:]]
    written = str(numbers[0]) + "".join(
        sign + str(number) for sign, number in zip(signs, numbers[1:], strict=True)
    )

    assert calculate(written) == str(eval(written))


@pytest.mark.parametrize(
    "expression",
    [
        *("", "3*", "figs", "2**9", "1/0", "9.5", "True", "1,1", "08", "\0"),
        *("__import__('os')", "(lambda: 1)()", "1" + "+1" * LONGEST),
    ],
)
def test_the_calculator_takes_nothing_but_arithmetic(expression: str) -> None:
    assert calculate(expression) == UNKNOWN


def said(text: str) -> Message:
    """An assistant's message of that text, as the server would send it."""
    call = read_call(text, TOOLS)
    if call is None:
        return {"role": "assistant", "content": text}
    return {"role": "assistant", "tool_calls": [call]}


def test_the_agent_runs_the_tools_and_answers() -> None:
    script = iter(["price(figs)", "price(pears)", "calculate(3*27+4*18)", "153"])
    seen: list[Message] = []

    def ask(messages: list[Message]) -> Message:
        seen[:] = messages
        return said(next(script))

    assert attempt(COST, ask) == "153"
    results = [message for message in seen if message["role"] == "tool"]
    assert [message["content"] for message in results] == ["27", "18", "153"]
    calls = [call["id"] for message in seen for call in message.get("tool_calls", [])]
    assert [message["tool_call_id"] for message in results] == calls


def test_training_reads_what_the_chat_template_writes() -> None:
    """A model that is asked through the server sees the text that it has learned to go on from."""
    tokenizer = build_tokenizer(CHARACTERS, CHAT_TEMPLATE)
    for seed in range(40):
        segments = transcript(COST, random.Random(seed))
        tools = TOOLS if segments[0].text.startswith("price,calculate:") else TOOLS[:1]
        messages: list[Message] = [{"role": "user", "content": COST.question}]
        for place, segment in enumerate(segments):
            if place % 2:
                message = said(segment.text.removesuffix("</s>"))
                for call in message.get("tool_calls", []):
                    call["function"]["arguments"] = json.loads(call["function"]["arguments"])
                messages.append(message)
                continue
            if place:
                result = segment.text.removeprefix("<").removesuffix(">")
                messages.append({"role": "tool", "content": result})
            prompt = tokenizer.apply_chat_template(
                messages, tools=[tool.model_dump() for tool in tools], tokenize=False
            )
            assert prompt == "".join(before.text for before in segments[: place + 1])
