"""What LiteLLM writes into the id of a response."""

import pytest
from litellm.responses.utils import ResponsesAPIRequestUtils

from litellm_messplus.serving.surfaces.answers import deployment_of_response, plain_response_id


def test_the_deployment_that_gave_a_response_is_in_its_id() -> None:
    given = ResponsesAPIRequestUtils._build_responses_api_response_id(
        custom_llm_provider="openai", model_id="deployment-1", response_id="resp_123"
    )
    assert deployment_of_response(given) == "deployment-1"
    assert plain_response_id(given) == given


@pytest.mark.parametrize("given", ["resp_123", "chatcmpl-1", "", "resp_", "resp_bGl0ZWxsbTo="])
def test_an_id_of_others_tells_of_no_deployment(given: str) -> None:
    assert deployment_of_response(given) is None
