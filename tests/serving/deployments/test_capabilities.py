"""What a deployment can take: stated, mapped, or assumed."""

from collections.abc import Mapping
from typing import Any

import litellm
import pytest

from litellm_messplus.serving.deployments.capabilities import (
    MODALITIES,
    NEEDS,
    Answer,
    Capabilities,
    Known,
    all_of,
    fits,
    passing,
    read_known,
)
from litellm_messplus.serving.litellm_seam import deployments_of
from litellm_messplus.serving.surfaces.requirements import Capability

IMAGE, TOOLS = Capability.IMAGE, Capability.TOOLS


def known(model: str, params: dict[str, Any] | None = None, **info: Any) -> Known:
    """Of a deployment as LiteLLM's router shows it, whose start gives every model an entry."""
    litellm_params = {"model": model, "api_key": "none", **(params or {})}
    entry = {"model_name": "zoo", "litellm_params": litellm_params, "model_info": info}
    router = litellm.Router(model_list=[entry])
    return read_known(deployments_of(router)[0], router)


def test_a_model_that_nobody_knows_is_unknown_in_everything() -> None:
    found = known("openai/never-heard-of", {"api_base": "http://localhost:1/v1"})
    assert found.answers == {each: need.unstated for each, need in NEEDS.items()}
    assert found.window is None
    assert found.takes_answer_format


def test_the_price_map_says_what_a_known_model_takes() -> None:
    found = known("gpt-4o")
    assert found.answers[IMAGE] is found.answers[TOOLS] is Answer.YES
    assert found.window == 128_000


def test_a_known_model_takes_no_attachment_that_the_map_does_not_name() -> None:
    found = known("gpt-4")
    assert {found.answers[each] for each in MODALITIES} == {Answer.NO}
    assert found.answers[TOOLS] is Answer.YES
    # The map leaves much of that out.
    assert litellm.model_cost["gpt-4"].get("supports_reasoning") is None
    assert found.answers[Capability.REASONING] is Answer.YES


def test_the_map_is_asked_for_the_base_model_of_a_deployment() -> None:
    found = known("azure/my-own-name", {"api_base": "http://x.test"}, base_model="azure/gpt-4o")
    assert found.answers[IMAGE] is Answer.YES


def test_what_the_operator_says_counts_before_the_map() -> None:
    found = known("gpt-4o", supports_vision=False)
    assert found.answers[IMAGE] is Answer.NO
    found = known("gpt-3.5-turbo-instruct", supports_vision=True)
    assert found.answers[IMAGE] is Answer.YES


def test_gpt_4_does_not_take_a_response_format() -> None:
    assert not known("gpt-4").takes_answer_format


def test_region_and_window_are_read() -> None:
    found = known("openai/own", {"region_name": "eu"}, max_input_tokens=512)
    assert (found.region, found.window) == ("eu", 512)


def test_a_deployment_is_read_once_until_litellm_replaces_it() -> None:
    router = litellm.Router(
        model_list=[
            {
                "model_name": "zoo",
                "litellm_params": {"model": "openai/a", "api_key": "none"},
                "model_info": {"id": "1", "supports_vision": True},
            }
        ]
    )
    (deployment,) = deployments_of(router)
    found = Capabilities()
    first = found.of(deployment, router)
    assert found.of(deployment, router) is first
    info = {**deployment["model_info"], "supports_vision": False}
    replaced = {**deployment, "model_info": info}
    assert found.of(replaced, router).answers[IMAGE] is Answer.NO


def test_deployments_are_remembered_up_to_a_bound() -> None:
    found = Capabilities(remembered=3)
    for number in range(10):
        deployment = {
            "model_name": "zoo",
            "litellm_params": {"model": "openai/a"},
            "model_info": {"id": str(number)},
        }
        found.of(deployment, None)
    assert list(found._known) == ["7", "8", "9"]


NO, UNKNOWN, YES = Answer


@pytest.mark.parametrize(
    ("answers", "found"),
    [([YES, NO, UNKNOWN], NO), ([YES, UNKNOWN], UNKNOWN), ([], YES)],
)
def test_who_cannot_take_one_thing_is_out(answers: list[Answer], found: Answer) -> None:
    assert all_of(answers) is found


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        ({"a": YES, "b": NO}, {"a"}),
        ({"a": UNKNOWN, "b": NO}, {"a"}),
        ({"a": YES, "b": UNKNOWN, "c": YES}, {"a", "c"}),
        ({"a": YES, "b": YES}, None),
        ({"a": UNKNOWN, "b": UNKNOWN}, None),
        ({"a": NO, "b": NO}, None),
        ({}, None),
    ],
)
def test_an_unknown_one_passes_only_where_none_is_known(
    answers: Mapping[str, Answer], found: set[str] | None
) -> None:
    assert passing(answers) == found


@pytest.mark.parametrize(
    ("tokens", "answer", "window", "found"),
    [
        (1000, 0, None, YES),
        (1000, 0, 1000, UNKNOWN),
        (1001, 0, 1000, NO),
        (900, 0, 1000, YES),
        (900, 100, 1000, UNKNOWN),
        (800, 119, 1000, YES),
        (800, 121, 1000, UNKNOWN),
    ],
)
def test_a_prompt_fits_for_sure_with_a_tenth_more_and_its_answer(
    tokens: int, answer: int, window: int | None, found: Answer
) -> None:
    assert fits(tokens, answer, window) is found
