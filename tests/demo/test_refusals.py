"""What a demo says when the proxy refuses: one line."""

from typing import Any

import httpx
import pytest
from openai import APIStatusError

from litellm_messplus.demo.session import refusal, refusal_of_route

URL = "http://proxy:4000"


def refused(status: int, **error: Any) -> str:
    request = httpx.Request("POST", f"{URL}/v1/chat/completions")
    response = httpx.Response(status, request=request)
    return refusal(APIStatusError("refused", response=response, body=error), URL)


@pytest.mark.parametrize(
    "told",
    [
        refused(401, message="expired", type="token_not_found_in_db"),
        refused(403, message="expired"),
        refused(400, message="expired", type="no_db_connection"),  # LiteLLM without a database
    ],
)
def test_a_wrong_key_is_called_that(told: str) -> None:
    assert told == (
        f"the proxy on {URL} refuses the key: give another with --key (it says: expired)"
    )


def test_another_refusal_is_not_blamed_on_the_key() -> None:
    told = refused(400, message="Invalid model name\n  passed", type="invalid_request_error")

    assert told == f"the proxy on {URL} refuses a request: Invalid model name passed"


def test_a_refusal_is_one_short_line_whatever_the_proxy_says() -> None:
    told = refused(500, message="a\nlong\ntrace " * 500)

    assert "\n" not in told
    assert len(told) < 300


def test_without_words_the_status_is_told() -> None:
    assert refused(502) == f"the proxy on {URL} refuses a request: status 502"


def of_route(status: int, **answer: Any) -> str:
    request = httpx.Request("GET", f"{URL}/messplus/requests/r1")
    response = httpx.Response(status, request=request, **answer)
    return refusal_of_route(httpx.HTTPStatusError("", request=request, response=response), URL)


def test_the_plugins_own_words_are_told_with_the_route() -> None:
    told = of_route(503, json={"detail": "the database does not answer: try again"})

    assert told == (
        f"the proxy on {URL} fails at /messplus/requests/r1: "
        "the database does not answer: try again"
    )


@pytest.mark.parametrize(
    "answer",
    [{"text": "Internal Server Error"}, {"json": ["odd"]}, {"json": {}}, {"content": b"\xff"}],
)
def test_an_answer_without_words_is_its_status(answer: dict[str, Any]) -> None:
    assert of_route(500, **answer) == (
        f"the proxy on {URL} fails at /messplus/requests/r1: status 500"
    )


def test_a_key_that_the_plugins_route_refuses_is_called_that() -> None:
    told = of_route(401, json={"error": {"message": "expired"}})

    assert told == (
        f"the proxy on {URL} refuses the key: give another with --key (it says: expired)"
    )


def test_a_proxy_that_ended_meanwhile_is_one_line() -> None:
    told = refusal_of_route(httpx.ReadTimeout("timed\nout"), URL)

    assert told == f"the proxy on {URL} does not answer any more (timed out): see its log"
