"""What a database refuses for ever, and what it only cannot take now."""

from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    ProgrammingError,
)
from sqlalchemy.exc import TimeoutError as NoConnectionFreeError


def is_the_records_fault(error: Exception) -> bool:
    """Whether the database will never take the record, rather than not now."""
    if not isinstance(error, DBAPIError):
        return not isinstance(error, OSError | NoConnectionFreeError)  # TimeoutError is the first
    sqlstate = getattr(error.orig, "sqlstate", None)
    if sqlstate is not None:  # Postgres, which says it: data exceptions, violated constraints
        return str(sqlstate)[:2] in ("22", "23")
    if isinstance(error, IntegrityError | DataError):
        return True
    refused_by_driver = isinstance(error, ProgrammingError | InterfaceError)
    return refused_by_driver and not error.connection_invalidated
