"""Asking every model aside: against a proxy that is scripted."""

import json
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from openai import APIStatusError, OpenAI

from litellm_messplus.demo.asides import Aside, Deployment, Models, list_deployments
from litellm_messplus.demo.tasks import Task
from litellm_messplus.proxy.deployments.deployment import candidate_of, deployment_id

TASK = Task("sort", 1, "sort: 52 11", "11 52")


def listed(zoo: str, model: str, identity: str, **info: Any) -> dict[str, Any]:
    """A deployment as `GET /v1/model/info` shows it."""
    return {
        "model_name": zoo,
        "litellm_params": {"model": model},
        "model_info": {"id": identity, **info},
    }


LISTED = [
    listed("zoo", "openai/small", "d1"),
    listed("zoo", "openai/large", "d2"),
    listed("zoo", "openai/small", "d3"),  # a replica
    listed("zoo", "vllm/Large", "d4", messplus={"candidate": "openai/large"}),
    listed("other", "openai/huge", "d5"),
]


@dataclass
class ScriptedProxy:
    """Answers as the deployment that is asked for; keeps what it was sent."""

    answer: str = TASK.answer
    headers: dict[str, str] = field(default_factory=lambda: {"x-litellm-response-cost": "1.8e-06"})
    failure: httpx.Response | None = None
    asked: list[dict[str, Any]] = field(default_factory=list)

    def client(self) -> OpenAI:
        http = httpx.Client(transport=httpx.MockTransport(self._handle))
        return OpenAI(base_url="http://proxy/v1", api_key="k", http_client=http, max_retries=0)

    def models(self, zoo: str = "zoo") -> Models:
        client = self.client()
        return Models(client, list_deployments(client), zoo)

    def _handle(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/model/info":
            return httpx.Response(200, json={"data": LISTED})
        assert request.url.path == "/v1/chat/completions"
        body = json.loads(request.content)
        self.asked.append(body)
        if self.failure is not None:
            return self.failure
        headers = {"x-litellm-model-id": body["model"], **self.headers}
        return httpx.Response(200, headers=headers, json=_completion(self.answer))


def _completion(text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": 12,
            "completion_tokens": 6,
            "total_tokens": 18,
            "prompt_tokens_details": {"cached_tokens": 4},
        },
    }


@pytest.mark.parametrize("entry", LISTED)
def test_candidates_are_those_of_the_plugin(entry: dict[str, Any]) -> None:
    found = Deployment.of(entry)

    assert (found.candidate, found.identity) == (candidate_of(entry), deployment_id(entry))


def test_one_deployment_is_asked_for_each_candidate() -> None:
    proxy = ScriptedProxy()
    models = proxy.models()

    models.ask("openai/small", TASK)
    models.ask("openai/large", TASK)

    assert [body["model"] for body in proxy.asked] == ["d1", "d2"]


def test_the_answer_is_that_model_s_own() -> None:
    """No fallback, nothing from a cache, and nothing that says what is right."""
    proxy = ScriptedProxy()

    proxy.models().ask("openai/small", TASK)

    (body,) = proxy.asked
    assert body["disable_fallbacks"] is True
    assert body["cache"] == {"no-cache": True}
    assert "metadata" not in body


def test_the_answer_is_checked_and_its_cost_taken() -> None:
    right, wrong = ScriptedProxy(" 11 52\n"), ScriptedProxy("52 11")

    assert right.models().ask("openai/small", TASK) == Aside("d1", True, 1.8e-06, (12, 6, 4))
    assert wrong.models().ask("openai/small", TASK) == Aside("d1", False, 1.8e-06, (12, 6, 4))


def test_a_cost_that_is_not_stated_is_unknown() -> None:
    assert ScriptedProxy(headers={}).models().ask("openai/small", TASK).cost is None


def test_a_model_without_a_deployment_is_told() -> None:
    with pytest.raises(SystemExit, match="messplus: openai/huge cannot be asked aside: the proxy"):
        ScriptedProxy().models().ask("openai/huge", TASK)


def test_a_model_that_refuses_is_told_in_one_line() -> None:
    failure = httpx.Response(404, json={"error": {"message": "no such\nmodel"}})

    with pytest.raises(SystemExit) as raised:
        ScriptedProxy(failure=failure).models().ask("openai/small", TASK)

    assert str(raised.value) == "messplus: openai/small cannot be asked aside: no such model"


@pytest.mark.parametrize("header", ["x-messplus-request-id", "x-litellm-model-id"])
def test_an_answer_that_was_routed_is_not_taken(header: str) -> None:
    proxy = ScriptedProxy(headers={header: "another"})

    with pytest.raises(SystemExit, match="openai/small cannot be asked aside"):
        proxy.models().ask("openai/small", TASK)


def test_a_list_that_is_refused_is_the_caller_s_to_tell() -> None:
    http = httpx.Client(transport=httpx.MockTransport(lambda request: httpx.Response(401)))

    with pytest.raises(APIStatusError):
        list_deployments(OpenAI(base_url="http://p/v1", api_key="k", http_client=http))
