"""Asking a running proxy over HTTP: for its figures, for one request, and to take feedback."""

from typing import Any
from urllib.parse import quote

import httpx

from litellm_messplus.errors import MessplusError
from litellm_messplus.inspecting.logged import Logged, NotARequestError, logged_of, plain

SECONDS = 60.0
"""How long the proxy may take to answer."""
OUTCOMES = {
    "counted": "it counts from now on",
    "unchanged": "the newest verdict on this call said so already, so nothing was written",
    "beyond_influence": "it is kept and does not count: this key has said more than one key may",
}


class NoAnswerError(MessplusError):
    """A proxy does not give what it was asked for; the message says why, and what to do."""


def logged_by(url: str, key: str, given: str) -> Logged:
    """Take the request of that id from `GET /messplus/requests/{id}`.

    Raises NoAnswerError where the proxy answers something else, or not at all.
    """
    answer = ask("GET", url, key, f"requests/{quote(given, safe='')}")
    try:
        return logged_of(answer)
    except NotARequestError as error:
        raise NoAnswerError(
            f"the server on {url} is not a proxy with this version of the plugin"
        ) from error


def send_feedback(url: str, key: str, given: str, satisfied: bool, comment: str | None) -> str:
    """Post a verdict, and say what became of it. Raises NoAnswerError where it was not taken."""
    body = {"id": given, "satisfied": satisfied, "comment": comment}
    answer = ask("POST", url, key, "feedback", body)
    try:
        meaning = OUTCOMES[answer["outcome"]]
        return f"{answer['call_id']}: satisfaction {answer['satisfaction']}, {meaning}"
    except (TypeError, KeyError) as error:
        raise NoAnswerError(
            f"the server on {url} is not a proxy with this version of the plugin"
        ) from error


def ask(method: str, url: str, key: str, route: str, body: Any = None, **parameters: int) -> Any:
    """Give what a route of the plugin answers, of its JSON; None where it answers no JSON.

    Raises NoAnswerError where no proxy answers, and where it refuses.
    """
    address = f"{url.rstrip('/')}/messplus/{route}"
    headers = {"authorization": f"Bearer {key}"}
    try:
        answer = httpx.request(
            method, address, params=parameters, headers=headers, json=body, timeout=SECONDS
        )
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise NoAnswerError(f"no proxy answers on {url}: {plain(str(error))}") from error
    if answer.status_code != 200:
        raise NoAnswerError(_refusal(url, answer))
    return _json(answer)


def _refusal(url: str, answer: httpx.Response) -> str:
    said = _detail(answer)
    if answer.status_code in (401, 403):
        return f"the proxy on {url} refuses the key: give another with --key"
    if answer.status_code == 404 and (said is None or said == "Not Found"):
        return f"the proxy on {url} has no such route: it runs without the plugin"
    return f"the proxy on {url} answered {answer.status_code}" + (f": {said}" if said else "")


def _detail(answer: httpx.Response) -> str | None:
    """Read the reason that the plugin gives, on one line; None where there is none."""
    found = _json(answer)
    detail = found.get("detail") if isinstance(found, dict) else None
    if isinstance(detail, list):
        problems = [each for each in detail if isinstance(each, dict)]
        detail = "; ".join(
            f"{'.'.join(map(str, each.get('loc', ())))}: {each.get('msg')}" for each in problems
        )
    return plain(detail, 300) if isinstance(detail, str) else None


def _json(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        return None
