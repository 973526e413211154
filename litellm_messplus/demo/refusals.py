"""What the proxy says when it refuses a request, in one line."""

from http import HTTPStatus
from typing import Any

import httpx
from openai import APIStatusError

LONGEST = 200
"""Characters of the proxy's own words."""
KEY_STATUSES = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
UNKNOWN_KEY = "no_db_connection"
"""LiteLLM's type of error, with status 400, for a key that it does not know and would look up in a
database that it does not have."""


def said(error: APIStatusError) -> str:
    """The proxy's own words, else its status."""
    body = error.body
    message = body.get("message") if isinstance(body, dict) else None
    return _shortened(message, error.status_code)


def _shortened(message: object, status: int) -> str:
    words = " ".join(str(message or "").split()) or f"status {status}"
    return words if len(words) <= LONGEST else f"{words[:LONGEST]}..."


def refusal(error: APIStatusError, url: str) -> str:
    """What the proxy on that URL refuses, and why."""
    if error.status_code in KEY_STATUSES or error.type == UNKNOWN_KEY:
        return _refused_key(url, said(error))
    return f"the proxy on {url} refuses a request: {said(error)}"


def _refused_key(url: str, told: str) -> str:
    return f"the proxy on {url} refuses the key: give another with --key (it says: {told})"


def refusal_of_route(error: httpx.HTTPError, url: str) -> str:
    """Why one of the plugin's own routes on that URL gave no answer to go on with."""
    if not isinstance(error, httpx.HTTPStatusError):
        return f"the proxy on {url} does not answer any more ({_reason(error)}): see its log"
    answer = error.response
    told = _shortened(_detail(answer), answer.status_code)
    if answer.status_code in KEY_STATUSES:
        return _refused_key(url, told)
    return f"the proxy on {url} fails at {answer.request.url.path}: {told}"


def _reason(error: httpx.HTTPError) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _detail(answer: httpx.Response) -> object:
    """What the plugin says, or LiteLLM in its place."""
    try:
        body: Any = answer.json()
    except ValueError:
        return None
    if not isinstance(body, dict):
        return None
    error = body.get("error")
    return error.get("message") if isinstance(error, dict) else body.get("detail")
