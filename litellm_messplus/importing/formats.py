"""What a row of each format says: plain rows, Open WebUI's feedback export, Langfuse's scores."""

import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from uuid import UUID

from litellm_messplus.importing.rows import (
    LONGEST_COMMENT,
    LONGEST_SOURCE,
    RefusedError,
    Row,
    Why,
    below,
    is_given,
    read_id,
    read_rating,
    read_satisfied,
    read_score,
    read_text,
    read_time,
    shown,
)

Item = Mapping[str, object]
OBSERVATION = re.compile(r"^time-[\d-]+_(?=.)")
"""What LiteLLM puts before the response id in the id of a Langfuse generation."""
HEXADECIMAL = re.compile(r"[0-9a-f]{32}", re.IGNORECASE)
SCORE_TYPES = ("BOOLEAN", "NUMERIC")


class Format(StrEnum):
    """What a file may look like; ``AUTO`` is found out from its first row."""

    AUTO = "auto"
    ROWS = "rows"
    OPENWEBUI = "openwebui"
    LANGFUSE = "langfuse"


def recognise(item: Item) -> Format:
    """The format of a file whose first row this is."""
    if "rating" in below(item, "data") or ("meta" in item and "snapshot" in item):
        return Format.OPENWEBUI
    if "traceId" in item or "trace_id" in item:
        return Format.LANGFUSE
    return Format.ROWS


def read_row(line: int, item: Item, form: Format) -> Row:
    """The label in one item. Raises RefusedError with the reason where there is none."""
    return READERS[form](line, item)


def score_name(item: Item) -> str:
    """Of a Langfuse score: what was scored."""
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
    """By the message's id: a chat's is shared by all of its answers."""
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
    """The narrowest first: one call's own id, its generation's, its trace's as LiteLLM had it (the
    newer SDK of Langfuse drops the dashes of a UUID)."""
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
    """The interface writes `traceId`, the export to a bucket `trace_id`."""
    return item.get(first) if is_given(item.get(first)) else item.get(second)


READERS: Mapping[Format, Callable[[int, Item], Row]] = {
    Format.ROWS: _plain,
    Format.OPENWEBUI: _openwebui,
    Format.LANGFUSE: _langfuse,
}
