"""The archive: Parquet files with the columns of the tables, one folder a table.

A file is complete once it has its name: it is first written under another name, flushed to disk,
read back and compared. An existing file is never replaced.
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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
)

from litellm_messplus.runtime import parquet
from litellm_messplus.runtime.errors import MessplusError
from litellm_messplus.runtime.parquet import Kind, ParquetError
from litellm_messplus.store.pruning import Part
from litellm_messplus.store.rows import UtcDateTime

KINDS: Mapping[type, Kind] = {
    UtcDateTime: "time",
    JSON: "text",
    LargeBinary: "bytes",
    Boolean: "truth",
    Float: "number",
    BigInteger: "whole",
    Integer: "whole",
    Text: "text",
    String: "text",
}
UNFINISHED = ".unfinished"
"""Suffix of a file that is being written; a leftover one is written anew."""


class ArchiveError(MessplusError):
    """An archive that cannot be written, or would lack what is to be deleted."""


class Archive:
    """The files in a folder, which is created if it is missing.

    Raises ParquetError if the extra `parquet` is not installed.
    """

    def __init__(self, folder: Path) -> None:
        parquet.require()
        self._folder = folder

    def path(self, table: Table, part: Part) -> Path:
        """Return the file of a table's rows in a part, named by the last position, so that files
        sort as the log."""
        return self._folder / table.name / f"{part.upto:012d}.parquet"

    def write(self, table: Table, part: Part, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write the file under a temporary name, and flush it to disk."""
        unfinished = self._unfinished(table, part)
        try:
            unfinished.parent.mkdir(parents=True, exist_ok=True)
            with unfinished.open("wb") as file:
                parquet.write(file, *_columns(table, rows))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise ArchiveError(f"the archive {self._folder} cannot be written: {error}") from error

    def finish(self, table: Table, part: Part) -> None:
        """Give the file its final name."""
        path = self.path(table, part)
        self._unfinished(table, part).rename(path)
        for folder in (path.parent, self._folder):
            _to_disk(folder)

    def check(self, table: Table, part: Part, keys: set[str]) -> None:
        """Read the file back. Raises ArchiveError if it lacks one of these rows."""
        path = self.path(table, part)
        if not path.is_file():
            path = self._unfinished(table, part)
        (key,) = table.primary_key.columns
        try:
            found = set(parquet.read(path, [key.name])[key.name])
        except (OSError, ParquetError) as error:
            raise ArchiveError(
                f"{path}: cannot be read back ({error}); nothing of it is deleted"
            ) from error
        missing = len(keys - found)
        if missing:
            raise ArchiveError(
                f"{path} lacks {missing} of {len(keys)} rows that were to be deleted, so they were "
                "not; if the folder is another database's archive, give one of this database alone"
            )

    def _unfinished(self, table: Table, part: Part) -> Path:
        path = self.path(table, part)
        return path.with_name(path.name + UNFINISHED)


def _columns(
    table: Table, rows: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, list[Any]], dict[str, Kind]]:
    """Convert rows to the columns of the table, JSON as its text, with the kind of each column."""
    return (
        {column.name: [_value(column, row) for row in rows] for column in table.columns},
        {column.name: KINDS[type(column.type)] for column in table.columns},
    )


def _value(column: Column[Any], row: Mapping[str, Any]) -> Any:
    value = row[column.name]
    return json.dumps(value) if isinstance(column.type, JSON) and value is not None else value


def _to_disk(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
