"""What all tables are made of: their types, and columns that say what they mean."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import BigInteger, Column, DateTime, Dialect, Index, Integer, MetaData, String, text
from sqlalchemy.types import TypeDecorator

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
"""Of others, who make it as long as they like; SQLite takes any length."""


def required(name: str, kind: Any, comment: str, **options: Any) -> Column[Any]:
    """Make a column that every row has a value in."""
    return Column(name, kind, nullable=False, comment=comment, **options)


def optional(name: str, kind: Any, comment: str, **options: Any) -> Column[Any]:
    """Make a column that is NULL where nobody knows."""
    return Column(name, kind, nullable=True, comment=comment, **options)


def key(name: str, kind: Any, comment: str) -> Column[Any]:
    """Make a column that is part of the table's primary key."""
    return Column(name, kind, primary_key=True, comment=comment)


def where_known(name: str, column: str) -> Index:
    """Make an index on a column and the place in the log, of the rows that have a value there."""
    known = text(f"{column} IS NOT NULL")
    return Index(name, column, "position", sqlite_where=known, postgresql_where=known)
