"""Who may see the data on a proxy: what counts as this origin, and LiteLLM's own cookie."""

import json
from base64 import urlsafe_b64encode
from typing import Any

import pytest
from starlette.requests import Request

from litellm_messplus.brain.web import (
    LONGEST_COOKIE,
    SWITCH,
    is_of_this_origin,
    is_surely_of_this_origin,
    is_switched_off,
    key_of_dashboard,
)


def request(**headers: str) -> Request:
    given = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "headers": [(b"host", b"proxy:4000"), *given]})


@pytest.mark.parametrize(
    ("headers", "may_be", "is_surely"),
    [
        ({}, True, False),
        ({"sec_fetch_site": "same-origin"}, True, True),
        ({"sec_fetch_site": "same-origin", "origin": "https://in-front"}, False, True),
        ({"sec_fetch_site": "none"}, True, False),
        ({"sec_fetch_site": "same-site"}, False, False),
        ({"sec_fetch_site": "same-site", "origin": "http://proxy:4000"}, False, False),
        ({"sec_fetch_site": "cross-site"}, False, False),
        ({"origin": "http://proxy:4000"}, True, True),
        ({"origin": "http://proxy:5000"}, False, False),
        ({"origin": "null"}, False, False),
    ],
)
def test_another_site_cannot_use_the_cookie_and_a_change_needs_the_word_of_the_browser(
    headers: dict[str, str], may_be: bool, is_surely: bool
) -> None:
    assert is_of_this_origin(request(**headers)) is may_be
    assert is_surely_of_this_origin(request(**headers)) is is_surely


def token(claims: Any) -> str:
    body = urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"header.{body}.signature"


def test_the_key_in_litellms_cookie_is_found() -> None:
    assert key_of_dashboard(token({"key": "sk-1234", "user_role": "proxy_admin"})) == "sk-1234"


@pytest.mark.parametrize(
    "cookie",
    [
        "",
        "a.b",
        "a.!!!.c",
        "a.bm90IGpzb24.c",
        token([]),
        token({}),
        token({"key": None}),
        token({"key": ""}),
        token({"key": "sk-\r\nx-header: 1"}),
        token({"key": "sk-ä"}),
        token({"key": "x" * LONGEST_COOKIE}),
    ],
)
def test_of_anything_else_there_is_none(cookie: str) -> None:
    assert key_of_dashboard(cookie) is None


@pytest.mark.parametrize(("given", "is_off"), [("true", True), ("1", True), ("", False)])
def test_it_goes_with_litellms_own_switch(
    monkeypatch: pytest.MonkeyPatch, given: str, is_off: bool
) -> None:
    monkeypatch.setenv(SWITCH, given)

    assert is_switched_off() is is_off
