"""What a model said, read from LiteLLM's answer on every surface: its log event after a stream, or
what its router returns to an exploration."""

from types import SimpleNamespace
from typing import Any

import pytest

from litellm_messplus.labels.source import Answer, Finish, ToolCall
from litellm_messplus.serving.surfaces.answers import read_answer

SAID = "H\u00ebllo \U0001f600"
ADD = '{"a": 1}'


def chat(finish: str = "stop", **message: Any) -> Any:
    """As an object, which LiteLLM makes of a chat, of a stream, and of every other API's answer."""
    choice = {"finish_reason": finish, "message": SimpleNamespace(**message)}
    return SimpleNamespace(choices=[SimpleNamespace(**choice)])


def text(finish: str = "stop") -> Any:
    return SimpleNamespace(choices=[SimpleNamespace(finish_reason=finish, text=SAID)])


def messages(stop_reason: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    return {"content": list(blocks), "stop_reason": stop_reason}


def response(*items: Any, status: str = "completed", reason: str | None = None) -> Any:
    details = SimpleNamespace(reason=reason) if reason else None
    return SimpleNamespace(output=list(items), status=status, incomplete_details=details)


def message(*parts: dict[str, Any]) -> Any:
    return SimpleNamespace(type="message", content=[SimpleNamespace(**part) for part in parts])


TEXT_BLOCK = {"type": "text", "text": SAID}
WORDS = message({"type": "output_text", "text": SAID})


@pytest.mark.parametrize(
    ("answer", "finish"),
    [
        (chat(content=SAID), Finish.STOP),
        (chat("length", content=SAID), Finish.LENGTH),
        (chat("content_filter", content=SAID), Finish.CONTENT_FILTER),
        (chat("eos", content=SAID), Finish.OTHER),
        (text(), Finish.STOP),
        (text("length"), Finish.LENGTH),
        (messages("end_turn", TEXT_BLOCK), Finish.STOP),
        (messages("stop_sequence", TEXT_BLOCK), Finish.STOP),
        (messages("max_tokens", TEXT_BLOCK), Finish.LENGTH),
        (messages("refusal", TEXT_BLOCK), Finish.CONTENT_FILTER),
        (response(WORDS), Finish.STOP),
        (response(WORDS, status="incomplete", reason="max_output_tokens"), Finish.LENGTH),
        (response(WORDS, status="incomplete", reason="content_filter"), Finish.CONTENT_FILTER),
        (SimpleNamespace(response=response(WORDS)), Finish.STOP),
        ({"type": "response.completed", "response": response(WORDS)}, Finish.STOP),
    ],
)
def test_words_and_why_they_ended(answer: object, finish: Finish) -> None:
    assert read_answer(answer) == Answer(SAID, finish=finish)


CALL = SimpleNamespace(name="add", arguments=ADD)
BLOCK = {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 1}}
ITEM = SimpleNamespace(type="function_call", name="add", arguments=ADD)


@pytest.mark.parametrize(
    "answer",
    [
        chat("tool_calls", content=None, tool_calls=[SimpleNamespace(function=CALL)] * 2),
        messages("tool_use", BLOCK, BLOCK),
        response(ITEM, ITEM),
    ],
)
def test_tool_calls(answer: object) -> None:
    read = read_answer(answer)

    assert read.text == ""
    assert read.tool_calls == (ToolCall("add", ADD), ToolCall("add", ADD))
    assert read.others == ()


def test_a_call_of_a_function_as_chat_used_to_spell_it() -> None:
    assert read_answer(chat("function_call", content=None, function_call=CALL)) == Answer(
        "", (ToolCall("add", ADD),), Finish.TOOL_CALLS
    )


@pytest.mark.parametrize(
    "answer",
    [
        chat(tool_calls=[{"type": "custom", "custom": {"name": "run", "input": "ls"}}]),
        response(SimpleNamespace(type="custom_tool_call", name="run", input="ls")),
    ],
)
def test_a_call_of_a_tool_that_takes_free_text(answer: object) -> None:
    assert read_answer(answer).tool_calls == (ToolCall("run", "ls"),)


@pytest.mark.parametrize(
    "answer",
    [
        chat(content=None, refusal="I cannot"),
        chat(content=None, provider_specific_fields={"refusal": "I cannot"}),
        response(message({"type": "refusal", "refusal": "I cannot"})),
    ],
)
def test_a_refusal(answer: object) -> None:
    assert read_answer(answer) == Answer("", finish=Finish.STOP, refusal="I cannot")


@pytest.mark.parametrize(
    "answer",
    [
        chat(content=SAID, reasoning_content="hm"),
        messages("end_turn", {"type": "thinking", "thinking": "hm"}, TEXT_BLOCK),
        response(
            SimpleNamespace(type="reasoning", content=[{"type": "reasoning_text", "text": "hm"}]),
            WORDS,
        ),
    ],
)
def test_what_a_model_thinks_is_not_what_it_says(answer: object) -> None:
    assert read_answer(answer) == Answer(SAID, finish=Finish.STOP)


@pytest.mark.parametrize(
    ("answer", "other"),
    [
        (chat(content=None, images=[{"type": "image_url"}]), "images"),
        (chat(content=None, audio={"id": "audio_1"}), "audio"),
        (response(SimpleNamespace(type="image_generation_call")), "image_generation_call"),
        (messages("end_turn", {"type": "server_tool_use", "name": "x"}), "server_tool_use"),
    ],
)
def test_what_is_neither_words_nor_a_call_is_named(answer: object, other: str) -> None:
    read = read_answer(answer)

    assert read.others == (other,)
    assert read.tool_calls == ()


@pytest.mark.parametrize(
    "answer",
    [None, {}, 7, "x", {"choices": []}, {"choices": [None]}, {"output": [None]}, {"content": [7]}],
    ids=repr,
)
def test_what_has_no_answer_is_an_empty_one(answer: object) -> None:
    assert read_answer(answer) == Answer("")


def test_arguments_that_are_no_json_are_read_all_the_same() -> None:
    odd = {**BLOCK, "input": {"a": object}}

    (call,) = read_answer(messages("tool_use", odd)).tool_calls
    assert call.name == "add"
