"""The configurations of `docs/arms.md` make the arms that it names, and LiteLLM sends each of them
as another request. No network: its own mapping of parameters is asked."""

from typing import Any

import litellm
import pytest
import yaml

from litellm_messplus.serving.deployments.deployment import arm_of, candidate_of
from litellm_messplus.serving.deployments.index import configured_zoos
from litellm_messplus.serving.surfaces.parameters import PARAMETERS
from litellm_messplus.settings.load import load_settings
from tests.support.markdown import ROOT, Document, code_of

PAGE = Document(ROOT / "docs" / "arms.md")
SECTIONS = [block.headings[-1] for block in PAGE.blocks if block.language == "yaml"]


def under(heading: str, language: str) -> str:
    (found,) = (
        block.code
        for block in PAGE.blocks
        if (block.headings[-1], block.language) == (heading, language)
    )
    return found


def sent(deployment: dict[str, Any]) -> dict[str, Any]:
    """What LiteLLM makes of the arm's parameters for its provider; it refuses unknown ones."""
    params = deployment["litellm_params"]
    model, provider, _, _ = litellm.get_llm_provider(params["model"])
    found: dict[str, Any] = litellm.get_optional_params(
        model=model, custom_llm_provider=provider, drop_params=False, **arm_of(deployment)
    )
    return found


def test_the_page_is_about_four_ways_to_serve() -> None:
    assert SECTIONS == ["OpenAI", "Anthropic", "Gemini", "Reasoning models on vLLM"]


@pytest.mark.parametrize("section", SECTIONS)
def test_a_configuration_makes_the_arms_that_the_page_names(section: str) -> None:
    config = yaml.safe_load(under(section, "yaml"))
    (zoo,) = configured_zoos(load_settings(config), config).values()
    assert list(zoo.candidates) == under(section, "text").splitlines()
    assert "high effort" in zoo.largest or "thinking" in zoo.largest


@pytest.mark.parametrize("section", SECTIONS)
def test_litellm_maps_every_parameter_and_sends_each_arm_as_another_request(section: str) -> None:
    config = yaml.safe_load(under(section, "yaml"))
    requests = {}
    for deployment in config["model_list"]:
        params = deployment["litellm_params"]
        model, provider, _, _ = litellm.get_llm_provider(params["model"])
        supported = litellm.get_supported_openai_params(model=model, custom_llm_provider=provider)
        assert set(arm_of(deployment)) - {"extra_body"} <= set(supported or ())
        requests[candidate_of(deployment)] = params["model"], sent(deployment)
    assert len(requests) == len(config["model_list"])
    told = list(requests.values())
    assert all(one not in told[:place] for place, one in enumerate(told))


def test_the_table_has_every_parameter_that_makes_an_arm() -> None:
    rows = PAGE.under("What makes an arm")
    named = [code_of(each) for row in rows for each in row.cells["Parameter"].split(", ")]
    assert named == [*PARAMETERS]
