"""Reading an answer of any surface, and what it cost."""

from types import SimpleNamespace
from typing import Any

import pytest

from litellm_messplus.costs.price import TokenPrice
from litellm_messplus.proxy import answers
from litellm_messplus.proxy.answers import Pricing, Usage
from litellm_messplus.records import CostSource
from tests.unit.builders import LARGE, SMALL, build_zoo, request

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


@ALL
def test_the_usage_of_an_answer(response: object) -> None:
    assert answers.usage(response) == Usage(prompt_tokens=7, completion_tokens=2)


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
    assert answers.hidden_params(response) == expected


@pytest.mark.parametrize(
    "reported",
    [None, {}, {"prompt_tokens": 0, "completion_tokens": 0}, {"prompt_tokens": None}],
    ids=repr,
)
def test_no_usage_is_none_and_not_zero(reported: object) -> None:
    assert answers.usage({"usage": reported}) is None


def test_an_empty_answer_that_read_a_prompt_has_usage() -> None:
    assert answers.usage({"usage": {"prompt_tokens": 7, "completion_tokens": 0}}) == Usage(7, 0)


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


USAGE = Usage(prompt_tokens=10, completion_tokens=2)


def pricing(**zoo: Any) -> Pricing:
    prices = {SMALL: TokenPrice(1.0, 1.0), LARGE: TokenPrice(2.0, 3.0)}
    deployments = {"dear": TokenPrice(100.0, 0.0), "free": TokenPrice(0.0, 0.0)}
    return Pricing({"zoo": build_zoo(prices, **zoo)}, deployments)


MEASURED, ESTIMATED, UNKNOWN = CostSource.MEASURED, CostSource.ESTIMATED, CostSource.UNKNOWN


@pytest.mark.parametrize(
    ("candidate", "deployment", "usage", "response_cost", "expected"),
    [
        (LARGE, "dear", USAGE, 0.7, (0.7, MEASURED)),
        (LARGE, "dear", USAGE, 0.0, (0.0, MEASURED)),
        (LARGE, "dear", USAGE, None, (1000.0, MEASURED)),
        (LARGE, "free", USAGE, None, (0.0, MEASURED)),
        (LARGE, "never seen", USAGE, None, (26.0, MEASURED)),  # 2 * 10 + 3 * 2
        (LARGE, None, USAGE, None, (26.0, MEASURED)),
        (LARGE, "dear", None, 0.0, (5.0, ESTIMATED)),  # the record's estimate
        (None, None, USAGE, 0.7, (0.7, MEASURED)),
        (None, None, USAGE, None, (None, UNKNOWN)),
        (None, None, None, 0.0, (None, UNKNOWN)),
        ("outside", None, None, None, (None, UNKNOWN)),
    ],
    ids=[
        "LiteLLM's cost",
        "LiteLLM's cost of zero, with usage",
        "the deployment's price",
        "the deployment's price of zero",
        "the candidate's price",
        "the candidate's price without a deployment",
        "without usage LiteLLM's zero is no measurement",
        "a fallback outside the zoo that LiteLLM can price",
        "a fallback outside that nobody can price",
        "a fallback outside without usage",
        "an unknown candidate",
    ],
)
def test_a_cost_and_where_it_comes_from(
    candidate: str | None,
    deployment: str | None,
    usage: Usage | None,
    response_cost: float | None,
    expected: tuple[float | None, CostSource],
) -> None:
    found = pricing().cost(request(), candidate, deployment, usage, response_cost)
    assert found == expected


def test_litellms_dollars_are_not_taken_for_joules() -> None:
    found = pricing(cost_unit="joule").cost(request(), LARGE, None, USAGE, 0.7)
    assert found == (26.0, MEASURED)
