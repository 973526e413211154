"""Records as rows: their tables, and what is inserted. `rows.py` says what follows from what."""

from datetime import datetime
from typing import Any

import numpy as np
from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    true,
)
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeEngine

from litellm_messplus.prediction.encoder import Features
from litellm_messplus.prediction.surface import NUMBERS, VERSION, Surface
from litellm_messplus.rows import FOREIGN, UNBOUNDED, Declared, by_type, columns_of, flat
from litellm_messplus.store.columns import Position, TheirId, UtcDateTime, metadata, required

Row = dict[str, Any]

TYPES: dict[type, type[TypeEngine[Any]]] = {
    datetime: UtcDateTime,
    bool: Boolean,
    int: Integer,
    float: Float,
    np.ndarray: LargeBinary,
}
TEXTS: dict[int | None, TypeEngine[Any]] = {UNBOUNDED: Text(), FOREIGN: TheirId}


def table_of(record: type, name: str, comment: str, *more: SchemaItem) -> Table:
    """Make the table of a record: its first column is the key, and each row has a position."""
    key, *others = columns_of(record)
    return Table(
        name,
        metadata,
        Column(key.name, _type(key), primary_key=True, comment=key.column.doc),
        required("position", Position, "Place in the log.", unique=True),
        *map(_column, others),
        *more,
        comment=comment,
    )


def _column(declared: Declared) -> Column[Any]:
    given = declared.column
    return Column(
        declared.name,
        _type(declared),
        nullable=declared.is_optional or given.is_nullable,
        index=given.index or None,
        server_default=true() if given.earlier is True else given.earlier or None,
        comment=given.doc,
    )


def _type(declared: Declared) -> TypeEngine[Any]:
    kind, size = declared.base, declared.column.size
    if issubclass(kind, str):
        return TEXTS.get(size) or String(size or 255)
    if kind in (dict, tuple):
        return JSON(none_as_null=declared.is_optional)
    return BigInteger() if declared.column.is_large else TYPES[kind]()


def row_of(record: Any, position: int) -> Row:
    """Make the row of any record. Unpaired surrogates, which no database takes, become marks."""
    row = flat(record)
    texts, vectors = _converted(type(record))
    for name in texts:
        if row[name] is not None:
            row[name] = storable(row[name])
    for name in vectors:
        if row[name] is not None:
            row[name] = features_to_bytes(row[name])
    row["position"] = position
    return row


@by_type
def _converted(record: Any) -> tuple[list[str], list[str]]:
    """Name the columns of texts and of vectors."""
    found = columns_of(record)
    texts = [each.name for each in found if issubclass(each.base, str)]
    return texts, [each.name for each in found if each.base is np.ndarray]


def features_to_bytes(features: Features) -> bytes:
    """Encode features as little-endian float32."""
    return features.astype("<f4").tobytes()


def features_from_bytes(data: bytes) -> Features:
    """Decode the vector that ``features_to_bytes`` wrote."""
    return np.frombuffer(data, dtype="<f4")


def logged_surface(data: bytes | None, version: str | None) -> Surface | None:
    """Decode the numbers of a prompt that were logged; None where there are none, or not those of
    this version."""
    if data is None or version != VERSION:
        return None
    numbers = features_from_bytes(data)
    return numbers if numbers.shape == (len(NUMBERS),) else None


def storable(text: str) -> str:
    """Return the text as every database keeps it: zero characters and unpaired surrogates are
    marked."""
    if text.isascii() and "\0" not in text:
        return str(text)
    return str(text).replace("\0", "�").encode("utf-8", "replace").decode()


STORABLE = r"^[^\x00]*$"
"""The pattern of a text that every database takes as it is: Postgres takes no zero characters."""
