"""HTTP requests to a running proxy: for its figures, and for one logged request."""

from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from litellm_messplus.inspecting.logged import Logged, NotARequestError, logged_of, plain
from litellm_messplus.runtime.errors import MessplusError

SECONDS = 60.0
"""How long the proxy may take to answer."""


class NoAnswerError(MessplusError):
    """A proxy that does not give the requested answer, for the reason in the message."""


class NoRouteError(NoAnswerError):
    """A proxy without the requested route."""


class OtherServerError(NoAnswerError):
    """A server that is not a proxy with this version of the plugin."""

    def __init__(self, url: str) -> None:
        super().__init__(f"the server on {url} is not a proxy with this version of the plugin")


def logged_by(url: str, key: str, given: str) -> Logged:
    """Fetch the request of that id from `GET /messplus/requests/{id}`.

    Raises NoAnswerError if the proxy answers something else, or not at all.
    """
    answer = call_route("GET", url, key, f"requests/{quote(given, safe='')}")
    try:
        return logged_of(answer)
    except NotARequestError as error:
        raise OtherServerError(url) from error


def call_route(method: str, url: str, key: str, route: str, body: Any = None, **query: int) -> Any:
    """Return the JSON that a route of the plugin answers; None if the answer is not JSON.

    Raises NoAnswerError if no proxy answers, or if it refuses; NoRouteError if it has no such
    route.
    """
    address = f"{url.rstrip('/')}/messplus/{route}"
    headers = {"authorization": f"Bearer {key}"}
    try:
        answer = httpx.request(
            method, address, params=query, headers=headers, json=body, timeout=SECONDS
        )
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise NoAnswerError(f"no proxy answers on {url}: {plain(str(error))}") from error
    if answer.status_code != HTTPStatus.OK:
        raise _refusal(url, answer)
    return _json(answer)


def _refusal(url: str, answer: httpx.Response) -> NoAnswerError:
    message, kind = error_of(answer)
    words = in_one_line(message, answer.status_code)
    if refuses_key(answer.status_code, kind):
        return NoAnswerError(wrong_key(url, words))
    if answer.status_code == HTTPStatus.NOT_FOUND and message in (None, "Not Found"):
        return NoRouteError(f"the proxy on {url} has no such route: it runs without the plugin")
    return NoAnswerError(f"the proxy on {url} answered {answer.status_code}: {words}")


# Refusals of a proxy: its own message, on one line, and what to do about a key.

LONGEST = 200
"""Most characters of the proxy's own message."""
KEY_STATUSES = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
UNKNOWN_KEY = "no_db_connection"
"""LiteLLM's type of error, with status 400, for an unknown key that it would look up in a database
that it does not have."""


def refuses_key(status: int, kind: object) -> bool:
    """Tell whether an answer of that status, and LiteLLM's type of error, refuses the key."""
    return status in KEY_STATUSES or kind == UNKNOWN_KEY


def wrong_key(url: str, words: str) -> str:
    """Write what to do about a key that the proxy at ``url`` refuses with these words."""
    return f"the proxy on {url} refuses the key: give another with --key (it says: {words})"


def in_one_line(message: object, status: int) -> str:
    """Shorten a proxy's message to one line; without a message, give its status."""
    return plain(" ".join(str(message or "").split()), LONGEST) or f"status {status}"


def error_of(answer: httpx.Response) -> tuple[object, object]:
    """Read the error of the plugin, or else of LiteLLM, and LiteLLM's type of error; None for what
    is missing."""
    found = _json(answer)
    if not isinstance(found, dict):
        return None, None
    error = found.get("error")
    if isinstance(error, dict):
        return error.get("message"), error.get("type")
    return _detail(found.get("detail")), None


def _detail(found: object) -> object:
    """Write the problems of a request body, which come as a list, in words."""
    if not isinstance(found, list):
        return found
    problems = [each for each in found if isinstance(each, dict)]
    return "; ".join(
        f"{'.'.join(map(str, each.get('loc', ())))}: {each.get('msg')}" for each in problems
    )


def _json(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        return None
