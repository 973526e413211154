"""The columns of tables, the table of a record, and the row that is inserted. See
`litellm_messplus/rows.py`."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Dialect,
    Float,
    Index,
    Insert,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    text,
    true,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeDecorator, TypeEngine

from litellm_messplus.core.answer import ANSWER_NUMBERS, ANSWER_VERSION, AnswerSurface
from litellm_messplus.core.encoder import Features
from litellm_messplus.core.surface import NUMBERS, VERSION, Surface
from litellm_messplus.records import storable
from litellm_messplus.rows import FOREIGN, UNBOUNDED, Declared, by_type, columns_of, flat

metadata = MetaData()


class UtcDateTime(TypeDecorator[datetime]):
    """A point in time: aware in Python, UTC in the database, on SQLite (which has no zones) too."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        utc = value.astimezone(UTC)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


Position = BigInteger().with_variant(Integer(), "sqlite")
TheirId = String(255).with_variant(String(1024), "postgresql")
"""The type of an id made by others, of any length; SQLite does not enforce lengths."""


def required(name: str, kind: Any, comment: str, **options: Any) -> Column[Any]:
    """Make a column that is never NULL."""
    return Column(name, kind, nullable=False, comment=comment, **options)


def optional(name: str, kind: Any, comment: str, **options: Any) -> Column[Any]:
    """Make a column that is NULL if unknown."""
    return Column(name, kind, nullable=True, comment=comment, **options)


def key(name: str, kind: Any, comment: str) -> Column[Any]:
    """Make a column that is part of the table's primary key."""
    return Column(name, kind, primary_key=True, comment=comment)


def where_known(name: str, column: str) -> Index:
    """Make an index on a column and the position, over the rows where the column is not NULL."""
    known = text(f"{column} IS NOT NULL")
    return Index(name, column, "position", sqlite_where=known, postgresql_where=known)


# The table of a record.

TYPES: dict[type, type[TypeEngine[Any]]] = {
    datetime: UtcDateTime,
    bool: Boolean,
    int: Integer,
    float: Float,
    np.ndarray: LargeBinary,
}
TEXTS: dict[int | None, TypeEngine[Any]] = {UNBOUNDED: Text(), FOREIGN: TheirId}


def log_table_of(record: type, name: str, comment: str, *more: SchemaItem) -> Table:
    """Make the table of a record of the log, with the position of each row."""
    position = required("position", Position, "Place in the log.", unique=True)
    first, *others = _columns(record, keys=1)
    return Table(name, metadata, first, position, *others, *more, comment=comment)


def table_of(record: type, name: str, comment: str, *more: SchemaItem, keys: int = 1) -> Table:
    """Make the table of a record: its first ``keys`` columns are the primary key."""
    return Table(name, metadata, *_columns(record, keys), *more, comment=comment)


def _columns(record: type, keys: int) -> list[Column[Any]]:
    found = columns_of(record)
    first = [key(each.name, _type(each), each.column.doc) for each in found[:keys]]
    return first + [_column(each) for each in found[keys:]]


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
    kind, given = declared.base, declared.column
    if issubclass(kind, str):
        return TEXTS.get(given.size) or String(given.size or 255)
    if issubclass(kind, tuple | Mapping):
        return JSON(none_as_null=declared.is_optional)
    return BigInteger() if given.is_large else TYPES[kind]()


# The row of a record.

Row = dict[str, Any]


def row_of(record: Any, position: int) -> Row:
    """Make the row of any record. Unpaired surrogates, which no database accepts, are replaced."""
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
    """Return the names of the text columns and of the vector columns."""
    found = columns_of(record)
    texts = [each.name for each in found if issubclass(each.base, str)]
    return texts, [each.name for each in found if each.base is np.ndarray]


def features_to_bytes(features: Features) -> bytes:
    """Encode features as little-endian float32."""
    return features.astype("<f4").tobytes()


def features_from_bytes(data: bytes) -> Features:
    """Decode the vector that ``features_to_bytes`` wrote."""
    return np.frombuffer(data, dtype="<f4")


Logged = bytes | Features | None
"""Numbers as a row of the database has them, or as a record of this process does."""


def logged_surface(data: Logged, version: str | None) -> Surface | None:
    """Decode a prompt's logged surface; None if there is none, or it is of another version."""
    return _numbers(data, len(NUMBERS)) if version == VERSION else None


def logged_answer(data: Logged, version: str | None) -> AnswerSurface | None:
    """Decode an answer's logged surface; None if there is none, or it is of another version."""
    return _numbers(data, len(ANSWER_NUMBERS)) if version == ANSWER_VERSION else None


def _numbers(data: Logged, count: int) -> Features | None:
    """Decode so many numbers; None if there are none, or not so many."""
    numbers = features_from_bytes(data) if isinstance(data, bytes) else data
    return numbers if numbers is not None and numbers.shape == (count,) else None


STORABLE = r"^[^\x00]*$"
"""The pattern of a text that every database accepts as is: Postgres accepts no zero characters."""


AT_ONCE = 500
"""Ids in one statement: databases limit the number of parameters."""


def in_parts(ids: Iterable[str]) -> Iterator[list[str]]:
    """Yield the ids in parts of one statement each."""
    remaining = iter(ids)
    while some := list(islice(remaining, AT_ONCE)):
        yield some


# Rows that may be there already, by their primary key.


@cache
def replacing(table: Table, dialect: str) -> Insert:
    """Insert a row, or replace the existing one."""
    return upserting(table, dialect, lambda column, given: given)


def upserting(table: Table, dialect: str, merged: Callable[[Column[Any], Any], Any]) -> Insert:
    """Insert a row, or set each column of the existing one to ``merged`` of it and of the given
    value."""
    inserted = (sqlite.insert if dialect == "sqlite" else postgresql.insert)(table)
    return inserted.on_conflict_do_update(
        index_elements=list(table.primary_key.columns),
        set_={
            column.name: merged(column, inserted.excluded[column.name])
            for column in table.columns
            if not column.primary_key
        },
    )
