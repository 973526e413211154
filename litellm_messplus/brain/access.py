"""Who may use a route: LiteLLM's own authentication, by the worker that got the request."""

from http import HTTPStatus

from fastapi import HTTPException, Request

from litellm_messplus.brain.messages import Caller
from litellm_messplus.brain.routes import Access

AUTHENTICATE = "messplus.authenticate"
"""The name in the ASGI scope of what checks a key: it gets the headers, and returns a `Caller`."""
KEY_HEADERS = ("authorization", "api-key", "x-api-key", "x-litellm-api-key")


async def caller(request: Request) -> Caller:
    """Return the caller, or raise LiteLLM's own refusal."""
    if not shows_a_key(request):
        # Without a database of its own, LiteLLM 1.106 answers 500 here (its issue #38978).
        raise HTTPException(401, "no key was given")
    found: Caller = await request.scope[AUTHENTICATE](request.headers.raw)
    return found


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


ACCESS = Access(caller, administrator, administrator_or_page)
"""The access checks of this proxy."""
