"""What is logged of one request, in the same form from a database and from a running proxy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

import httpx
from sqlalchemy import RowMapping, Table, column, select, table
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.errors import MessplusError
from litellm_messplus.prediction.surface import VERSION
from litellm_messplus.store import tables
from litellm_messplus.store.history import OUTCOME, History, find, history
from litellm_messplus.store.log import logged_surface
from litellm_messplus.store.reading import reading

# Numbers and texts of the log as a terminal may show them.

UNKNOWN = "unknown"


def exact(value: Any) -> str:
    """Write a number as it is logged: the shortest text that reads back as the same number."""
    return UNKNOWN if value is None else repr(value)


def rounded(value: float | None) -> str:
    """Write a number that was worked out, to 6 digits."""
    return UNKNOWN if value is None else f"{value:.6g}"


def plain(text: str | None, longest: int = 1000) -> str:
    """Keep what is printable, on one line: clients write ids, comments and errors as they like."""
    printable = "".join(each if each.isprintable() else " " for each in text or "")
    return printable if len(printable) <= longest else f"{printable[: longest - 3]}..."


Row = Mapping[str, Any]
HIDDEN = frozenset({"features", "surface", "position", "key_hash"})
"""Columns that the route `GET /messplus/requests/{id}` leaves out, and so does an explanation."""
NOT_SENT = "a proxy does not send the numbers of the prompt: ask the database for them"
VERDICTS = table("verdicts", column("label_id"), column("request_id"))


class NotFoundError(MessplusError):
    """No request is known by the id that was given."""


class NotARequestError(MessplusError):
    """What was answered is not the log of a request of this version."""


@dataclass(frozen=True, slots=True)
class Logged:
    """The rows of one request. ``counting`` holds the ids of the labels that count; where
    ``knows_unseen`` is false, it does so for the served call alone. ``surface`` is None where
    ``surface_note`` says why."""

    request: Row
    outcome: Row
    calls: Sequence[Row]
    labels: Sequence[Row]
    counting: frozenset[str]
    knows_unseen: bool
    surface: tuple[float, ...] | None
    surface_note: str | None


async def logged_in(database: str, given: str) -> Logged:
    """Read the request of that id from the database at a URL, or the SQLite one at a path.

    Raises NotFoundError, and UnreadableDatabaseError where there is no database of this version.
    """
    async with reading(database) as engine:
        return await logged_from(engine, given)


async def logged_from(engine: AsyncEngine, given: str) -> Logged:
    """Read the request of that id from a database that is open. Raises NotFoundError."""
    found = await find(engine, given)
    told = None if found is None else await history(engine, found.request_id)
    if told is None:
        raise NotFoundError(
            f"ID: given {given!r}; allowed: the id of an answer, its x-litellm-call-id or "
            "x-messplus-request-id header, of a request in this database that is not pruned"
        )
    return _of_history(told, await _counting(engine, told.request["request_id"]))


def logged_of(answer: Any) -> Logged:
    """Take the request from what the route answered. Raises NotARequestError."""
    try:
        request, calls, labels = answer, answer["calls"], answer["labels"]
        outcome = answer["outcome"]
        _check(request, tables.requests)
        for rows, kept in ((calls, tables.calls), (labels, tables.labels)):
            for row in rows:
                _check(row, kept)
        _check_names(outcome, {each.name for each in OUTCOME.columns})
    except (TypeError, KeyError, AttributeError) as error:
        raise NotARequestError(f"the answer is not of this version: {error}") from error
    row = {name: value for name, value in request.items() if name in _shown_names(tables.requests)}
    counting = _counting_of_served(outcome, labels)
    return Logged(row, outcome, calls, labels, counting, False, None, NOT_SENT)


def _of_history(told: History, counting: frozenset[str]) -> Logged:
    surface, note = _surface(told.request)
    return Logged(
        request=_plain(told.request),
        outcome=_plain(told.outcome),
        calls=[_plain(row) for row in told.calls],
        labels=[_plain(row) for row in told.labels],
        counting=counting,
        knows_unseen=True,
        surface=surface,
        surface_note=note,
    )


def _plain(row: RowMapping) -> Row:
    """As the route shows it."""
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in row.items()
        if name not in HIDDEN
    }


def _surface(request: RowMapping) -> tuple[tuple[float, ...] | None, str | None]:
    data, version = request["surface"], request["surface_version"]
    if data is None:
        return None, "no numbers of the prompt are logged"
    found = logged_surface(data, version)
    if found is None:
        return None, f"the numbers of the prompt are {version}, this version reads {VERSION}"
    return tuple(map(float, found)), None


async def _counting(engine: AsyncEngine, request_id: str) -> frozenset[str]:
    query = select(VERDICTS.c.label_id).where(VERDICTS.c.request_id == request_id)
    async with engine.connect() as connection:
        return frozenset((await connection.execute(query)).scalars())


def _counting_of_served(outcome: Row, labels: Sequence[Row]) -> frozenset[str]:
    """The label that the outcome is of: of its kind, among the newest of each source."""
    served = f"{outcome['request_id']}.0"
    newest = {
        label["source"]: label
        for label in labels
        if label["call_id"] == served and label["weight"] > 0.0
    }
    matching = [
        label["label_id"]
        for label in newest.values()
        if label["kind"] == outcome["satisfaction_kind"]
        and label["value"] == outcome["satisfaction"]
        and label["weight"] == outcome["satisfaction_weight"]
    ]
    return frozenset(matching[:1])


def _shown_names(kept: Table) -> set[str]:
    return {each.name for each in kept.columns} - HIDDEN


def _check(row: Row, kept: Table) -> None:
    _check_names(row, _shown_names(kept))


def _check_names(row: Row, names: set[str]) -> None:
    if missing := sorted(names - row.keys()):
        raise KeyError(", ".join(missing))


# Asking a running proxy for one request, and sending it feedback.

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
    answer = _ask("GET", url, key, f"requests/{quote(given, safe='')}")
    try:
        return logged_of(answer)
    except NotARequestError as error:
        raise NoAnswerError(f"what answers on {url} is no proxy of this version") from error


def send_feedback(url: str, key: str, given: str, satisfied: bool, comment: str | None) -> str:
    """Post a verdict, and say what became of it. Raises NoAnswerError where it was not taken."""
    body = {"id": given, "satisfied": satisfied, "comment": comment}
    answer = _ask("POST", url, key, "feedback", body)
    try:
        meaning = OUTCOMES[answer["outcome"]]
        return f"{answer['call_id']}: satisfaction {answer['satisfaction']}, {meaning}"
    except (TypeError, KeyError) as error:
        raise NoAnswerError(f"what answers on {url} is no proxy of this version") from error


def _ask(method: str, url: str, key: str, route: str, body: Any = None) -> Any:
    address = f"{url.rstrip('/')}/messplus/{route}"
    headers = {"authorization": f"Bearer {key}"}
    try:
        answer = httpx.request(method, address, headers=headers, json=body, timeout=SECONDS)
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
    """The reason that the plugin gives, on one line; None where there is none."""
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
