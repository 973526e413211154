"""Gemini's requests, read as the chats that ask for the same."""

from typing import Any

import pytest

from litellm_messplus.serving.surfaces.request import may_act, may_wait
from litellm_messplus.serving.surfaces.requirements import Capability, read_requirements
from litellm_messplus.serving.surfaces.signs import read_signs
from tests.serving.surfaces.test_surfaces import read

LOOK = {"functionDeclarations": [{"name": "look", "description": "Look.", "parameters": {}}]}
CALL = {"functionCall": {"name": "look", "args": {"at": "it"}}}
RESULT = {"functionResponse": {"name": "look", "response": {"seen": 1}}}


def gemini(*turns: tuple[str, list[Any]], **given: Any) -> Any:
    contents = [{"role": role, "parts": parts} for role, parts in turns]
    return read(None, "agenerate_content", contents=contents, **given)


def test_words_alone_are_a_plain_chat() -> None:
    found = gemini(
        ("user", [{"text": "Hi"}]),
        ("model", [{"text": "Let me think.", "thought": True}, {"text": "Hello"}]),
        ("user", [{"text": "Sort 3 1 2"}]),
        systemInstruction={"parts": [{"text": "Be brief."}]},
        config={"temperature": 0, "maxOutputTokens": 9},
    )
    assert found.prompt == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "Sort 3 1 2"},
    ]
    assert found.plain is not None
    assert found.most_completion_tokens == 9
    assert found.prompt_arguments == {"messages": found.prompt}
    assert {"contents", "config"}.isdisjoint(found.kwargs)
    assert not may_wait(found)


@pytest.mark.parametrize(
    "contents", ["Hi", ["Hi"], {"parts": ["Hi"]}, [{"parts": [{"text": "Hi"}]}]]
)
def test_contents_come_in_many_forms(contents: Any) -> None:
    assert read(None, "agenerate_content", contents=contents).prompt == [
        {"role": "user", "content": "Hi"}
    ]


def test_a_tool_loop_is_one() -> None:
    found = gemini(
        ("user", [{"text": "Look"}]), ("model", [CALL]), ("user", [RESULT]), tools=[LOOK]
    )
    call, result = found.prompt[1:]
    assert call["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"at": "it"}'}
    assert call["tool_calls"][0]["id"] == result["tool_call_id"]
    words = ["look: Look.", "Look", 'look({"at": "it"})', '{"seen": 1}']
    assert found.conversation.text.split("\n") == words
    assert read_signs(found).is_in_loop
    assert not may_act(found)


@pytest.mark.parametrize(
    ("parts", "config", "needs"),
    [
        ([{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}], {}, {Capability.IMAGE}),
        ([{"inline_data": {"mime_type": "audio/wav", "data": "AAAA"}}], {}, {Capability.AUDIO}),
        ([{"fileData": {"mimeType": "video/mp4", "fileUri": "u"}}], {}, {Capability.VIDEO}),
        ([{"fileData": {"fileUri": "u"}}], {}, {Capability.FILE}),
        ([CALL], {}, {Capability.TOOLS}),
        ([], {"responseMimeType": "application/json"}, set()),
        (
            [],
            {"responseMimeType": "application/json", "responseSchema": {"type": "OBJECT"}},
            {Capability.JSON_SCHEMA},
        ),
    ],
)
def test_a_model_needs_what_the_request_has(parts: list[Any], config: Any, needs: set[Any]) -> None:
    found = gemini(("user", [{"text": "What?"}, *parts]), config=config)
    assert read_requirements(found).capabilities == needs
    assert found.conversation.asks_json is bool(config)


def test_a_tool_that_runs_at_gemini_may_act() -> None:
    assert may_act(gemini(("user", [{"text": "Find"}]), tools=[{"googleSearch": {}}]))


@pytest.mark.parametrize(
    "given", [None, 3, [None, 3, {}], [{"parts": 3}], [{"parts": [None, 3, {}]}]]
)
def test_whatever_a_client_sends_is_read(given: Any) -> None:
    names = ("contents", "config", "tools", "systemInstruction", "toolConfig")
    found = read(None, "agenerate_content_stream", **dict.fromkeys(names, given))
    assert read_requirements(found).answer_tokens == 0
