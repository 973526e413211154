"""What a database refuses for ever, and what it only cannot take now."""

from typing import Any

from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    ProgrammingError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as NoConnectionFreeError

from litellm_messplus.errors import BrokenLogError
from litellm_messplus.store.database_file import DatabaseFileGoneError

AWAY = ("08", "53", "57")
"""Classes of Postgres's SQLSTATE: no connection, no resources, an operator's intervention."""


def is_the_databases(error: Exception) -> bool:
    """Whether it comes from the database. asyncpg's own come as they are where it connects."""
    if isinstance(error, SQLAlchemyError | OSError | BrokenLogError):
        return True
    return hasattr(error, "sqlstate")


def is_away(error: BaseException) -> bool:
    """Whether the database does not answer now, rather than never as it is."""
    found: Any = getattr(error, "orig", None) or error
    sqlstate = getattr(found, "sqlstate", None)
    if sqlstate is not None:
        return str(sqlstate)[:2] in AWAY
    if isinstance(error, NoConnectionFreeError) or isinstance(found, OSError):
        return not isinstance(found, DatabaseFileGoneError)
    return isinstance(error, OperationalError) and "is locked" in str(found)


def is_the_records_fault(error: Exception) -> bool:
    """Whether the database will never take the record, rather than not now."""
    if not isinstance(error, DBAPIError):
        # TimeoutError is the first
        return not isinstance(error, OSError | NoConnectionFreeError | BrokenLogError)
    sqlstate = getattr(error.orig, "sqlstate", None)
    if sqlstate is not None:  # Postgres, which says it: data exceptions, violated constraints
        return str(sqlstate)[:2] in ("22", "23")
    if isinstance(error, IntegrityError | DataError):
        return True
    refused_by_driver = isinstance(error, ProgrammingError | InterfaceError)
    return refused_by_driver and not error.connection_invalidated
