"""Asking a running proxy over HTTP: for its figures, and for one request."""

from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from litellm_messplus.inspecting.logged import Logged, NotARequestError, logged_of, plain
from litellm_messplus.runtime.errors import MessplusError

SECONDS = 60.0
"""How long the proxy may take to answer."""


class NoAnswerError(MessplusError):
    """A proxy does not give what it was asked for; the message says why, and what to do."""


class NoRouteError(NoAnswerError):
    """A proxy does not have the route that was asked."""


class OtherServerError(NoAnswerError):
    """A server that answers something else than a proxy with this version of the plugin."""

    def __init__(self, url: str) -> None:
        super().__init__(f"the server on {url} is not a proxy with this version of the plugin")


def logged_by(url: str, key: str, given: str) -> Logged:
    """Take the request of that id from `GET /messplus/requests/{id}`.

    Raises NoAnswerError where the proxy answers something else, or not at all.
    """
    answer = ask("GET", url, key, f"requests/{quote(given, safe='')}")
    try:
        return logged_of(answer)
    except NotARequestError as error:
        raise OtherServerError(url) from error


def ask(method: str, url: str, key: str, route: str, body: Any = None, **parameters: int) -> Any:
    """Give what a route of the plugin answers, of its JSON; None where it answers no JSON.

    Raises NoAnswerError where no proxy answers, and where it refuses; NoRouteError where it has no
    such route.
    """
    address = f"{url.rstrip('/')}/messplus/{route}"
    headers = {"authorization": f"Bearer {key}"}
    try:
        answer = httpx.request(
            method, address, params=parameters, headers=headers, json=body, timeout=SECONDS
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


# What a proxy says where it refuses: its own words, on one line, and what to do about a key.

LONGEST = 200
"""Characters of the proxy's own words."""
KEY_STATUSES = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
UNKNOWN_KEY = "no_db_connection"
"""LiteLLM's type of error, with status 400, for a key that it does not know and would look up in a
database that it does not have."""


def refuses_key(status: int, kind: object) -> bool:
    """Tell whether an answer of that status, and LiteLLM's type of error, refuses the key."""
    return status in KEY_STATUSES or kind == UNKNOWN_KEY


def wrong_key(url: str, words: str) -> str:
    """Say what to do about a key that the proxy there refuses with these words."""
    return f"the proxy on {url} refuses the key: give another with --key (it says: {words})"


def in_one_line(message: object, status: int) -> str:
    """Shorten a proxy's own words, else give its status."""
    return plain(" ".join(str(message or "").split()), LONGEST) or f"status {status}"


def error_of(answer: httpx.Response) -> tuple[object, object]:
    """Read what the plugin says, or LiteLLM in its place, and LiteLLM's type of error; None for
    what is not there."""
    found = _json(answer)
    if not isinstance(found, dict):
        return None, None
    error = found.get("error")
    if isinstance(error, dict):
        return error.get("message"), error.get("type")
    return _detail(found.get("detail")), None


def _detail(found: object) -> object:
    """Write the problems of a body in words, which come as a list."""
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
