"""Goldens as text: JSON in a fixed order, rows of a database, bytes as digests.

Floats have 12 significant digits: the last bits of a sum differ between processors.
"""

import io
import json
import re
import sqlite3
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import numpy as np

from litellm_messplus.runtime.loading import version

DIGITS = 12
WIDTH = 120
_ID = re.compile(r"\b[0-9a-f]{32}\b")
_LONG = re.compile(rf"(?<![\w.-])-?\d+\.\d{{{DIGITS},}}(e-?\d+)?\b")


def as_json(found: Any) -> str:
    """Write a value with as many entries in a line as it holds."""
    return _packed(_rounded(found), "", "") + "\n"


def _packed(found: Any, indent: str, name: str) -> str:
    flat = name + json.dumps(found, sort_keys=True, ensure_ascii=False)
    if not isinstance(found, dict | list) or len(indent + flat) <= WIDTH:
        return indent + flat
    inner, rows = indent + " ", list[str]()
    named = sorted(found.items()) if isinstance(found, dict) else [("", each) for each in found]
    for key, each in named:
        part = _packed(each, inner, f"{json.dumps(key)}: " if key else "")
        whole = f"{rows[-1]}, {part.lstrip()}" if rows else part
        if rows and "\n" not in whole and len(whole) <= WIDTH:
            rows[-1] = whole
        else:
            rows.append(part)
    begin, end = "{}" if isinstance(found, dict) else "[]"
    return f"{indent}{name}{begin}\n" + ",\n".join(rows) + f"\n{indent}{end}"


def changes(known: Any, found: Any) -> dict[str, Any]:
    """Return where two values differ: what there was and what there is now, by the path."""
    return dict(_changes(_rounded(known), _rounded(found), ""))


def _changes(known: Any, found: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(known, list) and isinstance(found, list) and len(known) == len(found):
        known, found = dict(enumerate(known)), dict(enumerate(found))
    if isinstance(known, dict) and isinstance(found, dict):
        for name in sorted({*known, *found}):
            there = known.get(name, "(absent)"), found.get(name, "(absent)")
            yield from _changes(*there, f"{path}/{name}")
    elif known != found:
        yield path, {"known": known, "now": found}


def as_text(found: str, folder: Path) -> str:
    """Take the version and this machine's folders out of a text, and numbers' last digits."""
    plain = found.replace(str(folder), "FOLDER").replace(version(), "VERSION")
    plain = _LONG.sub(lambda number: f"{float(number[0]):.{DIGITS}g}", plain)
    return "".join(f"{line.rstrip()}\n" for line in plain.splitlines())


def rows(path: Path) -> str:
    """Write every row of every table, as JSON without what is NULL; ids are numbered by their
    first appearance."""
    with sqlite3.connect(path) as connection:
        connection.row_factory = sqlite3.Row
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")
        tables = [str(row["name"]) for row in names if not row["name"].startswith("sqlite_")]
        lines = [line for table in tables for line in _rows(connection, table)]
    known: dict[str, str] = {}
    text = "\n".join(lines) + "\n"
    return _ID.sub(lambda found: known.setdefault(found[0], f"id-{len(known) + 1}"), text)


def _rows(connection: sqlite3.Connection, table: str) -> list[str]:
    found = connection.execute(f"SELECT * FROM {table}").fetchall()
    order = "position" if found and "position" in found[0].keys() else None  # noqa: SIM118
    plain = [
        {name: _value(row[name]) for name in row.keys() if row[name] is not None}  # noqa: SIM118
        for row in sorted(found, key=lambda row: row[order] if order else str(tuple(row)))
    ]
    return [
        f"{table} {json.dumps(_rounded(row), sort_keys=True, ensure_ascii=False)}" for row in plain
    ]


def _value(found: Any) -> Any:
    if isinstance(found, bytes):
        return digest(found)
    if isinstance(found, str) and found[:1] in ("{", "["):
        return json.loads(found)
    return found


def digest(found: bytes) -> Any:
    """Describe bytes: arrays of NumPy each by itself."""
    if not is_zipfile(io.BytesIO(found)):
        return f"{len(found)} bytes, sha256 {sha256(found).hexdigest()[:16]}"
    with np.load(io.BytesIO(found), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in sorted(archive.files)}
    return {name: _array(name, each) for name, each in arrays.items()}


def _array(name: str, found: np.ndarray[Any, Any]) -> Any:
    if name == "plain":
        return json.loads(found.tobytes())
    values = np.nan_to_num(found.astype(np.float64).ravel())  # NaN: not known
    kind = f"{found.dtype}{list(found.shape)}"
    if not values.size:
        return kind
    figures = values.sum(), np.abs(values).sum(), values @ np.arange(values.size), values[0]
    return f"{kind} {' '.join(f'{each:.9g}' for each in figures)}"


def _rounded(found: Any) -> Any:
    match found:
        case float():
            return float(f"{found:.{DIGITS}g}")
        case dict():
            return {str(name): _rounded(value) for name, value in found.items()}
        case list() | tuple():
            return [_rounded(value) for value in found]
    return found
