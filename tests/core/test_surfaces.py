"""Ids, sessions and answers on the four surfaces, as LiteLLM shows them."""

from typing import Any

import litellm
import pytest
from litellm.types.llms.openai import ResponsesAPIResponse

from litellm_messplus.core.line import LineRequest
from litellm_messplus.core.lines import IDS, Lines
from litellm_messplus.serving.surfaces.conversation import read_conversation
from litellm_messplus.serving.surfaces.identity import answer_in_next_prompt, ids_in, session_named

CALL = {"id": "call_1", "type": "function", "function": {"name": "bash", "arguments": '{"x":1}'}}
QUESTION = {"role": "user", "content": "Fix it."}

CHAT = litellm.ModelResponse(
    choices=[{"message": {"role": "assistant", "content": "I look.", "tool_calls": [CALL]}}]
)
WORDS = litellm.ModelResponse(choices=[{"message": {"role": "assistant", "content": "Done.\n"}}])
TEXT = litellm.TextCompletionResponse(choices=[{"text": " Done.", "index": 0}])
ANTHROPIC = {
    "type": "message",
    "role": "assistant",
    "content": [
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "call_1", "name": "bash", "input": {"x": 1}},
    ],
}
ITEMS: list[dict[str, Any]] = [
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
    },
    {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "bash",
        "arguments": '{"x":1}',
        "status": "completed",
    },
]
RESPONSE = ResponsesAPIResponse(
    id="resp_1", created_at=0, output=ITEMS, parallel_tool_calls=True, tool_choice="auto", tools=[]
)

NEXT: list[Any] = [
    pytest.param(
        CHAT,
        [
            QUESTION,
            {"role": "assistant", "content": "I look.", "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "call_1", "content": "found"},
        ],
        ("call_1",),
        id="chat",
    ),
    pytest.param(
        WORDS,
        [QUESTION, {"role": "assistant", "content": "Done."}, {"role": "user", "content": "More"}],
        (),
        id="chat, words",
    ),
    pytest.param(
        ANTHROPIC,
        [
            QUESTION,
            {"role": "assistant", "content": ANTHROPIC["content"]},
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "call_1", "content": "found"},
                    {"type": "text", "text": "Go on."},
                ],
            },
        ],
        ("call_1",),
        id="anthropic messages",
    ),
    pytest.param(
        RESPONSE,
        [
            QUESTION,
            *ITEMS,
            {"type": "function_call_output", "call_id": "call_1", "output": "found"},
        ],
        ("call_1",),
        id="responses",
    ),
]


@pytest.mark.parametrize(("answer", "following", "ids"), NEXT)
def test_an_answer_tells_which_of_two_conversations_goes_on(
    answer: Any, following: list[Any], ids: tuple[str, ...]
) -> None:
    """By its words alone; its ids are those in the next prompt."""
    assert answer_in_next_prompt(answer)[1] == ids_in(following) == ids
    lines = Lines(b"a key")
    first = [
        lines.find(LineRequest(name, "zoo", "key", read_conversation([QUESTION])), 0.0)
        for name in ("one", "other")
    ]
    lines.ended(first[0], "d", answer=answer_in_next_prompt(answer)[0])
    lines.ended(first[1], "d", answer="something else")
    place = lines.find(LineRequest("next", "zoo", "key", read_conversation(following)), 0.0)
    assert place.turn == 2
    assert place.line is first[0].line


def test_a_text_completion_has_words_and_no_ids() -> None:
    answer, given = answer_in_next_prompt(TEXT)
    assert (answer.strip(), given, ids_in("A prompt")) == ("Done.", (), ())


MANY = [{"role": "tool", "tool_call_id": f"call_{number}"} for number in range(200)]


@pytest.mark.parametrize(
    ("prompt", "ids"),
    [
        ([{"tool_calls": [{"id": "call_1", "function": CALL["function"]}]}], ("call_1",)),
        (MANY, tuple(f"call_{number}" for number in range(200 - IDS, 200))),
        *((None, ()), ("words", ()), ([None, 7, "words"], ())),
        *(([{"role": "tool", "tool_call_id": 7}], ()), ([{"tool_calls": 1}], ())),
    ],
    ids=[
        *("a call without its type", "of many the newest", "nothing", "words", "no messages"),
        *("an id that is none", "no calls"),
    ],
)
def test_clients_send_what_they_like(prompt: object, ids: tuple[str, ...]) -> None:
    assert ids_in(prompt) == ids


@pytest.mark.parametrize("answer", [None, {}, {"choices": []}, {"content": "words"}], ids=repr)
def test_an_answer_of_no_surface_is_empty(answer: object) -> None:
    assert answer_in_next_prompt(answer) == ("", ())


@pytest.mark.parametrize(
    ("metadata", "given", "expected"),
    [
        ({"session_id": "s"}, {}, "s"),
        ({}, {"litellm_session_id": "s"}, "s"),
        ({"session_id": 7}, {}, "7"),
        ({"session_id": "made", "litellm_session_id_generated": True}, {}, None),
        ({}, {}, None),
    ],
    ids=str,
)
def test_a_session_is_one_that_somebody_named(
    metadata: dict[str, Any], given: dict[str, Any], expected: str | None
) -> None:
    assert session_named(metadata, given) == expected
