"""A request as the model sees it: who speaks, which tools there are; no shape breaks it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.prediction.conversation import Conversation
from litellm_messplus.proxy.conversations import read_conversation
from tests.unit.test_surfaces import read

WEATHER = {
    "type": "function",
    "function": {"name": "weather", "description": "Of a city.", "parameters": {"type": "object"}},
}


def turns(conversation: Conversation) -> list[tuple[str, str]]:
    return [(turn.role, turn.text) for turn in conversation.turns]


def test_every_turn_has_its_role() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello!"},
        {
            "role": "user",
            "content": [{"type": "text", "text": "And"}, {"type": "text", "text": "?"}],
        },
    ]

    assert turns(read(messages).conversation()) == [
        ("system", "Be brief."),
        ("user", "Hi"),
        ("assistant", "Hello!"),
        ("user", "And\n?"),
    ]


def test_tool_calls_and_their_results_are_turns() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": '{"a":1}'}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "sunny"},
        {"role": "assistant", "content": "Once more.", "function_call": {"name": "again"}},
    ]

    assert turns(read(messages).conversation()) == [
        ("user", "Weather?"),
        ("assistant", 'weather({"a":1})'),
        ("tool", "sunny"),
        ("assistant", "Once more.\nagain()"),
    ]


@pytest.mark.parametrize(
    ("given", "described"),
    [
        ({"tools": [WEATHER]}, ("weather: Of a city.",)),
        ({"functions": [{"name": "weather"}]}, ("weather",)),
        ({"tools": [{"name": "weather", "description": "x", "input_schema": {}}]}, ("weather: x",)),
        ({"tools": [{"type": "web_search"}]}, ("[web_search]",)),
        ({"tools": [WEATHER], "functions": [{"name": "b"}]}, ("weather: Of a city.", "b")),
        ({"tools": None}, ()),
        ({"tools": [None, 7, {}, []]}, ()),
        ({"tools": {"name": "alone"}}, ("alone",)),
    ],
    ids=str,
)
def test_tools_are_their_names_and_descriptions(
    given: dict[str, Any], described: tuple[str, ...]
) -> None:
    found = read([{"role": "user", "content": "Hi"}], **given).conversation()

    assert found.tools == described
    assert found.text == "\n".join([*described, "Hi"])


def test_an_anthropic_message_with_blocks() -> None:
    messages = [
        {
            "role": "user",
            "content": [
                {"type": "image", "source": {"data": "AAAA"}},
                {"type": "text", "text": "?"},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm."},
                {"type": "tool_use", "id": "1", "name": "look", "input": {"at": "it"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "content": [{"type": "text", "text": "a cat"}]},
                {"type": "tool_result", "content": "a dog"},
            ],
        },
    ]
    found = read(messages, "anthropic_messages", system=[{"type": "text", "text": "Be kind."}])

    assert turns(found.conversation()) == [
        ("system", "Be kind."),
        ("user", "[image]\n?"),
        ("assistant", 'Hm.\nlook({"at": "it"})'),
        ("user", "a cat\na dog"),
    ]


def test_a_responses_input_of_items() -> None:
    items = [
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "Hi"}, {"type": "input_image"}],
        },
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "name": "look", "arguments": "{}", "call_id": "1"},
        {"type": "function_call_output", "call_id": "1", "output": "a cat"},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "refusal", "refusal": "No."}],
        },
    ]
    found = read(None, "aresponses", instructions="Be brief.", input=items)

    assert turns(found.conversation()) == [
        ("system", "Be brief."),
        ("user", "Hi\n[input_image]"),
        ("assistant", "[reasoning]"),
        ("assistant", "look({})"),
        ("tool", "a cat"),
        ("assistant", "No."),
    ]


@pytest.mark.parametrize("prompt", [["Once", "upon"], [["Once"], "upon"], "Once\nupon"])
def test_a_text_completion_may_be_a_list(prompt: object) -> None:
    """LiteLLM's router makes one message of whatever the prompt was."""
    found = read([{"role": "user", "content": prompt}], "atext_completion").conversation()

    assert turns(found) == [("user", "Once\nupon")]


def test_a_prompt_of_token_ids_has_no_words() -> None:
    found = read([{"role": "user", "content": [15496, 995]}], "atext_completion").conversation()

    assert found == Conversation(())


def test_bare_texts_among_messages_are_the_users() -> None:
    assert turns(read_conversation(["a", {"role": "system", "content": "b"}, {"text": "c"}])) == [
        ("user", "a"),
        ("system", "b"),
        ("user", "c"),
    ]


def test_what_is_nested_without_end_is_cut() -> None:
    deep: Any = "words"
    for _ in range(100_000):
        deep = [deep]

    assert read_conversation([{"role": "user", "content": deep}]).text == ""


def test_a_huge_prompt_is_read_whole() -> None:
    text = "word " * 200_000

    assert read_conversation([{"role": "user", "content": text}]).text == text


KEYS = ["role", "content", "text", "type", "tool_calls", "function_call", "function", "name"]
KEYS += ["arguments", "input", "output", "description", "refusal"]
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(KEYS) | st.text(), inner, max_size=5)
    ),
    max_leaves=20,
)


@given(messages=ANYTHING, system=ANYTHING, tools=st.lists(ANYTHING, max_size=2))
def test_any_shape_is_read(messages: Any, system: Any, tools: list[Any]) -> None:
    found = read_conversation(messages, system, tools)

    assert all(turn.text and isinstance(turn.role, str) for turn in found.turns)
    assert isinstance(json.dumps(found.text), str)
