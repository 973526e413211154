"""What the proxy says when it refuses a request, in one line."""

from http import HTTPStatus

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
    words = " ".join(str(message or "").split()) or f"status {error.status_code}"
    return words if len(words) <= LONGEST else f"{words[:LONGEST]}..."


def refusal(error: APIStatusError, url: str) -> str:
    """What the proxy on that URL refuses, and why."""
    if error.status_code in KEY_STATUSES or error.type == UNKNOWN_KEY:
        return (
            f"the proxy on {url} refuses the key: give another with --key (it says: {said(error)})"
        )
    return f"the proxy on {url} refuses a request: {said(error)}"
