"""Reading an answer of any surface."""

from types import SimpleNamespace
from typing import Any

import pytest

from litellm_messplus.serving.litellm_seam import hidden_params
from litellm_messplus.serving.surfaces import answers

CHAT = SimpleNamespace(
    id="chatcmpl-1",
    choices=[SimpleNamespace(message=SimpleNamespace(content="four"))],
    usage=SimpleNamespace(prompt_tokens=7, completion_tokens=2),
    _hidden_params={"model_id": "deployment-1"},
)
COMPLETION = SimpleNamespace(
    id="cmpl-1",
    choices=[SimpleNamespace(text="four")],
    usage=SimpleNamespace(prompt_tokens=7, completion_tokens=2),
)
ANTHROPIC = {
    "id": "msg_1",
    "content": [{"type": "text", "text": "fo"}, {"type": "text", "text": "ur"}],
    "usage": {"input_tokens": 7, "output_tokens": 2},
    "_hidden_params": {"model_id": "deployment-1"},
}
RESPONSE = SimpleNamespace(
    id="resp_1",
    output=[
        SimpleNamespace(type="reasoning"),
        SimpleNamespace(content=[SimpleNamespace(text="fo"), SimpleNamespace(text="ur")]),
    ],
    usage=SimpleNamespace(input_tokens=7, output_tokens=2),
)
ALL = pytest.mark.parametrize("response", [CHAT, COMPLETION, ANTHROPIC, RESPONSE])


@ALL
def test_the_text_of_an_answer(response: object) -> None:
    assert answers.text(response) == "four"


def test_the_last_event_of_a_responses_stream_has_the_words() -> None:
    event = SimpleNamespace(type="response.completed", response=RESPONSE)
    assert answers.text(event) == "four"


@pytest.mark.parametrize(
    ("response", "expected"),
    [(CHAT, "chatcmpl-1"), (ANTHROPIC, "msg_1"), (SimpleNamespace(), None), ({"id": 7}, "7")],
)
def test_the_id_of_an_answer(response: object, expected: str | None) -> None:
    assert answers.response_id(response) == expected


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (CHAT, {"model_id": "deployment-1"}),
        (ANTHROPIC, {"model_id": "deployment-1"}),
        (COMPLETION, {}),
        ({"_hidden_params": None}, {}),
    ],
)
def test_what_litellm_keeps_beside_an_answer(response: object, expected: dict[str, Any]) -> None:
    assert hidden_params(response) == expected


@pytest.mark.parametrize(
    "response",
    [
        None,
        {},
        {"choices": []},
        {"choices": [{"message": {"content": None}}]},
        {"content": []},
        {"output": [{"content": None}]},
    ],
    ids=repr,
)
def test_an_answer_without_words_is_the_empty_text(response: object) -> None:
    assert answers.text(response) == ""
