"""A request as the model sees it: who speaks, which tools there are; no shape breaks it."""

import json
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.core.encoder import Conversation
from litellm_messplus.serving.surfaces.conversation import read_conversation
from tests.serving.surfaces.test_surfaces import read

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

    assert turns(read(messages).conversation) == [
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

    assert turns(read(messages).conversation) == [
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
def test_a_tool_is_name_and_description(given: dict[str, Any], described: tuple[str, ...]) -> None:
    found = read([{"role": "user", "content": "Hi"}], **given).conversation

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

    assert turns(found.conversation) == [
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

    assert turns(found.conversation) == [
        ("system", "Be brief."),
        ("user", "Hi\n[input_image]"),
        ("assistant", "[reasoning]"),
        ("assistant", "look({})"),
        ("tool", "a cat"),
        ("assistant", "No."),
    ]


@pytest.mark.parametrize(
    "prompt", [["Once", "upon"], [["Once"], "upon"], "Once\nupon", [15496, 995]]
)
def test_a_text_completion_may_be_a_list(prompt: object) -> None:
    """LiteLLM's router makes one message of whatever the prompt was; ids of tokens are no words."""
    found = read([{"role": "user", "content": prompt}], "atext_completion").conversation
    assert turns(found) == ([] if prompt == [15496, 995] else [("user", "Once\nupon")])


def test_bare_texts_among_messages_are_the_users() -> None:
    assert turns(read_conversation(["a", {"role": "system", "content": "b"}, {"text": "c"}])) == [
        ("user", "a"),
        ("system", "b"),
        ("user", "c"),
    ]


def test_what_is_nested_without_end_is_cut() -> None:
    made: tuple[Any, ...] = ("words", PICTURE, {"type": "json_object"})
    for deep in made:
        for _ in range(100_000):
            deep = {"format": deep} if "format" in deep else [deep]
        found = read_conversation([{"role": "user", "content": deep}], answer_formats=[deep])
        assert found == Conversation((), asks_json=False)


PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
SAY = {"type": "text", "text": "What is this?"}


def part(kind: str, **inside: object) -> dict[str, Any]:
    return {"type": kind, **inside}


def found_in(content: object, call_type: str = "acompletion", **kwargs: Any) -> Conversation:
    """Of a request whose only message has this content; on the responses surface, of an input."""
    messages = None if call_type == "aresponses" else [{"role": "user", "content": content}]
    if call_type == "aresponses":
        kwargs = {"input": [{"role": "user", "content": content}], **kwargs}
    return read(messages, call_type, **kwargs).conversation


@pytest.mark.parametrize(
    ("call_type", "image"),
    [
        ("acompletion", PICTURE),
        ("acompletion", part("image_url", image_url="https://example.org/a.png")),
        ("anthropic_messages", part("image", source={"type": "base64", "data": "AAAA"})),
        ("aresponses", part("input_image", image_url="https://example.org/a.png")),
    ],
)
def test_images_are_counted_in_each_spelling(call_type: str, image: dict[str, Any]) -> None:
    assert found_in([SAY], call_type).images == 0
    for count in (1, 3):
        found = found_in([SAY, *[image] * count], call_type)
        assert (found.images, found.attachments) == (count, 0)
        assert "What is this?" in found.text


@pytest.mark.parametrize(
    ("call_type", "attachment"),
    [
        ("acompletion", part("input_audio", input_audio={"data": "AAAA", "format": "wav"})),
        ("acompletion", part("file", file={"file_id": "f"})),
        ("acompletion", part("video_url", video_url={"url": "https://example.org/a.mp4"})),
        ("anthropic_messages", part("document", source={"type": "base64", "data": "AAAA"})),
        ("aresponses", part("input_file", file_id="f")),
        ("aresponses", part("input_audio", data="AAAA", format="wav")),
    ],
)
def test_other_attachments_are_counted_too(call_type: str, attachment: dict[str, Any]) -> None:
    for count in (1, 2):
        found = found_in([SAY, *[attachment] * count], call_type)
        assert (found.images, found.attachments) == (0, count)


def test_attachments_of_all_turns_and_within_the_results_of_tools_are_counted() -> None:
    block = part("tool_result", content=[part("image", source={}), part("document", source={})])
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": [PICTURE, SAY]},
        {"role": "assistant", "content": "A cat."},
        {"role": "user", "content": [block, block, part("image", source={})]},
    ]
    found = read(messages, "anthropic_messages").conversation
    assert (found.images, found.attachments) == (4, 2)
    output = part("function_call_output", call_id="1", output=[part("input_image", image_url="x")])
    assert read(None, "aresponses", input=[output]).conversation.images == 1


SCHEMA = {"name": "answer", "schema": {"type": "object"}}


@pytest.mark.parametrize(
    ("call_type", "given", "asks_json"),
    [
        ("acompletion", {}, False),
        ("acompletion", {"response_format": {"type": "json_object"}}, True),
        ("acompletion", {"response_format": part("json_schema", json_schema=SCHEMA)}, True),
        ("acompletion", {"response_format": {"type": "text"}}, False),
        ("acompletion", {"response_format": None}, False),
        ("acompletion", {"response_format": "json_object"}, False),
        ("atext_completion", {"response_format": {"type": "json_object"}}, True),
        ("atext_completion", {}, False),
        ("anthropic_messages", {"output_format": part("json_schema", schema={})}, True),
        ("anthropic_messages", {}, False),
        ("aresponses", {"text": {"format": part("json_schema", **SCHEMA)}}, True),
        ("aresponses", {"text": {"format": {"type": "json_object"}}}, True),
        ("aresponses", {"text": {"format": {"type": "text"}, "verbosity": "low"}}, False),
        ("aresponses", {"text": {"verbosity": "low"}}, False),
        ("aresponses", {}, False),
    ],
    ids=str,
)
def test_whether_json_is_asked_for(call_type: str, given: dict[str, Any], asks_json: bool) -> None:
    assert found_in("Hi", call_type, **given).asks_json == asks_json


KEYS = ["role", "content", "text", "type", "tool_calls", "function_call", "function", "name"]
KEYS += ["arguments", "input", "output", "description", "refusal", "format"]
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(KEYS) | st.text(), inner, max_size=5)
    ),
    max_leaves=20,
)


