"""One row of a file of labels, or why it is refused."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from uuid import UUID

from litellm_messplus.runtime.errors import MessplusError

LONGEST_ID = 2048
LONGEST_COMMENT = 10_000
"""Most characters of an id and a comment, as in `POST /messplus/feedback`."""
LONGEST_SOURCE = 57
"""Most characters of a source: the column holds 64, of which `import:` takes seven."""
MILLISECONDS_FROM = 1e11
"""A number of at least this is a time in milliseconds: in seconds it would be the year 5138."""
Words = frozenset[str]
SATISFIED = frozenset({"true", "yes", "1", "1.0"}), frozenset({"false", "no", "0", "0.0"})
THUMB = frozenset({"1", "1.0"}), frozenset({"-1", "-1.0"})
"""Words for yes and words for no."""


class ImportingError(MessplusError):
    """A refusal of the whole file; the message states what was given and what is allowed."""


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
    """A label in a file. The first of the ``ids`` that is in the log counts; ``source`` and ``at``
    are None if the row has none."""

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
        raise _refused(column, value, "a text that is not empty")
    found = str(value).strip()
    if not 0 < len(found) <= LONGEST_ID:
        raise _refused(column, found, f"1 to {LONGEST_ID} characters")
    return found


def read_score(column: str, value: object) -> float:
    """Read a score. Raises RefusedError unless it is a number from 0 to 1."""
    found = _number(value)
    if found is None:
        raise _refused(column, value, "a number from 0 to 1")
    if not 0.0 <= found <= 1.0:
        raise _refused(column, value, "a number from 0 to 1", Why.OUT_OF_RANGE)
    return found


def read_choice(column: str, value: object, choices: tuple[Words, Words], allowed: str) -> float:
    """Read a yes or a no. Raises RefusedError for anything else."""
    yes, no = choices
    word = str(value).strip().lower()
    if word not in yes | no:
        raise _refused(column, value, allowed, Why.OUT_OF_RANGE)
    return float(word in yes)


def read_time(column: str, value: object) -> datetime | None:
    """Read a time: ISO 8601, or seconds or milliseconds since 1970; one without a zone is in UTC.
    None if the cell is empty. Raises RefusedError for an invalid time."""
    if not is_given(value):
        return None
    try:
        return _time(value)
    except (ValueError, OverflowError, OSError):
        raise _refused(column, value, "ISO 8601, or seconds since 1970") from None


def read_text(column: str, value: object, longest: int) -> str | None:
    """Read a text; None if the cell is empty. Raises RefusedError for a text that is too long."""
    if not is_given(value):
        return None
    text = str(value)
    if len(text) > longest:
        raise RefusedError(
            Why.UNREADABLE, f"{column}: given {len(text)} characters; allowed: at most {longest}"
        )
    return text


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


def _refused(column: str, given: object, allowed: str, why: Why = Why.UNREADABLE) -> RefusedError:
    return RefusedError(why, f"{column}: given {shown(given)}; allowed: {allowed}")


def shown(given: object) -> str:
    """Write a given value on one short line."""
    if not is_given(given):
        return "nothing"
    text = " ".join(repr(given).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


# The columns of a label in each format: plain rows, Open WebUI's feedback export, Langfuse's
# scores. A column is a path of keys: `meta.message_id`.

Item = Mapping[str, object]
OBSERVATION = re.compile(r"^time-[\d-]+_(?=.)")
"""Prefix that LiteLLM puts before the response id in the id of a Langfuse generation."""
HEXADECIMAL = re.compile(r"[0-9a-f]{32}", re.IGNORECASE)
SCORE_TYPES = ("BOOLEAN", "NUMERIC")
CAPITAL = re.compile(r"(?=[A-Z])")


class Format(StrEnum):
    """The formats of a file; ``AUTO`` is detected from its first row."""

    AUTO = "auto"
    ROWS = "rows"
    OPENWEBUI = "openwebui"
    LANGFUSE = "langfuse"


@dataclass(frozen=True)
class Columns:
    """The columns of a format. Of ``ids``, the narrowest first, the last is required; each has the
    forms that the log may hold. A table must have one column of each group of ``required``."""

    required: tuple[tuple[str, ...], ...]
    ids: Mapping[str, Callable[[str], tuple[str, ...]]]
    value: Callable[[Item], float]
    at: tuple[str, ...]
    comment: str
    source: str = ""


def at(item: Item, column: str) -> object:
    """Return the value of an item at a column; None if it has none. Langfuse's interface writes
    `traceId`, its export to a bucket `trace_id`."""
    found: object = item
    for key in column.split("."):
        if not isinstance(found, Mapping):
            return None
        known = found.get(key)
        found = known if is_given(known) else found.get(CAPITAL.sub("_", key).lower())
    return found


def recognise(item: Item) -> Format:
    """Return the format of a file whose first row this is."""
    if at(item, "data.rating") is not None or ("meta" in item and "snapshot" in item):
        return Format.OPENWEBUI
    return Format.LANGFUSE if "traceId" in item or "trace_id" in item else Format.ROWS


def read_row(line: int, item: Item, form: Format) -> Row:
    """Read the label in one item. Raises RefusedError with the reason if there is none."""
    columns = COLUMNS[form]
    *_, last = columns.ids
    ids = (
        known
        for column, spellings in columns.ids.items()
        if column == last or is_given(at(item, column))
        for known in spellings(read_id(column, at(item, column)))
    )
    when = next((each for each in columns.at if is_given(at(item, each))), columns.at[0])
    return Row(
        line=line,
        value=columns.value(item),
        ids=tuple(dict.fromkeys(ids)),
        source=read_text("source", at(item, columns.source), LONGEST_SOURCE),
        at=read_time(when, at(item, when)),
        comment=read_text(columns.comment, at(item, columns.comment), LONGEST_COMMENT),
    )


def score_name(item: Item) -> str:
    """Return the name of a Langfuse score."""
    return str(item.get("name") or "")


def _as_it_is(given: str) -> tuple[str, ...]:
    return (given,)


def _with_dashes(trace: str) -> tuple[str, ...]:
    """Return a trace's id, and the form that LiteLLM had: Langfuse's newer SDK drops the dashes of
    a UUID."""
    return (trace, str(UUID(trace))) if HEXADECIMAL.fullmatch(trace) else (trace,)


def _satisfied_or_score(item: Item) -> float:
    satisfied, score = item.get("satisfied"), item.get("score")
    if is_given(satisfied) == is_given(score):
        which = "both" if is_given(score) else "neither"
        raise RefusedError(
            Why.UNREADABLE, f"satisfied, score: given {which}; allowed: exactly one of them"
        )
    return read_score("score", score) if is_given(score) else _satisfied("satisfied", satisfied)


def _satisfied(column: str, value: object) -> float:
    return read_choice(column, value, SATISFIED, "true, false, 1, 0, yes or no")


def _typed_score(item: Item) -> float:
    kind, value = at(item, "dataType"), item.get("value")
    name = str(kind).upper() if is_given(kind) else "NUMERIC"
    if name not in SCORE_TYPES:
        raise _refused("dataType", kind, " or ".join(SCORE_TYPES))
    return _satisfied("value", value) if name == "BOOLEAN" else read_score("value", value)


COLUMNS = {
    Format.ROWS: Columns(
        required=(("id",), ("satisfied", "score")),
        ids={"id": _as_it_is},
        value=_satisfied_or_score,
        at=("time",),
        comment="comment",
        source="source",
    ),
    Format.OPENWEBUI: Columns(
        required=(("data",), ("meta",)),
        ids={"meta.message_id": _as_it_is},  # a chat's id is shared by all of its answers
        value=lambda item: read_choice("data.rating", at(item, "data.rating"), THUMB, "1 or -1"),
        at=("updated_at", "created_at"),
        comment="data.comment",
    ),
    Format.LANGFUSE: Columns(
        required=(("traceId", "trace_id"), ("value",)),
        ids={
            "metadata.litellm_call_id": _as_it_is,
            "metadata.response_id": _as_it_is,
            "observationId": lambda given: (OBSERVATION.sub("", given),),
            "traceId": _with_dashes,
        },
        value=_typed_score,
        at=("timestamp",),
        comment="comment",
    ),
}
