"""One row of a file of labels, or why it is refused."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from uuid import UUID

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
    """A refusal of the whole file; the message says what was given and what is allowed."""


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
    """A refusal of one row while it is read; it becomes a `Refused` with its line."""

    def __init__(self, why: Why, reason: str) -> None:
        self.why = why
        self.reason = reason
        super().__init__(reason)


def is_given(value: object) -> bool:
    """Tell whether a cell holds anything."""
    return value is not None and value != ""


def read_id(column: str, value: object) -> str:
    """Read an id. Raises RefusedError for an id that is no text, or too long."""
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise _unreadable(column, value, "a text that is not empty")
    found = str(value).strip()
    if not 0 < len(found) <= LONGEST_ID:
        raise _unreadable(column, found, f"1 to {LONGEST_ID} characters")
    return found


def read_satisfied(column: str, value: object) -> float:
    """Read a yes or a no. Raises RefusedError for what is neither."""
    told = str(value).strip().lower()
    if told not in YES | NO:
        raise _out_of_range(column, value, "true, false, 1, 0, yes or no")
    return float(told in YES)


def read_score(column: str, value: object) -> float:
    """Read a score. Raises RefusedError for what is no number from 0 to 1."""
    found = _number(value)
    if found is None:
        raise _unreadable(column, value, "a number from 0 to 1")
    if not 0.0 <= found <= 1.0:
        raise _out_of_range(column, value, "a number from 0 to 1")
    return found


def read_rating(column: str, value: object) -> float:
    """Read a thumb: 1 is up, -1 is down. Raises RefusedError for anything else."""
    found = _number(value)
    if found not in (1.0, -1.0):
        raise _out_of_range(column, value, "1 or -1")
    return float(found == 1.0)


def read_time(column: str, value: object) -> datetime | None:
    """Read a time: ISO 8601, or seconds or milliseconds since 1970; one without a zone is in UTC.
    None where nothing is given. Raises RefusedError for what is no time."""
    if not is_given(value):
        return None
    try:
        return _time(value)
    except (ValueError, OverflowError, OSError):
        raise _unreadable(column, value, "ISO 8601, or seconds since 1970") from None


def read_text(column: str, value: object, longest: int) -> str | None:
    """Read a text; None where nothing is given. Raises RefusedError for a text that is too long."""
    if not is_given(value):
        return None
    text = str(value)
    if len(text) > longest:
        raise RefusedError(
            Why.UNREADABLE, f"{column}: given {len(text)} characters; allowed: at most {longest}"
        )
    return text


def below(item: Mapping[str, object], key: str) -> Mapping[str, object]:
    """Return the object under a key; an empty one where there is none."""
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
    """Show what was given, on one short line."""
    if not is_given(given):
        return "nothing"
    text = " ".join(repr(given).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


# What a row of each format says: plain rows, Open WebUI's feedback export, Langfuse's scores.

Item = Mapping[str, object]
OBSERVATION = re.compile(r"^time-[\d-]+_(?=.)")
"""What LiteLLM puts before the response id in the id of a Langfuse generation."""
HEXADECIMAL = re.compile(r"[0-9a-f]{32}", re.IGNORECASE)
SCORE_TYPES = ("BOOLEAN", "NUMERIC")


class Format(StrEnum):
    """The formats that a file may have; ``AUTO`` is found out from its first row."""

    AUTO = "auto"
    ROWS = "rows"
    OPENWEBUI = "openwebui"
    LANGFUSE = "langfuse"


def recognise(item: Item) -> Format:
    """Return the format of a file whose first row this is."""
    if "rating" in below(item, "data") or ("meta" in item and "snapshot" in item):
        return Format.OPENWEBUI
    if "traceId" in item or "trace_id" in item:
        return Format.LANGFUSE
    return Format.ROWS


def read_row(line: int, item: Item, form: Format) -> Row:
    """Read the label in one item. Raises RefusedError with the reason where there is none."""
    return READERS[form](line, item)


def score_name(item: Item) -> str:
    """Return what a Langfuse score scored."""
    return str(item.get("name") or "")


def _plain(line: int, item: Item) -> Row:
    satisfied, score = item.get("satisfied"), item.get("score")
    if is_given(satisfied) == is_given(score):
        told = "both" if is_given(score) else "neither"
        raise RefusedError(
            Why.UNREADABLE, f"satisfied, score: given {told}; allowed: exactly one of them"
        )
    is_score = is_given(score)
    return Row(
        line=line,
        ids=(read_id("id", item.get("id")),),
        value=read_score("score", score) if is_score else read_satisfied("satisfied", satisfied),
        source=read_text("source", item.get("source"), LONGEST_SOURCE),
        at=read_time("time", item.get("time")),
        comment=read_text("comment", item.get("comment"), LONGEST_COMMENT),
    )


def _openwebui(line: int, item: Item) -> Row:
    """Read a row by the message's id: a chat's id is shared by all of its answers."""
    data, meta = below(item, "data"), below(item, "meta")
    return Row(
        line=line,
        ids=(read_id("meta.message_id", meta.get("message_id")),),
        value=read_rating("data.rating", data.get("rating")),
        at=read_time("updated_at", item.get("updated_at") or item.get("created_at")),
        comment=read_text("data.comment", data.get("comment"), LONGEST_COMMENT),
    )


def _langfuse(line: int, item: Item) -> Row:
    kind = _either(item, "dataType", "data_type")
    if is_given(kind) and str(kind).upper() not in SCORE_TYPES:
        allowed = " or ".join(SCORE_TYPES)
        raise RefusedError(Why.UNREADABLE, f"dataType: given {shown(kind)}; allowed: {allowed}")
    return Row(
        line=line,
        ids=tuple(dict.fromkeys(_ids_of_score(item))),
        value=_score(item, str(kind or "").upper()),
        at=read_time("timestamp", item.get("timestamp")),
        comment=read_text("comment", item.get("comment"), LONGEST_COMMENT),
    )


def _score(item: Item, kind: str) -> float:
    value = item.get("value")
    return read_satisfied("value", value) if kind == "BOOLEAN" else read_score("value", value)


def _ids_of_score(item: Item) -> Iterator[str]:
    """Yield the ids of a score, the narrowest first: one call's own id, its generation's, its
    trace's as LiteLLM had it (the newer SDK of Langfuse drops the dashes of a UUID)."""
    metadata = below(item, "metadata")
    for key in ("litellm_call_id", "response_id"):
        if is_given(metadata.get(key)):
            yield read_id(f"metadata.{key}", metadata[key])
    observation = _either(item, "observationId", "observation_id")
    if is_given(observation):
        yield OBSERVATION.sub("", read_id("observationId", observation))
    trace = read_id("traceId", _either(item, "traceId", "trace_id"))
    yield trace
    if HEXADECIMAL.fullmatch(trace):
        yield str(UUID(trace))


def _either(item: Item, first: str, second: str) -> object:
    """Return either key's value: the interface writes `traceId`, the export to a bucket
    `trace_id`."""
    return item.get(first) if is_given(item.get(first)) else item.get(second)


READERS: Mapping[Format, Callable[[int, Item], Row]] = {
    Format.ROWS: _plain,
    Format.OPENWEBUI: _openwebui,
    Format.LANGFUSE: _langfuse,
}
