"""What a request asks of a model beside words, on each surface."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.serving.surfaces.request import read_request
from litellm_messplus.serving.surfaces.requirements import (
    Capability,
    Requirements,
    read_requirements,
)

IMAGE, AUDIO, VIDEO, FILE = (
    Capability.IMAGE,
    Capability.AUDIO,
    Capability.VIDEO,
    Capability.FILE,
)
TOOLS, PARALLEL = Capability.TOOLS, Capability.PARALLEL_TOOLS
SCHEMA, REASONING = Capability.JSON_SCHEMA, Capability.REASONING
OF_ANTHROPIC = {"call_type": "anthropic_messages"}
PDF = "data:application/pdf;base64,JVBERi0="


def required(call_type: str = "acompletion", messages: Any = None, **given: Any) -> Requirements:
    own = "metadata" if call_type in ("acompletion", "atext_completion") else "litellm_metadata"
    logging = SimpleNamespace(call_type=call_type)
    kwargs = {"litellm_call_id": "1", "litellm_logging_obj": logging, own: {}, **given}
    request = read_request(messages, kwargs)
    assert request is not None
    return read_requirements(request)


def asked(*parts: Any, **given: Any) -> frozenset[Capability]:
    """Of a chat whose user sends these parts."""
    content = [{"type": "text", "text": "look"}, *parts]
    return required(messages=[{"role": "user", "content": content}], **given).capabilities


def test_words_alone_ask_for_nothing() -> None:
    plain = [{"role": "user", "content": "hello"}]
    assert required(messages=plain, temperature=0.1) == Requirements()
    assert required("atext_completion", messages=plain) == Requirements()
    assert required("aresponses", input="hello") == Requirements()
    assert required("anthropic_messages", messages=plain) == Requirements()


@pytest.mark.parametrize(
    ("part", "capability"),
    [
        ({"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}, IMAGE),
        ({"type": "image", "source": {"type": "base64", "media_type": "image/png"}}, IMAGE),
        ({"type": "input_image", "image_url": "https://x.test/a.png"}, IMAGE),
        ({"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}, AUDIO),
        ({"type": "video_url", "video_url": {"url": "https://x.test/a.mp4"}}, VIDEO),
        ({"type": "file", "file": {"file_data": PDF}}, FILE),
        ({"type": "file", "file": {"file_id": "file-1"}}, FILE),
        ({"type": "file", "file": {"file_id": "file-1", "format": "audio/wav"}}, AUDIO),
        ({"type": "file", "file": {"file_data": "data:image/png;base64,AA"}}, IMAGE),
        ({"type": "input_file", "file_data": PDF}, FILE),
        ({"type": "input_file", "file_url": "https://x.test/a.pdf"}, FILE),
        ({"type": "document", "source": {"type": "base64", "media_type": "application/pdf"}}, FILE),
        ({"type": "document", "source": {"type": "url", "url": "https://x.test/a.pdf"}}, FILE),
    ],
)
def test_an_attachment_is_known_by_its_type(part: dict[str, Any], capability: Capability) -> None:
    assert asked(part) == {capability}


def test_a_document_of_words_is_words() -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "words"}
    assert asked({"type": "document", "source": source}) == frozenset()


def test_an_image_is_found_within_a_tool_result_and_in_a_responses_input() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png"}}
    result = {"type": "tool_result", "tool_use_id": "1", "content": [image]}
    told = required("anthropic_messages", messages=[{"role": "user", "content": [result]}])
    assert told.capabilities == {IMAGE, TOOLS}
    item = {"role": "user", "content": [{"type": "input_image", "image_url": "https://x.test/a"}]}
    assert required("aresponses", input=[item]).capabilities == {IMAGE}


@pytest.mark.parametrize(
    ("given", "capabilities"),
    [
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, {TOOLS}),
        ({"functions": [{"name": "f"}]}, {TOOLS}),
        ({"tools": [{"name": "f"}], "parallel_tool_calls": True}, {TOOLS, PARALLEL}),
        ({"tools": [{"name": "f"}], "parallel_tool_calls": False}, {TOOLS}),
        ({"tools": [], "parallel_tool_calls": True}, set()),
        ({"response_format": {"type": "json_schema", "json_schema": {}}}, {SCHEMA}),
        ({"response_format": {"type": "json_object"}}, set()),
        ({"call_type": "aresponses", "text": {"format": {"type": "json_schema"}}}, {SCHEMA}),
        (OF_ANTHROPIC | {"output_format": {"type": "json_schema", "schema": {}}}, {SCHEMA}),
        (OF_ANTHROPIC | {"output_config": {"format": {"type": "json_schema"}}}, {SCHEMA}),
        ({"reasoning_effort": "low"}, {REASONING}),
        ({"reasoning_effort": {"effort": "high", "summary": "auto"}}, {REASONING}),
        ({"reasoning_effort": "none"}, set()),
        ({"reasoning": {"effort": "low"}}, {REASONING}),
        ({"reasoning": {"summary": "auto"}}, set()),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, {REASONING}),
        ({"thinking": {"type": "disabled"}}, set()),
    ],
)
def test_an_argument_asks_for_a_capability(given: dict[str, Any], capabilities: set[str]) -> None:
    assert asked(**given) == capabilities


@pytest.mark.parametrize(
    "turn",
    [
        {"role": "tool", "tool_call_id": "1", "content": "42"},
        {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]},
        {"role": "assistant", "content": [{"type": "tool_use", "name": "f", "input": {}}]},
        {"type": "function_call_output", "call_id": "1", "output": "42"},
    ],
)
def test_a_conversation_that_has_used_tools_needs_a_model_that_reads_them(turn: Any) -> None:
    assert required(messages=[{"role": "user", "content": "hi"}, turn]).capabilities == {TOOLS}


def test_the_answers_room_is_the_smallest_limit_of_one_choice() -> None:
    plain = [{"role": "user", "content": "hello"}]
    told = required(messages=plain, max_tokens=100, max_completion_tokens=50, n=3)
    assert told.answer_tokens == 50
    assert required(messages=plain, max_tokens="many").answer_tokens == 0


def test_the_region_and_any_answer_format_are_told() -> None:
    plain = [{"role": "user", "content": "hello"}]
    told = required(messages=plain, allowed_model_region="eu", response_format={"type": "text"})
    assert (told.region, told.has_answer_format) == ("eu", True)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "content", "file", "source", "format"]), inner)
    ),
    max_leaves=12,
)
NAMES = ("tools", "response_format", "text", "reasoning", "thinking", "reasoning_effort", "input")


@given(anything, st.dictionaries(st.sampled_from(NAMES), anything))
def test_whatever_a_client_sends_is_read(content: Any, arguments: dict[str, Any]) -> None:
    messages = [{"role": "user", "content": content}]
    assert required(messages=messages, **arguments).capabilities <= set(Capability)
