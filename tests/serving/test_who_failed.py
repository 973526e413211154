"""An error tells who failed: by its class, and by what providers say of their accounts."""

import inspect
import json
import tempfile
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import HTTPException
from litellm import RateLimitError, exceptions
from litellm.litellm_core_utils.exception_mapping_utils import exception_type
from litellm.llms.anthropic.common_utils import AnthropicError
from litellm.llms.bedrock.common_utils import BedrockError
from litellm.llms.openai.common_utils import OpenAIError
from litellm.llms.vertex_ai.common_utils import VertexAIError
from litellm.types.router import RouterRateLimitError, RouterRateLimitErrorBasic

from litellm_messplus.brain.place import shared_path
from litellm_messplus.runtime.vocabulary import Failure
from litellm_messplus.serving.deployments.deployment import Failing
from litellm_messplus.serving.failures import who_failed

CLIENT, MODEL = Failure.REFUSED, Failure.UPSTREAM
COOLED = RouterRateLimitError(
    model="zoo", cooldown_time=1.0, enable_pre_call_checks=False, cooldown_list=[]
)
REQUEST = httpx.Request("POST", "http://model")
STATUSES = {"PermissionDeniedError": 403, "UnprocessableEntityError": 422}
GIVEN: dict[str, Any] = {"status_code": 500, "failures": [], "request": REQUEST}
"""Arguments of LiteLLM's errors by name; the others are texts."""
OTHERS = {
    "BadRequestError": CLIENT,
    "BlockedPiiEntityError": CLIENT,
    "BudgetExceededError": CLIENT,
    "CallerCredentialAuthenticationError": CLIENT,
    "CallerCredentialRateLimitError": CLIENT,
    "ContentPolicyViolationError": CLIENT,
    "ContextWindowExceededError": CLIENT,
    "EndpointNotSupportedByModelError": CLIENT,
    "GuardrailRaisedException": CLIENT,
    "ImageFetchError": CLIENT,
    "InvalidRequestError": CLIENT,
    "MalformedRequestFieldError": CLIENT,
    "ModifyResponseException": CLIENT,
    "RejectedRequestError": CLIENT,
    "SensitiveDataRouteException": CLIENT,
    "Timeout": Failure.DEADLINE,
    "UnprocessableEntityError": CLIENT,
    "UnsupportedEndpointError": CLIENT,
    "UnsupportedParamsError": CLIENT,
}
"""Who failed, by the class of LiteLLM's error; a model, if it is none of these."""
ERRORS = {
    name: each
    for name, each in vars(exceptions).items()
    if inspect.isclass(each)
    and issubclass(each, Exception)
    and each.__module__ == exceptions.__name__
}


def made(kind: type[Exception]) -> Exception:
    if kind.__init__ is Exception.__init__:
        return kind("no")
    needed = inspect.signature(kind).parameters.values()
    names = [each.name for each in needed if each.default is each.empty and each.name != "kwargs"]
    response = httpx.Response(STATUSES.get(kind.__name__, 400), request=REQUEST)
    return kind(**{name: {**GIVEN, "response": response}.get(name, "no") for name in names})


@pytest.mark.parametrize("name", ERRORS)
def test_every_error_of_litellm_has_its_class(name: str) -> None:
    assert who_failed(made(ERRORS[name])) is OTHERS.get(name, MODEL)


def test_no_class_is_of_an_error_unknown_to_any_litellm() -> None:
    newer = {"EndpointNotSupportedByModelError", "UnsupportedEndpointError"}
    assert set(OTHERS) - newer <= set(ERRORS)


def said(line: str) -> Exception:
    """What LiteLLM makes of a provider's answer: its name, status, code and message."""
    provider, status, code, message = line.split(" ", 3)
    code = "" if code == "-" else code
    body: dict[str, Any] = {"error": {"message": message, "type": "error", "code": code}}
    if provider == "anthropic":
        body = {"type": "error", "error": {"type": code, "message": message}}
    elif provider == "gemini":
        body = {"error": {"code": 400, "message": message, "details": [{"reason": code}]}}
    elif provider == "xai":
        body = {"code": code, "error": message}
    elif provider in ("bedrock", "cohere"):
        body = {"message": message}
    elif provider == "mistral":
        body = {"detail": [{"loc": ["body"], "msg": message, "input": QUOTED}]}
    kind = {"anthropic": AnthropicError, "gemini": VertexAIError, "bedrock": BedrockError}
    if provider in kind:
        error: Exception = kind[provider](status_code=int(status), message=json.dumps(body))
    else:
        error = OpenAIError(
            int(status), f"Error code: {status} - {body}", body=body.get("error") or body
        )
    try:
        exception_type("model", error, provider, {}, {})
    except Exception as found:
        return found
    raise AssertionError(error)