@given(
    messages=ANYTHING,
    system=ANYTHING,
    tools=st.lists(ANYTHING, max_size=2),
    formats=st.lists(ANYTHING, max_size=2),
)
def test_any_shape_is_read(
    messages: Any, system: Any, tools: list[Any], formats: list[Any]
) -> None:
    found = read_conversation(messages, system, tools, formats)

    assert found.images >= 0
    assert found.attachments >= 0
    assert isinstance(found.asks_json, bool)

    assert all(turn.text and isinstance(turn.role, str) for turn in found.turns)
    assert isinstance(json.dumps(found.text), str)


CALLS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["function", "custom"]),
            "function": st.fixed_dictionaries(
                {}, optional={"name": st.text(), "arguments": st.text() | st.just({"at": 1})}
            ),
            "name": st.text(),
        },
    ),
    max_size=3,
)
MESSAGES = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool"])},
    optional={
        "content": st.none() | st.text() | st.lists(st.just(PICTURE), max_size=2),
        "tool_calls": CALLS | st.none(),
        "function_call": st.just({"name": "look", "arguments": "{}"}),
        "refusal": st.text(),
        "output": st.lists(st.just(PICTURE), max_size=2),
        "name": st.text(),
    },
)


@given(messages=st.lists(MESSAGES, max_size=4))
def test_a_short_way_of_reading_reads_the_same(messages: list[dict[str, Any]]) -> None:
    """Only plain dicts are read on it."""
    assert read_conversation(messages) == read_conversation(list(map(MappingProxyType, messages)))
