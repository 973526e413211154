"""LiteLLM's own authentication, for our routes."""

from http import HTTPStatus

from fastapi import HTTPException, Request
from starlette.types import Message

from litellm_messplus.brain.feedback import Caller
from litellm_messplus.brain.routes import Access
from litellm_messplus.serving.litellm_seam import authenticate

KEY_HEADERS = ("authorization", "api-key", "x-api-key", "x-litellm-api-key")
OPEN_TO_EVERY_KEY = b"/v1/models"
_BODY_HEADERS = (b"content-length", b"content-type")


async def caller(request: Request) -> Caller:
    """Return the caller, or raise LiteLLM's own refusal.

    LiteLLM lets only administrators use a route that it does not know, so the key is checked as
    for listing the models, which every valid key may do (measured on 1.106.2).
    """
    if not shows_a_key(request):
        # Without a database of its own, LiteLLM 1.106 answers 500 here (its issue #38978).
        raise HTTPException(401, "no key was given")
    key_hash, is_admin = await authenticate(_as_model_listing(request))
    return Caller(key_hash, is_admin)


async def administrator(request: Request) -> Caller:
    """Return the caller, who must be an administrator: the route shows requests of all keys."""
    asking = await caller(request)
    if not asking.is_admin:
        raise HTTPException(403, "only an administrator of the proxy may see this")
    return asking


async def administrator_or_page(request: Request) -> Caller:
    """Return the caller, who must be an administrator; a browser that sends no key is redirected
    to the page."""
    if not shows_a_key(request) and "text/html" in request.headers.get("accept", ""):
        raise HTTPException(status_code=HTTPStatus.SEE_OTHER, headers={"location": "ui/"})
    return await administrator(request)


def shows_a_key(request: Request) -> bool:
    """Tell whether the request has a key in any header that LiteLLM reads one from."""
    return any(request.headers.get(name) for name in KEY_HEADERS)


def with_key(request: Request, key: str) -> Request:
    """Return the same request with the key in its headers."""
    header = (b"authorization", f"Bearer {key}".encode())
    return Request({**request.scope, "headers": [*request.scope["headers"], header]})


def _as_model_listing(request: Request) -> Request:
    headers = [pair for pair in request.scope["headers"] if pair[0] not in _BODY_HEADERS]
    scope = {
        **request.scope,
        "method": "GET",
        "path": OPEN_TO_EVERY_KEY.decode(),
        "raw_path": OPEN_TO_EVERY_KEY,
        "headers": headers,
        "state": {},
    }
    return Request(scope, receive=_empty_body)


async def _empty_body() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


ACCESS = Access(caller, administrator, administrator_or_page)
"""The access checks of this proxy."""
