"""One row of a file of labels, or why it is refused."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from litellm_messplus.errors import MessplusError

LONGEST_ID = 2048
LONGEST_COMMENT = 10_000
"""Both as `POST /messplus/feedback` takes them."""
LONGEST_SOURCE = 57
"""The column holds 64 characters, of which `import:` takes seven."""
MILLISECONDS_FROM = 1e11
"""A number of at least this is a time in milliseconds: in seconds it would be the year 5138."""
YES, NO = frozenset({"true", "yes", "1", "1.0"}), frozenset({"false", "no", "0", "0.0"})


class ImportingError(MessplusError):
    """Nothing of the file can be imported; the message says what was given and what is allowed."""


class Why(StrEnum):
    """The kinds of refusal, under which rows are counted."""

    UNREADABLE = "unreadable"
    OUT_OF_RANGE = "value out of range"
    UNKNOWN = "unknown id"
    AMBIGUOUS = "ambiguous id"
    FULL = "too many labels"


@dataclass(frozen=True, slots=True)
class Refused:
    """A row that is not imported. ``line`` is its line in the file, or its number in the list."""

    line: int
    why: Why
    reason: str


@dataclass(frozen=True, slots=True)
class Row:
    """A label in a file. Of the ``ids`` the first that the log knows counts; ``source`` and ``at``
    are None where the row does not say."""

    line: int
    ids: tuple[str, ...]
    value: float
    source: str | None = None
    at: datetime | None = None
    comment: str | None = None


class RefusedError(Exception):
    """Raised while a row is read; becomes a `Refused` with its line."""

    def __init__(self, why: Why, reason: str) -> None:
        self.why = why
        self.reason = reason
        super().__init__(reason)


def is_given(value: object) -> bool:
    """Whether a cell holds anything."""
    return value is not None and value != ""


def read_id(column: str, value: object) -> str:
    """Raises RefusedError for an id that is no text, or too long."""
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise _unreadable(column, value, "a text that is not empty")
    found = str(value).strip()
    if not 0 < len(found) <= LONGEST_ID:
        raise _unreadable(column, found, f"1 to {LONGEST_ID} characters")
    return found


def read_satisfied(column: str, value: object) -> float:
    """Raises RefusedError for what is neither yes nor no."""
    told = str(value).strip().lower()
    if told not in YES | NO:
        raise _out_of_range(column, value, "true, false, 1, 0, yes or no")
    return float(told in YES)


def read_score(column: str, value: object) -> float:
    """Raises RefusedError for what is no number from 0 to 1."""
    found = _number(value)
    if found is None:
        raise _unreadable(column, value, "a number from 0 to 1")
    if not 0.0 <= found <= 1.0:
        raise _out_of_range(column, value, "a number from 0 to 1")
    return found


def read_rating(column: str, value: object) -> float:
    """Of a thumb: 1 is up, -1 is down. Raises RefusedError for anything else."""
    found = _number(value)
    if found not in (1.0, -1.0):
        raise _out_of_range(column, value, "1 or -1")
    return float(found == 1.0)


def read_time(column: str, value: object) -> datetime | None:
    """ISO 8601, or seconds or milliseconds since 1970; one without a zone is in UTC. None where
    nothing is given. Raises RefusedError for what is no time."""
    if not is_given(value):
        return None
    try:
        return _time(value)
    except (ValueError, OverflowError, OSError):
        raise _unreadable(column, value, "ISO 8601, or seconds since 1970") from None


def read_text(column: str, value: object, longest: int) -> str | None:
    """None where nothing is given. Raises RefusedError for a text that is too long."""
    if not is_given(value):
        return None
    text = str(value)
    if len(text) > longest:
        raise RefusedError(
            Why.UNREADABLE, f"{column}: given {len(text)} characters; allowed: at most {longest}"
        )
    return text


def below(item: Mapping[str, object], key: str) -> Mapping[str, object]:
    """The object under a key; an empty one where there is none."""
    found = item.get(key)
    return found if isinstance(found, Mapping) else {}


def _time(value: object) -> datetime:
    number = _number(value)
    if isinstance(value, datetime):
        found = value
    elif number is not None:
        seconds = number / 1000.0 if number >= MILLISECONDS_FROM else number
        found = datetime.fromtimestamp(seconds, UTC)
    else:
        found = datetime.fromisoformat(str(value).strip())
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def _unreadable(column: str, given: object, allowed: str) -> RefusedError:
    return RefusedError(Why.UNREADABLE, f"{column}: given {shown(given)}; allowed: {allowed}")


def _out_of_range(column: str, given: object, allowed: str) -> RefusedError:
    return RefusedError(Why.OUT_OF_RANGE, f"{column}: given {shown(given)}; allowed: {allowed}")


def shown(given: object) -> str:
    """What was given, on one short line."""
    if not is_given(given):
        return "nothing"
    text = " ".join(repr(given).split())
    return text if len(text) <= 80 else f"{text[:77]}..."
