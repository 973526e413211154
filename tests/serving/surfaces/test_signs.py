"""What ties a prompt to the model that answered before, and what tells of trouble there."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.core.hold import Signs, Trouble
from litellm_messplus.serving.surfaces.request import IncomingRequest
from litellm_messplus.serving.surfaces.signs import LONG, RECENT_CALLS, SHORTEST, read_signs
from litellm_messplus.serving.surfaces.surface import (
    ANTHROPIC_MESSAGES,
    CHAT_COMPLETIONS,
    RESPONSES,
    Surface,
)

ASK = {"role": "user", "content": "Please fix the failing test in the parser."}


def signs(prompt: Any, surface: Surface = CHAT_COMPLETIONS, **more: Any) -> Signs:
    kwargs = {surface.prompt: prompt, **more}
    return read_signs(IncomingRequest(surface, "call-1", {}, None, kwargs))


def chat_call(number: int, arguments: str = "{}") -> dict[str, Any]:
    function = {"name": "bash", "arguments": arguments}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def chat_result(number: int, said: str = "done") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"call_{number}", "content": said}


def block_call(number: int, given: dict[str, Any]) -> dict[str, Any]:
    call = {"type": "tool_use", "id": f"toolu_{number}", "name": "bash", "input": given}
    return {"role": "assistant", "content": [call]}


def block_result(number: int, *, is_error: bool = False) -> dict[str, Any]:
    result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "x"}
    return {"role": "user", "content": [{**result, "is_error": is_error}]}


OPEN: list[Any] = [
    pytest.param(CHAT_COMPLETIONS, [ASK, chat_call(1), chat_result(1)], id="chat"),
    pytest.param(ANTHROPIC_MESSAGES, [ASK, block_call(1, {}), block_result(1)], id="messages"),
    pytest.param(
        RESPONSES,
        [
            ASK,
            {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "done"},
        ],
        id="responses",
    ),
]


@pytest.mark.parametrize(("surface", "prompt"), OPEN)
def test_a_tool_loop_is_open_until_a_person_speaks(surface: Surface, prompt: list[Any]) -> None:
    assert signs(prompt, surface) == Signs(is_in_loop=True)
    assert signs([*prompt, ASK], surface).is_in_loop is False
    assert signs(prompt[:1], surface) == Signs()


@pytest.mark.parametrize("prompt", [None, "words", 7, [], [None], [{"content": 7}], [{}], {}])
def test_what_cannot_be_read_is_no_sign(prompt: Any) -> None:
    assert signs(prompt) == Signs()


THINKING = {"type": "thinking", "thinking": "hm", "signature": "sealed"}
BOUND: list[Any] = [
    pytest.param(
        CHAT_COMPLETIONS,
        {"role": "assistant", "content": "x", "thinking_blocks": [THINKING]},
        id="signed thinking of a chat",
    ),
    pytest.param(
        ANTHROPIC_MESSAGES, {"role": "assistant", "content": [THINKING]}, id="signed thinking"
    ),
    pytest.param(
        ANTHROPIC_MESSAGES,
        {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "x"}]},
        id="redacted thinking",
    ),
    pytest.param(
        RESPONSES, {"type": "reasoning", "encrypted_content": "x"}, id="encrypted reasoning"
    ),
    pytest.param(RESPONSES, {"type": "reasoning", "id": "rs_1"}, id="stored reasoning"),
    pytest.param(RESPONSES, {"type": "item_reference", "id": "msg_1"}, id="a stored item"),
    pytest.param(
        CHAT_COMPLETIONS,
        {"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]},
        id="an uploaded file",
    ),
]


@pytest.mark.parametrize(("surface", "item"), BOUND)
def test_what_one_provider_reads_is_not_portable(surface: Surface, item: dict[str, Any]) -> None:
    assert signs([ASK, item, ASK], surface).is_portable is False
    assert signs([ASK, {"role": "assistant", "content": "x"}, ASK], surface).is_portable is True


def test_thinking_that_nobody_signed_is_words() -> None:
    plain = {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]}
    assert signs([ASK, plain, ASK], ANTHROPIC_MESSAGES).is_portable is True


@pytest.mark.parametrize("name", ["previous_response_id", "conversation", "container"])
def test_state_that_lies_elsewhere_is_not_portable(name: str) -> None:
    assert signs([ASK], RESPONSES, **{name: "resp_1"}).is_portable is False


def loop(*arguments: str, said: str = "done") -> list[Any]:
    pairs = ([chat_call(n, each), chat_result(n, said)] for n, each in enumerate(arguments))
    return [ASK, *(item for pair in pairs for item in pair)]


def test_the_same_call_three_times_of_the_newest_six_is_trouble() -> None:
    assert signs(loop("a", "b", "a", "a")).trouble is Trouble.REPEATED
    assert signs(loop("a", "b", "a", "c")).trouble is None
    assert signs(loop("a", "a", "a", "b")).trouble is None, "it has gone on"
    others = [str(number) for number in range(RECENT_CALLS - 2)]
    assert signs(loop("a", "a", *others, "a")).trouble is None, "too long ago"


def test_calls_of_messages_are_told_by_name_and_input() -> None:
    same = [item for n in range(3) for item in (block_call(n, {"x": 1}), block_result(n))]
    assert signs([ASK, *same], ANTHROPIC_MESSAGES).trouble is Trouble.REPEATED


@pytest.mark.parametrize("said", ["Error: no such file", "Traceback (most recent call last):\n x"])
def test_calls_that_fail_are_trouble(said: str) -> None:
    assert signs(loop("a", "b", "c", said=said)).trouble is Trouble.FAILED
    assert signs(loop("a", "b", said=said)).trouble is None


def test_an_error_that_the_api_marks_is_one() -> None:
    failed = [
        item for n in range(3) for item in (block_call(n, {"x": n}), block_result(n, is_error=True))
    ]
    assert signs([ASK, *failed], ANTHROPIC_MESSAGES).trouble is Trouble.FAILED


def after(first: str, then: str) -> Trouble | None:
    asked = [{"role": "user", "content": text} for text in (first, then)]
    return signs([asked[0], {"role": "assistant", "content": "Done."}, asked[1]]).trouble


@pytest.mark.parametrize("long", [1, LONG])
@given(st.text(), st.text(), st.text())
def test_the_same_words_alone_are_repeats(long: int, template: str, one: str, other: str) -> None:
    asked, then = (f"Of which language is this? {template * long} {x} 1" for x in (one, other))
    assert after(asked, asked) is Trouble.ASKED_AGAIN
    if one.casefold().split() != other.casefold().split():
        assert after(asked, then) is None


def test_case_spacing_and_the_last_signs_make_no_other_question() -> None:
    assert after("Please fix it, the parser!", " please  FIX it,\nthe parser?? ") is not None


def test_go_on_is_no_question() -> None:
    go_on = {"role": "user", "content": "go on"}
    assert len(go_on["content"]) < SHORTEST
    assert signs([go_on, {"role": "assistant", "content": "x"}, go_on]).trouble is None
