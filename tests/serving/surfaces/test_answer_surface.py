"""What an answer looks like is read on every surface, as fast for a long one."""

import time
from typing import Any

import pytest

from litellm_messplus.core.answer import ANSWER_NUMBERS, Answer, AnswerSurface, read_answer
from litellm_messplus.serving.surfaces.surface import (
    ANTHROPIC_MESSAGES,
    CHAT_COMPLETIONS,
    RESPONSES,
    TEXT_COMPLETIONS,
    Surface,
)

WORDS = "So the answer is 4."


def number(surface: AnswerSurface, name: str) -> float:
    return float(surface[ANSWER_NUMBERS.index(name)])


def chat(finish: str, **message: Any) -> dict[str, Any]:
    return {"choices": [{"finish_reason": finish, "message": message}]}


def text(finish: str) -> dict[str, Any]:
    return {"choices": [{"finish_reason": finish, "text": WORDS}]}


def message(stop_reason: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": WORDS}, *blocks], "stop_reason": stop_reason}


def response(*items: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    said = {"type": "message", "content": [{"type": "output_text", "text": WORDS}]}
    return {"output": [said, *items], "incomplete_details": reason and {"reason": reason}}


CALLED = {"function": {"name": "add", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("surface", "answer", "expected"),
    [
        (CHAT_COMPLETIONS, chat("stop", content=WORDS), Answer(WORDS)),
        (CHAT_COMPLETIONS, chat("length", content=WORDS), Answer(WORDS, was_cut=True)),
        (CHAT_COMPLETIONS, chat("tool_calls", tool_calls=[CALLED] * 2), Answer("", tools=2)),
        (CHAT_COMPLETIONS, chat("stop", content=None, refusal="I can't."), Answer("I can't.")),
        (TEXT_COMPLETIONS, text("stop"), Answer(WORDS)),
        (TEXT_COMPLETIONS, text("length"), Answer(WORDS, was_cut=True)),
        (ANTHROPIC_MESSAGES, message("end_turn"), Answer(WORDS)),
        (ANTHROPIC_MESSAGES, message("max_tokens"), Answer(WORDS, was_cut=True)),
        (
            *(ANTHROPIC_MESSAGES, message("tool_use", {"type": "tool_use", "input": {}})),
            Answer(WORDS, tools=1),
        ),
        (RESPONSES, response(), Answer(WORDS)),
        (RESPONSES, response(reason="max_output_tokens"), Answer(WORDS, was_cut=True)),
        (RESPONSES, response({"type": "function_call", "arguments": ""}), Answer(WORDS, tools=1)),
        (RESPONSES, {"type": "response.completed", "response": response()}, Answer(WORDS)),
    ],
)
def test_its_text_its_tools_its_cut(surface: Surface, answer: object, expected: Answer) -> None:
    assert surface.looks(answer).tobytes() == read_answer(expected).tobytes()


def test_an_answer_with_reasoning_is_read_without_it() -> None:
    thought = {"type": "thinking", "thinking": "Wait, however"}
    assert number(ANTHROPIC_MESSAGES.looks(message("end_turn", thought)), "hedges") == 0.0


def test_a_long_answer_takes_as_long_as_a_short_one() -> None:
    """At most 0.1 ms on a free machine; the test allows a busy one."""
    answer = chat("stop", content="However, 1 + 1 = 2.\n" * 500_000)
    best = min(_seconds(answer) for _ in range(50))
    assert best < 0.001


def _seconds(answer: object) -> float:
    started = time.perf_counter()
    CHAT_COMPLETIONS.looks(answer)
    return time.perf_counter() - started