QUOTED = "Your credit balance is too low to access the Anthropic API."
OF_ACCOUNTS = f"""
openai 429 insufficient_quota You exceeded your current quota, please check your plan.
openai 400 - You exceeded your current quota, please check your plan and billing details.
openai 400 billing_hard_limit_reached Billing hard limit has been reached
openai 400 - Billing hard limit has been reached
openai 400 account_deactivated The account is gone
openai 401 invalid_api_key Incorrect API key provided: sk-1***.
anthropic 400 invalid_request_error {QUOTED} Please go to Plans & Billing.
anthropic 400 invalid_request_error You have reached your specified API usage limits. You will wait.
anthropic 400 invalid_request_error This organization has been disabled.
anthropic 403 permission_error Your API key does not have permission to use the resource.
gemini 400 - API key expired. Please renew the API key.
gemini 400 - API key not valid. Please pass a valid API key.
gemini 400 API_KEY_INVALID Refused
gemini 400 - User location is not supported for the API use.
gemini 403 SERVICE_DISABLED Generative Language API has not been used in project 1 before.
azure 401 401 Access denied due to invalid subscription key or wrong API endpoint.
bedrock 400 - Operation not allowed
bedrock 400 - The provided model identifier is invalid.
mistral 401 - Unauthorized
deepseek 402 invalid_request_error Insufficient Balance
deepseek 400 invalid_request_error Insufficient Balance
openrouter 402 402 This request requires more credits, or fewer max_tokens.
openrouter 400 400 vendor/model-9 is not a valid model ID
together_ai 402 credit_limit Credit limit exceeded, please add credits.
groq 400 organization_restricted Organization has been restricted. Please reach out to support.
cohere 429 - You are using a Trial key, which is limited to 1000 API calls / month.
xai 400 invalid Incorrect API key provided: sk***. You can obtain one from https://console.x.ai.
xai 403 forbidden Your newly created team doesn't have any credits yet.
dashscope 400 Arrearage Access denied, please make sure your account is in good standing.
moonshot 400 - Your account org-1 is suspended, please check your plan and billing details.
litellm_proxy 400 budget_exceeded Budget has been exceeded! Current cost: 2, Max budget: 1
hosted_vllm 500 500 The engine is dead
"""
OF_CLIENTS = f"""
openai 400 invalid_value Invalid value: '{QUOTED}'. Supported values are: 'auto'.
openai 400 - '{QUOTED}' is not of type 'object' - 'messages.0'
openai 400 invalid_prompt Invalid prompt: {QUOTED}
openai 400 unknown_parameter Unknown parameter: 'You exceeded your current quota'.
openai 400 context_length_exceeded This model's maximum context length is 8192 tokens.
openai 400 - Your input exceeds the context window of this model.
openai 400 - You must provide a model parameter
openai 400 string_above_max_length Invalid 'tools': string too long.
anthropic 400 invalid_request_error {QUOTED[:33]}: Extra inputs are not permitted
anthropic 400 invalid_request_error role: Input should be 'user', given "{QUOTED}"
anthropic 400 invalid_request_error prompt is too long: 210000 tokens > 200000 maximum
anthropic 400 invalid_request_error `max_tokens` must be greater than `thinking.budget_tokens`.
gemini 400 - The input token count (2000000) exceeds the maximum number of tokens allowed.
gemini 400 - Invalid value at "contents[0].role": {QUOTED}
azure 400 content_filter The response was filtered due to Azure OpenAI's content management policy.
bedrock 400 - Input is too long for requested model.
mistral 422 - Input should be a valid string
together_ai 400 - Input validation error: `inputs` must have less than 4097 tokens
groq 400 tool_use_failed Failed to call a function. Please adjust your prompt.
cohere 400 - invalid request: message must be at least 1 token long
hosted_vllm 400 400 [{{'type': 'value_error', 'msg': 'bad', 'input': '{QUOTED}'}}]
xai 403 forbidden Content violates usage guidelines. Failed check: safety
openrouter 403 403 Your chosen model requires moderation and your input was flagged.
"""
ACCOUNTS, CLIENTS = (
    list(map(said, text.strip().splitlines())) for text in (OF_ACCOUNTS, OF_CLIENTS)
)


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        *((each, MODEL) for each in ACCOUNTS),
        *((each, CLIENT) for each in CLIENTS),
        (HTTPException(499, "hung up"), Failure.CLIENT_GONE),
        (TimeoutError(), Failure.DEADLINE),
        (ValueError("nonsense"), MODEL),
        (COOLED, Failure.NO_DEPLOYMENT),
        (RouterRateLimitErrorBasic("zoo"), Failure.NO_DEPLOYMENT),
        (ValueError("No deployments available - crossed budget: openai"), Failure.NO_DEPLOYMENT),
        (RateLimitError("Model rate limit exceeded. RPM=6", "", ""), Failure.NO_DEPLOYMENT),
        (RateLimitError("No deployments available", "litellm_proxy", ""), MODEL),
    ],
    ids=lambda each: str(each)[:60],
)
def test_the_error_tells_who_failed(error: Exception, failure: Failure) -> None:
    assert who_failed(error) is failure


