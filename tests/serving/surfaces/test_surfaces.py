"""Reading a request on the four surfaces, and leaving everything else alone."""

import math
from types import SimpleNamespace
from typing import Any

import pytest

from litellm_messplus.serving.surfaces.request import (
    IncomingRequest,
    continued_response,
    read_request,
)

Messages = list[dict[str, Any]] | None


def arguments(call_type: str = "acompletion", **kwargs: Any) -> dict[str, Any]:
    """As LiteLLM's router hands them to a filter."""
    others = call_type in ("anthropic_messages", "aresponses")
    return {
        "litellm_logging_obj": SimpleNamespace(call_type=call_type),
        "litellm_call_id": "call-1",
        "litellm_metadata" if others else "metadata": {"user_api_key_hash": "hash"},
        **kwargs,
    }


def read(messages: Messages, call_type: str = "acompletion", **kwargs: Any) -> IncomingRequest:
    found = read_request(messages, arguments(call_type, **kwargs))
    assert found is not None
    return found


def user(content: object) -> list[dict[str, Any]]:
    return [{"role": "user", "content": content}]


def test_an_anthropic_message_begins_with_its_system_prompt() -> None:
    found = read(user("Hi"), "anthropic_messages", system="Be kind.")
    assert found.conversation.text == "Be kind.\nHi"


def test_a_response_begins_with_its_instructions() -> None:
    found = read(None, "aresponses", instructions="Be brief.", input="Hi")
    assert found.conversation.text == "Be brief.\nHi"


def test_tool_results_are_read_and_tool_calls_are_not_stumbled_over() -> None:
    messages = [
        *user("Weather?"),
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function"}]},
        {"role": "tool", "tool_call_id": "1", "content": "sunny"},
        *user([{"type": "tool_result", "content": [{"type": "text", "text": "warm"}]}]),
    ]
    assert read(messages).conversation.text == "Weather?\n[function]\nsunny\nwarm"


@pytest.mark.parametrize(
    "messages",
    [None, [], user(None), user(""), user([]), user(7), user([None, 7, b"x"])],
    ids=repr,
)
def test_a_request_without_text_is_the_empty_text(messages: Messages) -> None:
    assert read(messages).conversation.text == ""


@pytest.mark.parametrize(
    "call_type", ["acompletion", "atext_completion", "anthropic_messages", "aresponses"]
)
def test_whose_it_is_comes_from_litellms_metadata_not_the_clients(call_type: str) -> None:
    """On two surfaces `metadata` is the client's own, which it could sign with another's name."""
    kwargs = arguments(call_type)
    if "litellm_metadata" in kwargs:
        kwargs["metadata"] = {"user_api_key_hash": "somebody else"}
    else:
        kwargs["litellm_metadata"] = {"user_api_key_hash": "somebody else"}
    found = read_request(user("Hi"), kwargs)
    assert found is not None
    assert (found.call_type, found.litellm_call_id) == (call_type, "call-1")
    assert found.key_hash == "hash"


@pytest.mark.parametrize(
    ("metadata", "key_hash", "team"),
    [
        ({"user_api_key_hash": "a", "user_api_key": "b", "user_api_key_team_id": "t"}, "a", "t"),
        ({"user_api_key": "b"}, "b", None),
        ({}, None, None),
    ],
)
def test_key_and_team(metadata: dict[str, Any], key_hash: str | None, team: str | None) -> None:
    found = read(user("Hi"), metadata=metadata)
    assert (found.key_hash, found.team_id) == (key_hash, team)


@pytest.mark.parametrize("call_type", ["anthropic_messages", "aresponses"])
def test_what_a_client_sends_along_is_found_in_either_place(call_type: str) -> None:
    """LiteLLM puts a client's `litellm_metadata` among its own."""
    kept = {"answer": "kept here", "session_id": "kept here"}
    found = read(user("Hi"), call_type, litellm_metadata=kept, metadata={"session_id": "sent on"})
    alone = read(user("Hi"), call_type, litellm_metadata=kept)

    assert dict(found.client_metadata) == {**kept, "session_id": "sent on"}
    assert dict(alone.client_metadata) == kept


@pytest.mark.parametrize(("kwargs", "is_stream"), [({}, False), ({"stream": True}, True)])
def test_whether_it_streams(kwargs: dict[str, Any], is_stream: bool) -> None:
    assert read(user("Hi"), **kwargs).is_stream is is_stream


@pytest.mark.parametrize(
    "kwargs",
    [
        None,
        {},
        arguments("aembedding"),
        arguments("token_counter"),
        arguments(litellm_call_id=None),
        arguments(litellm_logging_obj=None),
        arguments(metadata=None),
        arguments("aresponses", litellm_metadata=None, metadata={"user_api_key_hash": "x"}),
    ],
    ids=[
        "no arguments",
        "empty arguments",
        "embedding",
        "token counting",
        "no call id",
        "no logging object",
        "no metadata",
        "only the client's metadata",
    ],
)
def test_what_is_not_ours_is_not_routed(kwargs: dict[str, Any] | None) -> None:
    assert read_request(user("Hi"), kwargs) is None


@pytest.mark.parametrize("call_type", ["acompletion", "atext_completion", "anthropic_messages"])
def test_only_a_response_continues_another(call_type: str) -> None:
    given = arguments(call_type, previous_response_id="resp_1")
    assert read(user("Hi"), call_type, previous_response_id="resp_1").continues is None
    assert read(user("Hi"), "aresponses", previous_response_id="resp_1").continues == "resp_1"
    assert continued_response(given) is None
    assert continued_response(arguments("aresponses", previous_response_id="resp_1")) == "resp_1"
    assert continued_response(arguments("aresponses")) is None


@pytest.mark.parametrize(
    ("call_type", "messages", "expected"),
    [
        ("acompletion", user("Hi"), {"messages": user("Hi")}),
        ("atext_completion", user("Hi"), {"prompt": "Hi"}),
        ("atext_completion", user([1, 2]), {"prompt": [1, 2]}),
        ("anthropic_messages", user("Hi"), {"messages": user("Hi")}),
        ("aresponses", None, {}),
    ],
)
def test_what_was_asked_as_the_arguments_of_another_call(
    call_type: str, messages: Messages, expected: dict[str, Any]
) -> None:
    assert read(messages, call_type, input="Hi").prompt_arguments == expected


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, math.inf),
        ({"max_tokens": 50}, 50),
        ({"max_completion_tokens": 60}, 60),
        ({"max_output_tokens": 70}, math.inf),
        ({"max_tokens": 50, "max_completion_tokens": 40}, 40),
        ({"max_tokens": 50, "n": 3}, 150),
        ({"max_tokens": None}, math.inf),
        ({"max_tokens": 0}, math.inf),
        ({"max_tokens": -5}, math.inf),
        ({"max_tokens": "many", "n": "some"}, math.inf),
    ],
    ids=str,
)
def test_how_long_an_answer_may_get(limits: dict[str, Any], expected: float) -> None:
    assert read(user("Hi"), **limits).most_completion_tokens == expected


@pytest.mark.parametrize(
    ("call_type", "limit"),
    [
        ("acompletion", "max_tokens"),
        ("atext_completion", "max_tokens"),
        ("anthropic_messages", "max_tokens"),
        ("aresponses", "max_output_tokens"),
    ],
)
def test_each_surface_has_a_word_of_its_own_for_it(call_type: str, limit: str) -> None:
    assert read(user("Hi"), call_type, **{limit: 70}).most_completion_tokens == 70
