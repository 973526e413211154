"""Files of labels: CSV, JSON Lines, JSON and Parquet, row by row."""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from litellm_messplus import parquet
from litellm_messplus.importing.rows import (
    Format,
    ImportingError,
    Item,
    Refused,
    RefusedError,
    Row,
    Why,
    read_row,
    recognise,
    score_name,
    shown,
)
from litellm_messplus.parquet import ParquetError

MOST_ROWS = 1_000_000
"""In one file: all labels are written in one transaction."""
TABLES = (".csv", ".parquet", ".pq")
"""Their columns are the same in every row."""
REQUIRED = {
    Format.ROWS: (("id",), ("satisfied", "score")),
    Format.OPENWEBUI: (("data",), ("meta",)),
    Format.LANGFUSE: (("traceId", "trace_id"), ("value",)),
}
"""Columns of which a table must have one of each group."""
Numbered = tuple[int, Item | Refused]


@dataclass(slots=True)
class Read:
    """The contents of a file. ``left_out`` are the Langfuse scores of other names than the one
    asked for."""

    form: Format
    rows: list[Row]
    refused: list[Refused]
    left_out: int = 0


def read_file(path: Path, form: Format = Format.AUTO, score: str | None = None) -> Read:
    """Read the rows of a file in the given format.

    Raises ImportingError for a file that cannot be read, holds no rows or too many, or holds
    Langfuse scores of several names of which ``score`` names none.
    """
    try:
        return _read(path, _items(path), form, score)
    except (OSError, UnicodeDecodeError, csv.Error, ParquetError) as error:
        raise _cannot_be_read(path, error) from None


def _read(path: Path, found: Iterator[Numbered], form: Format, score: str | None) -> Read:
    first, items = _first_item(found)
    if form is Format.AUTO:
        form = Format.ROWS if first is None else recognise(first)
    if score is not None and form is not Format.LANGFUSE:
        raise ImportingError(
            f"--score: given {score!r} for a file of the format {form}; allowed: for langfuse alone"
        )
    if first is not None and path.suffix.lower() in TABLES:
        _check_columns(path, first, form)
    read, names = Read(form, [], []), set[str]()
    for line, item in _bounded(path, items):
        if isinstance(item, Refused):
            read.refused.append(item)
        elif score is not None and score_name(item) != score:
            read.left_out += 1
        else:
            names.add(score_name(item) if form is Format.LANGFUSE else "")
            _add(read, line, item)
    _check_names(path, names)
    return read


def _bounded(path: Path, items: Iterable[Numbered]) -> Iterator[Numbered]:
    """Yield all rows, of which there must be some, and no more than are allowed."""
    number = 0
    for number, item in enumerate(items, start=1):
        if number > MOST_ROWS:
            raise ImportingError(
                f"{path}: rows: given more than {MOST_ROWS}; allowed: at most that many in a file"
            )
        yield item
    if number == 0:
        raise ImportingError(f"{path}: rows: given none; allowed: at least 1")


def _first_item(found: Iterator[Numbered]) -> tuple[Item | None, Iterable[Numbered]]:
    """Find the first row that can be read, and keep all rows."""
    before: list[Numbered] = []
    for line, item in found:
        before.append((line, item))
        if not isinstance(item, Refused):
            return item, chain(before, found)
    return None, before


def _add(read: Read, line: int, item: Item) -> None:
    try:
        read.rows.append(read_row(line, item, read.form))
    except RefusedError as error:
        read.refused.append(Refused(line, error.why, error.reason))


def _check_columns(path: Path, first: Item, form: Format) -> None:
    for allowed in REQUIRED[form]:
        if not any(column in first for column in allowed):
            given = ", ".join(list(first)[:20])
            raise ImportingError(
                f"{path}: columns of the format {form}: given {given}; allowed: with "
                f"{' or '.join(allowed)} among them"
            )


def _check_names(path: Path, names: set[str]) -> None:
    if len(names) > 1:
        raise ImportingError(
            f"{path}: scores: given the names {', '.join(sorted(names)[:10])}; allowed: one, which "
            "--score NAME names: not every score says that a user was satisfied"
        )


def _items(path: Path) -> Iterator[Numbered]:
    kind = path.suffix.lower()
    if kind == ".csv":
        return _csv(path)
    if kind in (".jsonl", ".ndjson"):
        return _json_lines(path)
    if kind == ".json":
        return _json(path)
    if kind in TABLES:
        return _parquet(path)
    raise ImportingError(
        f"{path}: given a file of an unknown kind; allowed: .csv, .jsonl, .json or .parquet"
    )


def _csv(path: Path) -> Iterator[Numbered]:
    """Read a CSV file. A row's line is its first: a comment may go over several."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        line = 2
        for item in reader:
            yield line, {str(key): value for key, value in item.items() if key is not None}
            line = reader.line_num + 1


def _json_lines(path: Path) -> Iterator[Numbered]:
    with path.open(encoding="utf-8-sig") as file:
        for line, text in enumerate(file, start=1):
            if text.strip():
                yield line, _object(line, text)


def _object(line: int, text: str) -> Item | Refused:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return _no_object(line, text.strip())
    return found if isinstance(found, Mapping) else _no_object(line, found)


def _json(path: Path) -> Iterator[Numbered]:
    """Read a list of objects, or Langfuse's answer, which has it under `data`; counted from 1."""
    try:
        found = json.loads(path.read_text("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise _cannot_be_read(path, error) from None
    if isinstance(found, Mapping) and isinstance(found.get("data"), list):
        found = found["data"]
    if not isinstance(found, list):
        raise ImportingError(f"{path}: given {shown(found)}; allowed: a list of objects")
    for number, item in enumerate(found, start=1):
        yield number, item if isinstance(item, Mapping) else _no_object(number, item)


def _no_object(line: int, given: object) -> Refused:
    return Refused(line, Why.UNREADABLE, f"given {shown(given)}; allowed: a JSON object")


def _parquet(path: Path) -> Iterator[Numbered]:
    columns = parquet.read(path)
    rows = zip(*columns.values(), strict=True)
    for number, row in enumerate(rows, start=1):
        yield number, dict(zip(columns, row, strict=True))


def _cannot_be_read(path: Path, error: Exception) -> ImportingError:
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    return ImportingError(f"{path}: cannot be read ({reason})")
