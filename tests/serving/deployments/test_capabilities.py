"""What a deployment can take: stated, mapped, refused, or unknown."""

from typing import Any

import litellm
import pytest

from litellm_messplus.routing.held import Answer
from litellm_messplus.serving.deployments.capabilities import (
    REFUSALS,
    REFUSING_SECONDS,
    Capabilities,
    Refusals,
    Stated,
    read_stated,
)
from litellm_messplus.serving.litellm_seam import deployments_of
from litellm_messplus.serving.surfaces.requirements import MODALITIES, Capability

IMAGE, TOOLS = Capability.IMAGE, Capability.TOOLS


def stated(model: str, params: dict[str, Any] | None = None, **info: Any) -> Stated:
    """Of a deployment as LiteLLM's router shows it, whose start gives every model an entry."""
    litellm_params = {"model": model, "api_key": "none", **(params or {})}
    entry = {"model_name": "zoo", "litellm_params": litellm_params, "model_info": info}
    router = litellm.Router(model_list=[entry])
    return read_stated(deployments_of(router)[0], router)


def test_a_model_that_nobody_knows_is_unknown_in_everything() -> None:
    found = stated("openai/never-heard-of", {"api_base": "http://localhost:1/v1"})
    assert (found.own, found.mapped, found.window) == ({}, {}, None)
    assert found.takes_answer_format


def test_the_price_map_says_what_a_known_model_takes() -> None:
    found = stated("gpt-4o")
    assert found.mapped[IMAGE] is found.mapped[TOOLS] is Answer.YES
    assert found.window == 128_000


def test_a_known_model_takes_no_attachment_that_the_map_does_not_name() -> None:
    found = stated("gpt-4")
    assert {found.mapped[each] for each in MODALITIES} == {Answer.NO}
    assert found.mapped[TOOLS] is Answer.YES
    assert Capability.REASONING not in found.mapped  # the map leaves much of that out


def test_the_map_is_asked_for_the_base_model_of_a_deployment() -> None:
    found = stated("azure/my-own-name", {"api_base": "http://x.test"}, base_model="azure/gpt-4o")
    assert found.mapped[IMAGE] is Answer.YES


def test_what_the_operator_says_stands_apart_and_may_be_no() -> None:
    found = stated("gpt-4o", supports_vision=False, supports_function_calling=True)
    assert found.own == {IMAGE: Answer.NO, TOOLS: Answer.YES}


def test_gpt_4_does_not_take_a_response_format() -> None:
    assert not stated("gpt-4").takes_answer_format


def test_region_and_window_are_read() -> None:
    found = stated("openai/own", {"region_name": "eu"}, max_input_tokens=512)
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
    assert found.of(replaced, router).own == {IMAGE: Answer.NO}


def test_deployments_are_remembered_up_to_a_bound() -> None:
    found = Capabilities(remembered=3)
    for number in range(10):
        deployment = {
            "model_name": "zoo",
            "litellm_params": {"model": "openai/a"},
            "model_info": {"id": str(number)},
        }
        found.of(deployment, None)
    assert len(found._stated) == 3
    assert found.known("9") is not None
    assert found.known("0") is None


def refuse(found: Refusals, times: int, now: float = 0.0) -> list[Capability]:
    return [each for _ in range(times) for each in found.refused("1", [TOOLS], now)]


def test_a_few_refusals_in_a_row_are_believed_and_told_once() -> None:
    found = Refusals()
    assert refuse(found, REFUSALS - 1) == []
    assert not found.denies("1", TOOLS, 0.0)
    assert refuse(found, 1) == [TOOLS]
    assert refuse(found, REFUSALS) == []
    assert found.denies("1", TOOLS, REFUSING_SECONDS - 1.0)
    assert not found.denies("1", IMAGE, 0.0)
    assert not found.denies("2", TOOLS, 0.0)


def test_after_an_hour_it_is_tried_again_and_must_refuse_as_often() -> None:
    found = Refusals()
    refuse(found, REFUSALS)
    assert not found.denies("1", TOOLS, REFUSING_SECONDS)
    assert refuse(found, REFUSALS - 1, REFUSING_SECONDS) == []
    assert refuse(found, 1, REFUSING_SECONDS) == [TOOLS]


@pytest.mark.parametrize("before", range(1, REFUSALS))
def test_a_success_ends_the_count(before: int) -> None:
    found = Refusals()
    refuse(found, before)
    found.succeeded("1", [TOOLS])
    assert refuse(found, REFUSALS - 1) == []


def test_what_is_watched_is_bounded() -> None:
    found = Refusals(watched=5)
    for number in range(50):
        found.refused(str(number), [TOOLS, IMAGE], 0.0)
    assert len(found._refusing) == 5
