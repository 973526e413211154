"""Asking every model aside: of whom, and whose answer is taken."""

from typing import Any

import pytest
from openai import OpenAI

from examples.tiny_zoo.demo.asides import Deployment, Models
from examples.tiny_zoo.tasks import Task
from litellm_messplus.serving.deployments.deployment import candidate_of, deployment_id
from tests.support.http_server import Answer, serving


@pytest.mark.parametrize("info", [{}, {"messplus": {"candidate": "openai/large"}}])
@pytest.mark.parametrize("arm", [{}, {"reasoning_effort": "low"}])
def test_candidates_are_those_of_the_plugin(info: dict[str, Any], arm: dict[str, Any]) -> None:
    entry = {
        "model_name": "zoo",
        "litellm_params": {"model": "openai/small", **arm},
        "model_info": {"id": "d1", **info},
    }
    found = Deployment.of(entry)

    assert (found.candidate, found.identity) == (candidate_of(entry), deployment_id(entry))


@pytest.mark.parametrize("header", ["x-messplus-request-id", "x-litellm-model-id"])
def test_an_answer_that_was_routed_is_not_taken(header: str) -> None:
    answer = Answer({}, headers={"x-litellm-model-id": "d1", header: "another"})
    with serving(lambda method, path: answer) as port:
        client = OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="k")
        models = Models(client, [Deployment("zoo", "small", "d1")], "zoo")

        with pytest.raises(SystemExit, match="small cannot be asked aside"):
            models.ask("small", Task("sort", 1, "sort: 52 11", "11 52"))