def test_what_was_called_before_none_was_left_failed() -> None:
    assert who_failed(COOLED, is_called=True) is MODEL


def test_the_account_of_a_key_is_its_owners() -> None:
    *refused, dead = (who_failed(each, is_own=True) for each in ACCOUNTS)
    assert {*refused} == {CLIENT}
    assert dead is MODEL


def test_what_litellm_cannot_read_is_the_clients() -> None:
    try:
        len(5)  # type: ignore[arg-type]
    except TypeError as error:
        unread = exceptions.APIConnectionError("OpenAIException - no len()", "openai", "small")
        unread.__context__ = error
    gone = exceptions.APIConnectionError("no module", "vertex_ai", "small")
    gone.__context__ = ImportError("vertexai")

    assert who_failed(unread, is_unread=True) is CLIENT
    assert who_failed(unread) is MODEL
    assert who_failed(gone, is_unread=True) is MODEL


def test_failing_deployments_are_passed_over_for_a_minute() -> None:
    now = [0.0]
    failing = Failing(clock=lambda: now[0])
    both = [{"model_info": {"id": name}} for name in ("one", "two")]
    error = CLIENTS[0]
    for _ in range(2):
        failing.failed("one", MODEL, error)
        failing.failed("two", CLIENT, error)
        failing.failed("two", MODEL, TimeoutError())
    assert failing.without(both) == both
    failing.answered("one")
    for _ in range(3):
        failing.failed("one", MODEL, error)
    assert failing.without(both) == both[1:]
    assert failing.without(both[:1]) == both[:1]  # better than none

    now[0] = 61.0
    assert failing.without(both) == both
    failing.tried({"one", "two"})
    assert failing.without(both) == both[1:]  # until it is known what became of the trial
    failing.answered("one")
    assert failing.without(both) == both


def test_the_workers_of_a_machine_count_failures_together(tmp_path: Path) -> None:
    workers = [Failing(tmp_path / "failing") for _ in range(4)]
    both = [{"model_info": {"id": name}} for name in ("one", "two")]
    sent = 0
    for worker in workers * 3:
        if worker.without(both) == both:
            worker.failed("one", MODEL, CLIENTS[0])
            sent += 1
    assert sent == 3

    workers[0].answered("one")
    assert all(worker.without(both) == both for worker in workers)
    assert {each.name for each in tmp_path.iterdir()} == {"failing"}


@pytest.mark.parametrize("written", [b"", b"[1]", b'{"one": 1}', b"\xff"], ids=ascii)
def test_a_worker_whose_file_is_broken_goes_by_its_own_requests(
    tmp_path: Path, written: bytes
) -> None:
    path = tmp_path / "failing"
    path.write_bytes(written)
    failing, one = Failing(path), {"model_info": {"id": "one"}}
    for identity in ("one", "two") * 3:
        failing.failed(identity, MODEL, CLIENTS[0])
    path.unlink()
    path.mkdir()
    failing.failed("two", MODEL, CLIENTS[0])

    assert failing.without([one, {"model_info": {"id": "two"}}, {}])[-1] == {}
    assert failing.without([one]) == [one]


def test_the_oldest_of_too_many_that_fail_is_forgotten() -> None:
    failing = Failing()
    both = [{"model_info": {"id": name}} for name in ("0", "4096")]
    for number in range(4_097):
        for _ in range(3):
            failing.failed(str(number), MODEL, CLIENTS[0])
    assert failing.without(both) == both[:1]


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite+aiosqlite:////srv/messplus.db?timeout=3", "/srv/messplus.db-failing"),
        ("postgresql+asyncpg://us:secret@host/db", tempfile.gettempdir()),
    ],
    ids=["file", "Postgres"],
)
def test_a_database_has_its_own_file(url: str, path: str) -> None:
    found = str(shared_path(url, "failing"))
    assert found.startswith(path)
    assert found.endswith("-failing")
    assert "secret" not in found
